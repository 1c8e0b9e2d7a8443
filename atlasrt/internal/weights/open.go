package weights

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/filetype"
)

// Open opens a folder with config.json and safetensors files, a GGUF file, the first part of one, or a folder that holds
// one. Files are known by what they hold, not by their names.
func Open(path string) (Checkpoint, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open checkpoint: %w", whyMissing(path, err))
	case info.IsDir():
		return openFolder(path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open checkpoint: %s is neither a folder nor a file (%v)", path, info.Mode().Type())
	}
	return openFile(path)
}

// whyMissing adds to the error of a path that leads nowhere what stands in its place.
func whyMissing(path string, err error) error {
	if target, linkErr := os.Readlink(path); linkErr == nil {
		return fmt.Errorf("%s is a link to %s, which is not there (finish the download, or make the link again): %w", path, target, err)
	}
	beside, _ := contentsOf(filepath.Dir(path), maxEntries) // a folder that cannot be read explains nothing
	for _, name := range beside.names {
		if strings.HasPrefix(name, filepath.Base(path)+".") && filetype.Unfinished(name) {
			return fmt.Errorf("%s is a download that did not finish (finish it): %w", filepath.Join(beside.path, name), err)
		}
	}
	return err
}

const wanted = "give the folder of a HuggingFace checkpoint, or a GGUF file"

// openFile opens a GGUF file, or the folder that a file of a HuggingFace checkpoint lies in.
func openFile(path string) (Checkpoint, error) {
	beginning, err := readBeginning(path)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	base := filepath.Base(path)
	switch {
	case strings.HasPrefix(string(beginning), "GGUF"), strings.Contains(strings.ToLower(base), ".gguf"):
		return openGGUF(path)
	case OfFolder(base):
		return openAround(path)
	case filetype.Unfinished(base):
		return nil, fmt.Errorf("open checkpoint: %s is a download that did not finish (finish it)", path)
	}
	if what := filetype.Describe(beginning); what != "" {
		return nil, fmt.Errorf("open checkpoint: %s is %s: %s", path, what, wanted)
	}
	return nil, fmt.Errorf("open checkpoint: %s is neither a folder with config.json and safetensors files nor a GGUF file", path)
}

// OfFolder reports whether a name is that of a file of a HuggingFace checkpoint, whose folder Open opens in its place.
func OfFolder(name string) bool {
	name = strings.ToLower(name)
	return name == "config.json" || strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".safetensors.index.json")
}

// openAround opens the folder of one file of a checkpoint. Weights that the folder leaves alone are not taken for others.
func openAround(path string) (Checkpoint, error) {
	c, err := openFolder(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %s is one file of a HuggingFace checkpoint, whose folder is opened: %w", path, err)
	}
	f, ok := c.(*folder)
	if strings.HasSuffix(strings.ToLower(path), ".safetensors") && !(ok && slices.Contains(f.tensors.Shards(), filepath.Base(path))) {
		return nil, errors.Join(fmt.Errorf("open checkpoint: %s is not part of the checkpoint in its folder, %v (%s)", path, c, wanted), c.Close())
	}
	if ok { // a GGUF model's own notes name the folder
		f.notes = append(f.notes, fmt.Sprintf("%s is one file of a checkpoint: its folder was opened", path))
	}
	return c, nil
}

func readBeginning(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	beginning := make([]byte, filetype.BeginningBytes)
	n, err := io.ReadFull(file, beginning)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	return beginning[:n], nil
}
