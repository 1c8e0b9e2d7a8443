package filetype

import (
	"strings"
	"testing"
)

var cases = []struct {
	name, begins, want string // empty: nothing known
}{
	{"nothing", "", "empty"},
	{"LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n", "git lfs pull"},
	{"HTML", "<!DOCTYPE html>\n<html class=\"\">", "an HTML page"},
	{"HTML in lower case after space", "\n  <html lang=\"en\">", "an HTML page"},
	{"HTML after a byte order mark", "\xef\xbb\xbf<!doctype html>", "an HTML page"},
	{"HTML after a comment", "<!-- login --><html>", "an HTML page"},
	{"XHTML", `<?xml version="1.0"?><html xmlns="">`, "an HTML page"},
	{"answer of an object store", `<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code>`, "an XML document"},
	{"answer of a hub", "Invalid username or password.", `"Invalid username or password."`},
	{"answer in JSON", `{"error":"Access to model is restricted"}`, "Access to model is restricted"},
	{"zip", "PK\x03\x04\x14\x00\x08\x08model.gguf", "a zip archive"},
	{"PyTorch", "PK\x03\x04\x00\x00\x08\x08archive/data.pkl", "a PyTorch file"},
	{"pickle", "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "a PyTorch file"},
	{"gzip", "\x1f\x8b\x08\x00", "gzip"},
	{"tar", "model/config.json" + strings.Repeat("\x00", 240) + "ustar\x0000", "a tar archive"},
	{"zstd", "\x28\xb5\x2f\xfd\x04", "zstd"},
	{"GGML", "lmgg\x00\x7d\x00\x00", "a GGML file"},
	{"GGJT", "tjgg\x03\x00\x00\x00", "a GGJT file"},
	{"GGLA", "algg\x01\x00\x00\x00", "LoRA"},
	{"GGUF", "GGUF\x03\x00\x00\x00", "a GGUF file"},
	{"ONNX", "\x08\x07\x12\x07pytorch\x1a\x05", "an ONNX file"},
	{"HDF5", "\x89HDF\r\n\x1a\n", "HDF5"},
	{"zeros", strings.Repeat("\x00", 512), "zeros"},
	{"UTF-16", "\xff\xfe{\x00", "UTF-16"},
	{"short", "P", ""},
	{"vocabulary", `{"error": 0, "message": 1}`, ""},
	{"long text that begins like an answer", "Not found" + strings.Repeat(" x", 200), ""},
	{"JSON", `{"hidden_size": 8}`, ""},
	{"safetensors", "\x40\x00\x00\x00\x00\x00\x00\x00{\"a\":", ""},
	{"safetensors whose length looks like ONNX", "\x08\x07\x00\x00\x00\x00\x00\x00{", ""},
	{"template", "{%- if tools %}", ""},
	{"template with a page inside", "{{ '<html>' }}", ""},
	{"XML-like template", "<s>[INST]", ""},
}

func TestDescribe(t *testing.T) {
	for _, c := range cases {
		got := Describe([]byte(c.begins))
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q is %q, want %q", c.name, c.begins, got, c.want)
		}
	}
}

func TestUnfinished(t *testing.T) {
	cases := []struct {
		name string
		want bool
	}{
		{"model.gguf.part", true}, {"a.incomplete", true}, {"A.GGUF.CRDOWNLOAD", true}, {"model.gguf", false}, {"part", false}, {"", false},
	}
	for _, c := range cases {
		if got := Unfinished(c.name); got != c.want {
			t.Errorf("%q: got %v, want %v", c.name, got, c.want)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.begins))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if got := Describe(content); len(got) > 1000 || strings.ContainsAny(got, "\n\x00") {
			t.Errorf("%q: the description is no short line: %q", content, got)
		}
	})
}
