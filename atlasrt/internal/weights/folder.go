package weights

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

// folder is a HuggingFace checkpoint: config.json and safetensors files.
type folder struct {
	path    string
	config  *Config
	tensors *safetensors.Folder
	used    Tracker
}

// ReadConfig reads config.json and the assets of a folder, which need not hold any weights.
func ReadConfig(path string) (*Config, Assets, error) {
	config, err := readConfig(path)
	if err != nil {
		return nil, Assets{}, err
	}
	assets, err := readAssets(path)
	return config, assets, err
}

func readConfig(path string) (*Config, error) {
	file := filepath.Join(path, "config.json")
	text, err := readLimited(file, maxConfigBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s holds no config.json: give the folder of a HuggingFace checkpoint, or a .gguf file (%w)", path, err)
	}
	if err != nil {
		return nil, err
	}
	return ParseConfig(file, text)
}

func openFolder(path string) (Checkpoint, error) {
	config, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	tensors, err := safetensors.OpenFolder(path)
	if errors.Is(err, os.ErrNotExist) && hasPickle(path) {
		return nil, fmt.Errorf("%s holds PyTorch files (.bin, .pt, .pth) only, whose format can run code when it is read: convert the checkpoint to safetensors (%w)", path, err)
	}
	if err != nil {
		return nil, err
	}
	return &folder{path: path, config: config, tensors: tensors}, nil
}

func hasPickle(path string) bool {
	for _, pattern := range []string{"*.bin", "*.pt", "*.pth"} {
		if found, _ := filepath.Glob(filepath.Join(path, pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

func (f *folder) Config() *Config { return f.config.Fresh() }

func (f *folder) Info(name string) (Info, bool) {
	t, ok := f.tensors.Tensor(name)
	return t.Info, ok
}

func (f *folder) Tensor(name string) (Tensor, error) {
	t, ok := f.tensors.Tensor(name)
	if !ok {
		return Tensor{}, fmt.Errorf("%s: %w", name, ErrMissing)
	}
	f.used.Mark(name)
	return t, nil
}

func (f *folder) Unused() []string        { return f.used.Unused(f.tensors.Names()) }
func (f *folder) Release(t Tensor)        { f.tensors.Release(t) }
func (f *folder) Assets() (Assets, error) { return readAssets(f.path) }
func (f *folder) Close() error            { return f.tensors.Close() }

func (f *folder) String() string {
	return fmt.Sprintf("safetensors, %d files, %d tensors, %s", f.tensors.Files(), len(f.tensors.Names()), FormatBytes(f.tensors.Bytes()))
}
