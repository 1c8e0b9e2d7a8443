package safetensors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const maxLinkBytes = 1024

// textLink reads what git leaves in the place of a symbolic link where it makes none: a file whose text is the link's
// target. Only a relative path to a safetensors file that is there counts as one.
func textLink(path string) (target string, ok bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxLinkBytes {
		return "", false
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(text), ".safetensors") || strings.ContainsFunc(string(text), func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", false
	}
	if filepath.IsAbs(string(text)) {
		return "", false
	}
	target = filepath.Join(filepath.Dir(path), string(text))
	info, err = os.Stat(target)
	return target, err == nil && info.Mode().IsRegular()
}

// openShard opens a file of a folder, or the one that a link written as text names.
func (f *Folder) openShard(path string) (*File, error) {
	if target, ok := textLink(path); ok {
		f.notes = append(f.notes, fmt.Sprintf("%s is a symbolic link that was written as text: %s was opened", path, target))
		path = target
	}
	return Open(path)
}
