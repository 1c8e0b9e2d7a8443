// Package filetype says what a file is, by its first bytes. It serves error messages: a caller that expected a model's file and cannot use
// what it found asks here what it is.
//
// Invariants: nothing is read here, and no file is refused.
package filetype

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// BeginningBytes is how much of a file Describe wants to see. The last mark, that of a tar archive, ends at byte 262.
const BeginningBytes = 512

// marks are bytes that files of a kind have at an offset. The first mark that fits decides.
var marks = []struct {
	offset int
	bytes  string
	what   string
}{
	{0, "version https://git-lfs.github.com/spec", "a Git LFS pointer, which stands for the file (run `git lfs pull` in its folder)"},
	{0, "version https://hawser.github.com/spec", "a Git LFS pointer, which stands for the file (run `git lfs pull` in its folder)"},
	{0, "# xet version", "a Git Xet pointer, which stands for the file (run `git xet pull` in its folder)"},
	{0, "GGUF", "a GGUF file"},
	{0, "lmgg", "a GGML file, which came before GGUF (get the model as GGUF)"},
	{0, "fmgg", "a GGMF file, which came before GGUF (get the model as GGUF)"},
	{0, "tjgg", "a GGJT file, which came before GGUF (get the model as GGUF)"},
	{0, "algg", "a GGLA file, a LoRA adapter from before GGUF (merge it into its base model)"},
	{0, "\x1f\x8b", "packed with gzip (unpack it first)"},
	{0, "BZh", "packed with bzip2 (unpack it first)"},
	{0, "\xfd7zXZ\x00", "packed with xz (unpack it first)"},
	{0, "\x28\xb5\x2f\xfd", "packed with zstd (unpack it first)"},
	{0, "\x04\x22\x4d\x18", "packed with lz4 (unpack it first)"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive (unpack it first)"},
	{0, "Rar!", "a RAR archive (unpack it first)"},
	{257, "ustar", "a tar archive (unpack it first)"},
	{0, "\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras and TensorFlow write (get the model as safetensors or GGUF)"},
	{0, "\x93NUMPY", "a NumPy array (get the model as safetensors or GGUF)"},
	{4, "TFL3", "a TensorFlow Lite file (get the model as safetensors or GGUF)"},
	{0, "\xff\xfe", "text in UTF-16 (save it as UTF-8)"},
	{0, "\xfe\xff", "text in UTF-16 (save it as UTF-8)"},
	{0, "\x7fELF", "a program"},
	{0, "MZ\x90", "a program"},
	{0, "\x89PNG", "an image"},
	{0, "%PDF-", "a PDF document"},
}

// pickle says what a file of Python objects is. Reading one runs the code in it.
const pickle = "a PyTorch file, whose format can run code when it is read (get the model as safetensors or GGUF)"

// onnx is how an ONNX file begins (a protocol buffer): field 1, the version of its format, then field 2, the producer's name.
var onnx = regexp.MustCompile(`^\x08[\x01-\x20]\x12[\x01-\x40][A-Za-z][ -~]*`)

// Describe says what a file is that begins with these bytes, and what to do: "an HTML page, …"; "" where it is nothing known. Give
// BeginningBytes of it, or all where it has fewer.
func Describe(beginning []byte) string {
	if len(beginning) == 0 {
		return "empty (get it again)"
	}
	for _, m := range marks {
		if len(beginning) >= m.offset && bytes.HasPrefix(beginning[m.offset:], []byte(m.bytes)) {
			return m.what
		}
	}
	switch {
	case bytes.HasPrefix(beginning, []byte("PK\x03\x04")):
		if bytes.Contains(beginning, []byte("data.pkl")) {
			return pickle
		}
		return "a zip archive (unpack it first)"
	case len(beginning) > 2 && beginning[0] == 0x80 && beginning[1] >= 2 && beginning[1] <= 5:
		return pickle
	case onnx.Match(beginning):
		return "an ONNX file (get the model as safetensors or GGUF)"
	case len(bytes.Trim(beginning, "\x00")) == 0:
		return "zeros where it should begin: a download that did not finish, or a damaged disk (get it again)"
	}
	return page(beginning)
}

// message is how a server's error begins as JSON. The key alone is no sign: a vocabulary may have such a word.
var message = regexp.MustCompile(`^\{\s*"(error|errors|message|detail|status)"\s*:\s*["{\[]`)

// page recognises what a server answers in place of a file.
func page(beginning []byte) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(beginning, []byte("\xef\xbb\xbf")), " \t\r\n")
	lower := strings.ToLower(string(text[:min(len(text), 256)]))
	begins := func(prefixes ...string) bool {
		for _, prefix := range prefixes {
			if strings.HasPrefix(lower, prefix) {
				return true
			}
		}
		return false
	}
	const instead = "which a server sent in place of the file (does it ask for a login? get it again)"
	switch {
	case begins("<!doctype html", "<html", "<head", "<body") || begins("<!--", "<?xml", "<script", "<meta") && strings.Contains(lower, "<html"):
		return "an HTML page, " + instead
	case begins("<?xml", "<error>"):
		return "an XML document, " + instead
	case message.Match(text):
		return fmt.Sprintf("an error message, %.100q, %s", firstLine(text), instead)
	case len(beginning) < 300 && begins("invalid username", "invalid credentials", "repository not found", "entry not found", "revision not found", "access to model",
		"access denied", "forbidden", "unauthorized", "not found", "404"):
		return fmt.Sprintf("an error message, %.100q, %s", firstLine(text), instead)
	}
	return ""
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return strings.ToValidUTF8(string(bytes.TrimSpace(line)), string(utf8.RuneError))
}

// unfinished are endings that programs give to a download until it is complete.
var unfinished = []string{".part", ".partial", ".incomplete", ".crdownload", ".download", ".aria2", ".tmp"}

// Unfinished reports whether a file's name is that of a download which has not ended.
func Unfinished(name string) bool {
	for _, ending := range unfinished {
		if strings.HasSuffix(strings.ToLower(name), ending) {
			return true
		}
	}
	return false
}
