package weights

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

// folder is a HuggingFace checkpoint: config.json and safetensors files.
type folder struct {
	path    string
	config  *Config
	tensors *safetensors.Folder
	names   map[string]string // a tensor's HuggingFace name → the file's; nil: they are the same
	notes   []string
	used    Tracker
}

// readConfig reads the config.json of a folder.
func readConfig(path string) (*Config, error) {
	file := filepath.Join(path, "config.json")
	text, err := readText(file, maxConfigBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s holds no config.json: give the folder of a HuggingFace checkpoint, or a .gguf file (%w)", path, err)
	}
	if err != nil {
		return nil, err
	}
	return ParseConfig(file, text)
}

// openFolder opens a folder: config.json with safetensors files, or the one GGUF model that it holds.
func openFolder(path string) (Checkpoint, error) {
	held, err := contentsOf(path, maxEntries)
	if err != nil {
		return nil, err
	}
	var tensors *safetensors.Folder
	var notes []string
	if held.has("config.json") {
		if tensors, notes, err = held.openSafetensors(); err != nil {
			return nil, err
		}
	}
	if tensors == nil {
		if models := held.gguf(); len(models) == 1 {
			return openGGUF(filepath.Join(path, models[0]), fmt.Sprintf("%s is a folder: %s was opened, the only GGUF model in it", path, models[0]))
		}
		return nil, held.problem()
	}
	f := &folder{path: path, tensors: tensors, notes: append(notes, tensors.Notes()...)}
	if f.config, err = readConfig(path); err == nil {
		err = f.settle()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// settle finds under which names the tensors are to be asked for, and which head counts.
func (f *folder) settle() error {
	err := f.rename()
	if err == nil {
		err = f.untie()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

func (f *folder) Config() *Config { return f.config.Fresh() }

// find gives a tensor under its HuggingFace name.
func (f *folder) find(name string) (Tensor, bool) {
	t, ok := f.tensors.Tensor(f.stored(name))
	t.Name = name
	return t, ok
}

// stored is what the files call a tensor.
func (f *folder) stored(name string) string {
	if f.names == nil {
		return name
	}
	return f.names[name]
}

func (f *folder) Info(name string) (Info, bool) {
	t, ok := f.find(name)
	return t.Info, ok
}

func (f *folder) Tensor(name string) (Tensor, error) {
	t, ok := f.find(name)
	if !ok {
		return Tensor{}, fmt.Errorf("%s: %w", name, ErrMissing)
	}
	f.used.Mark(name)
	return t, nil
}

func (f *folder) Unused() []string {
	if f.names == nil {
		return f.used.Unused(f.tensors.Names())
	}
	return f.used.Unused(slices.Collect(maps.Keys(f.names)))
}

func (f *folder) Release(t Tensor) {
	t.Name = f.stored(t.Name)
	f.tensors.Release(t)
}

func (f *folder) Assets() (Assets, error) { return readAssets(f.path) }
func (f *folder) Notes() []string         { return slices.Clone(f.notes) }
func (f *folder) Close() error            { return f.tensors.Close() }

func (f *folder) String() string {
	return fmt.Sprintf("safetensors, %d files, %d tensors, %s", f.tensors.Files(), len(f.tensors.Names()), FormatBytes(f.tensors.Bytes()))
}
