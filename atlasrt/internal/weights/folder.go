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
	names   map[string]origin // by a tensor's HuggingFace name; nil: the files' names are the same
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
	c, err := ParseConfig(file, text)
	if err != nil {
		return nil, err
	}
	return c.Text(), nil
}

// readQuantization reads modelopt's hf_quant_config.json where config.json says nothing of quantisation, and puts it in its place.
func (f *folder) readQuantization() error {
	const key, inside = "quantization_config", "quantization"
	if f.config.Has(key) {
		return nil
	}
	path := filepath.Join(f.path, "hf_quant_config.json")
	text, err := readText(path, maxConfigBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	all, err := parseObject(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	quantization, ok := all[inside].(map[string]any)
	if !ok {
		return fmt.Errorf("%s: %s is %s, wanted an object", path, inside, show(all[inside]))
	}
	if quantization["quant_method"] == nil {
		quantization["quant_method"] = "modelopt"
	}
	f.config.values = maps.Clone(f.config.values)
	f.config.values[key] = quantization
	f.notes = append(f.notes, fmt.Sprintf("%s is read as the quantization_config that config.json lacks", path))
	return nil
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

// settle finds how weights are quantised, under which names the tensors are to be asked for, and which head counts.
func (f *folder) settle() error {
	if err := f.readQuantization(); err != nil {
		return err
	}
	err := f.rename()
	if err == nil {
		err = f.unstack()
	}
	if err == nil {
		err = f.settleHead()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

func (f *folder) Config() *Config { return f.config.Fresh() }

// origin is where the files keep a tensor: as a tensor of theirs, or as one of the equal slices of one.
type origin struct {
	name          string
	slice, slices int // slices: 0 for a whole tensor
}

// find gives a tensor under its HuggingFace name.
func (f *folder) find(name string) (Tensor, bool) {
	from := origin{name: name}
	if f.names != nil {
		from = f.names[name]
	}
	t, ok := f.tensors.Tensor(from.name)
	if t.Name = name; from.name != name {
		t.Stored = from.name
	}
	if n := from.slices; n > 0 {
		each := len(t.Data) / n
		t.Data = t.Data[from.slice*each : (from.slice+1)*each : (from.slice+1)*each]
		t.Shape = []int64{t.Rows() / int64(n), t.Cols()}
	}
	return t, ok
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

func (f *folder) Unused() []string { return f.used.Unused(slices.Collect(f.all())) }

func (f *folder) Release(t Tensor) {
	if t.Stored != "" {
		t.Name = t.Stored
	}
	f.tensors.Release(t)
}

func (f *folder) Assets() (Assets, error) { return readAssets(f.path) }
func (f *folder) Notes() []string         { return slices.Clone(f.notes) }
func (f *folder) Close() error            { return f.tensors.Close() }

func (f *folder) String() string {
	return fmt.Sprintf("safetensors, %d files, %d tensors, %s", f.tensors.Files(), len(f.tensors.Names()), FormatBytes(f.tensors.Bytes()))
}
