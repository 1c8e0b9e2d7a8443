package weights

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4665460d2e3c\nsize 4373\n"

// shards makes the text of a safetensors file with one tensor of two bytes for each name.
func shards(t *testing.T, names ...string) string {
	t.Helper()
	var all []Tensor
	for _, name := range names {
		all = append(all, Tensor{Info: Info{Name: name, Type: tensor.U8, Shape: []int64{2}}, Data: []byte(name[:2])})
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := safetensors.Write(path, all...); err != nil {
		t.Fatal(err)
	}
	return text(t, path)
}

func text(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// folderOf writes files, below folders where their names say so.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// What is given to Open, which tensors it finds, what it notes; or the error.
func TestOpenFindsModels(t *testing.T) {
	model := text(t, writeGGUF(t, llamaKeys, embedding, ggufTensor{"a", []int64{1}}))
	projector := text(t, writeGGUF(t, map[string]any{"general.architecture": "clip"}, ggufTensor{"v", []int64{1}}))
	split := map[string]any{"split.no": 0, "split.count": 2, "split.tensors.count": 2}
	first := text(t, writeGGUF(t, with(llamaKeys, split), embedding))
	second := text(t, writeGGUF(t, with(split, map[string]any{"split.no": 1}), ggufTensor{"b", []int64{1}}))
	one, a, b := shards(t, "xx"), shards(t, "aa"), shards(t, "bb")
	const index = `{"weight_map": {"aa": "1.safetensors", "bb": "2.safetensors"}}`
	const inGGUF = "a model.embed_tokens.weight"
	cases := []struct {
		name  string
		files map[string]string
		open  string // below the folder
		found string // names of tensors
		note  string
		err   string
	}{
		{"a file of ollama", map[string]string{"sha256-0123": model}, "sha256-0123", inGGUF, "", ""},
		{"upper case", map[string]string{"M.GGUF": model}, "M.GGUF", inGGUF, "", ""},
		{"another ending", map[string]string{"m.bin": model}, "m.bin", inGGUF, "", ""},
		{"the first part", map[string]string{"m-00001-of-00002.gguf": first, "m-00002-of-00002.gguf": second}, "m-00001-of-00002.gguf", "b model.embed_tokens.weight", "", ""},
		{"the second part", map[string]string{"m-00001-of-00002.gguf": first, "m-00002-of-00002.gguf": second}, "m-00002-of-00002.gguf", "", "", "give the first"},
		{"folder of one file", map[string]string{"m.gguf": model, "README.md": "x"}, "", inGGUF, "m.gguf was opened, the only GGUF model in it", ""},
		{"folder of one model in parts", map[string]string{"m-00001-of-00002.gguf": first, "m-00002-of-00002.gguf": second}, "", "b model.embed_tokens.weight", "m-00001-of-00002.gguf was opened", ""},
		{"folder with a projector", map[string]string{"m.gguf": model, "mmproj-m.gguf": projector}, "", inGGUF, "m.gguf was opened", ""},
		{"folder with a configuration", map[string]string{"m.gguf": model, "config.json": "{}"}, "", inGGUF, "m.gguf was opened", ""},
		{"configuration beside GGUF", map[string]string{"m.gguf": model, "config.json": "{}"}, "config.json", inGGUF, "m.gguf was opened", ""},
		{"adapter's weights beside GGUF", map[string]string{"m.gguf": model, "config.json": "{}", "adapter_model.safetensors": one}, "adapter_model.safetensors", "", "", "is not part of the checkpoint in its folder"},
		{"folder with safetensors too", map[string]string{"m.gguf": model, "config.json": "{}", "model.safetensors": one}, "", "xx", "", ""},
		{"config.json", map[string]string{"config.json": "{}", "model.safetensors": one}, "config.json", "xx", "its folder was opened", ""},
		{"the only safetensors file", map[string]string{"config.json": "{}", "model.safetensors": one}, "model.safetensors", "xx", "its folder was opened", ""},
		{"a shard", map[string]string{"config.json": "{}", "1.safetensors": a, "2.safetensors": b, safetensors.IndexName: index}, "2.safetensors", "aa bb", "its folder was opened", ""},
		{"the index", map[string]string{"config.json": "{}", "1.safetensors": a, "2.safetensors": b, safetensors.IndexName: index}, safetensors.IndexName, "aa bb", "its folder was opened", ""},
		{"index after a byte order mark", map[string]string{"config.json": "\xef\xbb\xbf{}\r\n", "1.safetensors": a, "2.safetensors": b, safetensors.IndexName: "\xef\xbb\xbf" + index}, "", "aa bb", "", ""},
		{"another name", map[string]string{"config.json": "{}", "weights.safetensors": one}, "", "xx", "weights.safetensors was taken for it", ""},
		{"shards without an index", map[string]string{"config.json": "{}", "model-00001-of-00002.safetensors": a, "model-00002-of-00002.safetensors": b}, "", "aa bb", "all 2 files", ""},

		{"one file beside shards", map[string]string{"config.json": "{}", "model.safetensors": one, "1.safetensors": a, "2.safetensors": b, safetensors.IndexName: index}, "", "xx", "was taken for all of it, and not what model.safetensors.index.json lists", ""},
		{"one file beside an empty index", map[string]string{"config.json": "{}", "model.safetensors": one, safetensors.IndexName: "{}"}, "", "xx", "weight_map is missing or empty", ""},
		{"one file beside a pointer for the index", map[string]string{"config.json": "{}", "model.safetensors": one, safetensors.IndexName: pointer}, "", "xx", "a Git LFS pointer", ""},
		{"an index of the one file", map[string]string{"config.json": "{}", "model.safetensors": one, safetensors.IndexName: `{"weight_map": {"xx": "model.safetensors"}}`}, "", "xx", "", ""},
		{"an index of before", map[string]string{"config.json": "{}", "model.safetensors": one, safetensors.IndexName: index}, "", "xx", "model.safetensors was taken for all of it", ""},

		{"a safetensors file of no checkpoint", map[string]string{"config.json": "{}", "model.safetensors": one, "other.safetensors": a}, "other.safetensors", "", "", "is not part of the checkpoint in its folder"},
		{"another in upper case", map[string]string{"config.json": "{}", "model.safetensors": one, "X.SAFETENSORS": a}, "X.SAFETENSORS", "", "", "is not part of the checkpoint in its folder"},
		{"the only one in upper case", map[string]string{"config.json": "{}", "X.SAFETENSORS": one}, "X.SAFETENSORS", "xx", "X.SAFETENSORS was taken for it", ""},
		{"a safetensors file alone", map[string]string{"model.safetensors": one}, "model.safetensors", "", "", "holds no config.json"},
		{"several models", map[string]string{"a.gguf": model, "b-00001-of-00002.gguf": first, "b-00002-of-00002.gguf": second}, "", "", "", "holds 2 GGUF models: give one of them, a.gguf, b-00001-of-00002.gguf"},
		{"a projector", map[string]string{"mmproj.gguf": projector}, "mmproj.gguf", "", "", "the projector of images"},
		{"a projector alone", map[string]string{"mmproj.gguf": projector}, "", "", "", "holds mmproj.gguf, the projector of images"},
		{"no first part", map[string]string{"m-00002-of-00002.gguf": second}, "", "", "", "lacks m-00001-of-00002.gguf"},
		{"shards missing", map[string]string{"config.json": "{}", "model-00001-of-00003.safetensors": a, "model-00002-of-00003.safetensors": b}, "", "", "", "holds 2 of 3 safetensors files"},
		{"the same tensor in two shards", map[string]string{"config.json": "{}", "model-00001-of-00002.safetensors": a, "model-00002-of-00002.safetensors": a}, "", "", "", "name given twice"},
		{"several safetensors files", map[string]string{"config.json": "{}", "a.safetensors": a, "b.safetensors": b}, "", "", "", "holds several safetensors files"},
		{"empty folder", nil, "", "", "", "is an empty folder"},
		{"adapter", map[string]string{"adapter_config.json": "{}", "adapter_model.safetensors": one}, "", "", "", "is a LoRA adapter"},
		{"adapter with a configuration", map[string]string{"config.json": "{}", "adapter_config.json": "{}", "adapter_model.safetensors": one}, "", "", "", "is a LoRA adapter"},
		{"diffusers", map[string]string{"model_index.json": "{}"}, "", "", "", "diffusers"},
		{"cache folder", map[string]string{"snapshots/a/x": "", "blobs/b": "", "refs/main": ""}, "", "", "", "give the model's name, owner/name"},
		{"unfinished", map[string]string{"config.json": "{}", "model.safetensors.incomplete": "x"}, "", "", "", "a download that did not finish: model.safetensors.incomplete"},
		{"unfinished file", map[string]string{"model.safetensors.part": "x"}, "model.safetensors.part", "", "", "a download that did not finish"},
		{"beside an unfinished file", map[string]string{"m.gguf.part": "x"}, "m.gguf", "", "", "m.gguf.part is a download that did not finish"},
		{"beside one with brackets", map[string]string{"m[1].gguf.part": "x"}, "m[1].gguf", "", "", "m[1].gguf.part is a download that did not finish"},
		{"Meta's own format", map[string]string{"params.json": "{}", "consolidated.00.pth": "x"}, "", "", "", "its makers' own format"},
		{"Mistral's own format", map[string]string{"params.json": "{}", "consolidated.safetensors": one}, "", "", "", "its makers' own format"},
		{"Keras", map[string]string{"config.json": "{}", "tf_model.h5": "x"}, "", "", "", "holds tf_model.h5"},
		{"PyTorch", map[string]string{"config.json": "{}", "pytorch_model.bin": "x"}, "", "", "", "holds PyTorch files"},

		{"pointer for GGUF", map[string]string{"m.gguf": pointer}, "m.gguf", "", "", "a Git LFS pointer"},
		{"pointer for GGUF in a folder", map[string]string{"m.gguf": pointer}, "", "", "", "a Git LFS pointer"},
		{"pointer for safetensors", map[string]string{"config.json": "{}", "model.safetensors": pointer}, "", "", "", "a Git LFS pointer"},
		{"pointer for a shard", map[string]string{"config.json": "{}", "1.safetensors": a, "2.safetensors": pointer, safetensors.IndexName: index}, "", "", "", "a Git LFS pointer"},
		{"pointer for the index", map[string]string{"config.json": "{}", safetensors.IndexName: pointer}, "", "", "", "a Git LFS pointer"},
		{"pointer for config.json", map[string]string{"config.json": pointer, "model.safetensors": one}, "", "", "", "a Git LFS pointer"},
		{"pointers alone", map[string]string{"config.json": pointer, "model.safetensors": pointer, "tokenizer.json": pointer}, "", "", "", "git lfs pull"},
		{"page for GGUF", map[string]string{"m.gguf": "<!DOCTYPE html><html>"}, "m.gguf", "", "", "an HTML page"},
		{"page for safetensors", map[string]string{"config.json": "{}", "model.safetensors": "<!DOCTYPE html><html>"}, "", "", "", "an HTML page"},
		{"page for config.json", map[string]string{"config.json": "<html>", "model.safetensors": one}, "", "", "", "an HTML page"},
		{"empty safetensors", map[string]string{"config.json": "{}", "model.safetensors": ""}, "", "", "", "it is empty"},
		{"empty config.json", map[string]string{"config.json": "", "model.safetensors": one}, "", "", "", "is empty"},
		{"safetensors cut", map[string]string{"config.json": "{}", "model.safetensors": one[:len(one)-1]}, "", "", "", "the download did not finish"},
		{"GGUF cut", map[string]string{"m.gguf": model[:len(model)-40]}, "m.gguf", "", "", "the download did not finish"},
		{"zip", map[string]string{"m.zip": "PK\x03\x04aaaa"}, "m.zip", "", "", "a zip archive"},
		{"PyTorch file", map[string]string{"m.bin": "PK\x03\x04aaaaaaarchive/data.pkl"}, "m.bin", "", "", "a PyTorch file"},
		{"old GGML", map[string]string{"ggml-model.bin": "tjgg\x03\x00\x00\x00"}, "ggml-model.bin", "", "", "a GGJT file"},
		{"some text", map[string]string{"README.md": "# Model"}, "README.md", "", "", "neither a folder with config.json and safetensors files nor a GGUF file"},
		{"comment in config.json", map[string]string{"config.json": "{ // a\n}", "model.safetensors": one}, "", "", "", "line 1"},
	}
	for _, c := range cases {
		if checkpoint := opened(t, c.name, filepath.Join(folderOf(t, c.files), c.open), c.found, c.note, c.err); checkpoint != nil {
			checkpoint.Close()
		}
	}
}

// opened opens a path and wants these names of tensors and this note, or the error; it gives nil where there was one.
func opened(t *testing.T, what, path, names, note, fail string) Checkpoint {
	t.Helper()
	checkpoint, err := Open(path)
	if !matches(err, fail) {
		t.Errorf("%s: got %v, want %q", what, err, fail)
	}
	if err != nil {
		return nil
	}
	notes := strings.Join(checkpoint.Notes(), "; ")
	if got := strings.Join(checkpoint.Unused(), " "); got != names || note == "" && notes != "" || !strings.Contains(notes, note) {
		t.Errorf("%s: tensors %s, notes %q; want %s, %q", what, got, notes, names, note)
	}
	return checkpoint
}

func TestOpenLinks(t *testing.T) {
	folder := folderOf(t, map[string]string{"config.json": "{}", "model.safetensors": shards(t, "xx")})
	link := func(target, name string) string {
		path := filepath.Join(folder, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, err := Open(link("../blobs/0123", "m.gguf")); !matches(err, "is a link to ../blobs/0123, which is not there") {
		t.Errorf("a link to nothing: %v", err)
	}
	loop := link("loop", "loop")
	if _, err := Open(loop); err == nil {
		t.Error("a link to itself was opened")
	}
	folderOfLinks := folderOf(t, map[string]string{"config.json": "{}"})
	if err := os.Symlink("../../blobs/89ab", filepath.Join(folderOfLinks, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folderOfLinks); !matches(err, "is a link to ../../blobs/89ab") {
		t.Errorf("weights that are a link to nothing: %v", err)
	}
	link("../blobs/4567", "tokenizer.json")
	c, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Assets(); !matches(err, "is a link to ../blobs/4567, which is not there") {
		t.Errorf("a tokenizer.json that is a link to nothing: %v", err)
	}
}

func TestAssets(t *testing.T) {
	base := map[string]string{"config.json": "{}", "model.safetensors": shards(t, "xx")}
	cases := []struct {
		name  string
		files map[string]string
		want  func(a Assets) string // what is read
		text  string
		err   string
	}{
		{"byte order mark", map[string]string{"tokenizer.json": "\xef\xbb\xbf{}"}, func(a Assets) string { return string(a.Tokenizer) }, "{}", ""},
		{"special tokens", map[string]string{"special_tokens_map.json": "S", "added_tokens.json": "A"}, func(a Assets) string { return string(a.SpecialTokensMap) + string(a.AddedTokens) }, "SA", ""},
		{"vocabulary and merges", map[string]string{"vocab.json": "V", "merges.txt": "#version: 0.2\r\na b\r\n", "tokenizer.model": "P"},
			func(a Assets) string { return string(a.Vocab) + string(a.Merges) + string(a.SentencePiece) }, "V#version: 0.2\na b\nP", ""},
		{"beside tokenizer.json", map[string]string{"tokenizer.json": "T", "vocab.json": pointer, "merges.txt": pointer, "tokenizer.model": pointer},
			func(a Assets) string {
				return string(a.Tokenizer) + string(a.Vocab) + string(a.Merges) + string(a.SentencePiece)
			}, "T", ""},
		{"template with two bytes at the end of a line", map[string]string{"chat_template.jinja": "\xef\xbb\xbfa\r\nb\n", "chat_template.json": "{}"},
			func(a Assets) string { return string(a.ChatTemplate) + string(a.ChatTemplateJSON) }, "a\nb\n{}", ""},
		{"template of a folder", map[string]string{"additional_chat_templates/default.jinja": "D", "additional_chat_templates/rag.jinja": "R"},
			func(a Assets) string { return string(a.ChatTemplate) }, "D", ""},
		{"template beside a folder", map[string]string{"chat_template.jinja": "C", "additional_chat_templates/default.jinja": "D"},
			func(a Assets) string { return string(a.ChatTemplate) }, "C", ""},
		{"empty template", map[string]string{"chat_template.jinja": ""}, func(a Assets) string { return string(a.ChatTemplate) }, "", ""},
		{"pointer", map[string]string{"tokenizer.json": pointer}, nil, "", "tokenizer.json is a Git LFS pointer"},
		{"pointer for a vocabulary", map[string]string{"vocab.json": pointer}, nil, "", "vocab.json is a Git LFS pointer"},
		{"page", map[string]string{"tokenizer_config.json": "<!doctype html>"}, nil, "", "tokenizer_config.json is an HTML page"},
		{"empty", map[string]string{"generation_config.json": ""}, nil, "", "generation_config.json is empty"},
		{"UTF-16", map[string]string{"tokenizer_config.json": "\xff\xfe{\x00}\x00"}, nil, "", "text in UTF-16"},
		{"folder", map[string]string{"tokenizer.json/x": ""}, nil, "", "is no regular file"},
	}
	for _, c := range cases {
		files := maps.Clone(base)
		maps.Copy(files, c.files)
		checkpoint, err := Open(folderOf(t, files))
		if err != nil {
			t.Fatal(err)
		}
		a, err := checkpoint.Assets()
		if !matches(err, c.err) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.err)
		}
		if err == nil && c.want(a) != c.text {
			t.Errorf("%s: got %q, want %q", c.name, c.want(a), c.text)
		}
		checkpoint.Close()
	}
}

func TestListed(t *testing.T) {
	for names, want := range map[string]string{"": "", "a": "a", "a b": "a, b", "a b c": "a, b and 1 more"} {
		if got := Listed(strings.Fields(names), 2); got != want {
			t.Errorf("Listed(%s) = %q, want %q", names, got, want)
		}
	}
}

// A folder with more files than are looked at is refused: what was left out might be the model.
func TestFoldersHaveABound(t *testing.T) {
	folder := folderOf(t, map[string]string{"a": "", "b": "", "c": ""})
	if c, err := contentsOf(folder, 3); err != nil || len(c.names) != 3 {
		t.Errorf("got %v, %v, want three names", c.names, err)
	}
	if _, err := contentsOf(folder, 2); !matches(err, "holds more than 2 files") {
		t.Errorf("got %v, want an error", err)
	}
}
