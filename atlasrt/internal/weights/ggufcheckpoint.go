package weights

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

// ggufCheckpoint shows a GGUF file as HuggingFace's tensors.
type ggufCheckpoint struct {
	file   *gguf.File
	config *Config
	places map[string]place
	notes  []string
	used   Tracker

	generation []byte // as a generation_config.json
}

func openGGUF(path string, notes ...string) (Checkpoint, error) {
	file, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	c, err := newGGUF(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.notes = append(notes, c.notes...)
	return c, nil
}

// otherwise is what a GGUF file holds that is no language model, by general.type or by its architecture.
var otherwise = map[string]string{
	"adapter": "a LoRA adapter, which changes another model (merge it into that with llama-export-lora)",
	"mmproj":  "the projector of images of a model (give the model itself)",
	"clip":    "the projector of images of a model (give the model itself)",
	"imatrix": "an importance matrix, which quantising a model needs (give the model itself)",
	"vocab":   "a vocabulary without a model (give the model itself)",
}

// checkKind refuses a file that holds no model.
func checkKind(file *gguf.File) error {
	for _, key := range []string{"general.type", "general.architecture"} {
		kind, err := file.String(key)
		if what := otherwise[kind]; err == nil && what != "" {
			return fmt.Errorf("this is %s", what)
		}
	}
	if len(file.Names()) == 0 {
		return errors.New("this is a GGUF file without tensors: a vocabulary, or a part of a model (give the model itself)")
	}
	return nil
}

func newGGUF(file *gguf.File) (*ggufCheckpoint, error) {
	if err := checkKind(file); err != nil {
		return nil, err
	}
	config, arch, err := translate(file)
	if err != nil {
		return nil, err
	}
	places, err := hfNames(file, arch, readSizes(config.Fresh()))
	if err != nil {
		return nil, err
	}
	generation, notes := ggufGeneration(file)
	return &ggufCheckpoint{file: file, config: config, places: places, notes: append(vocabularyNotes(file), notes...), generation: generation}, nil
}

// readSizes reads what rows are told apart by; what the architecture does not have is 0.
func readSizes(c *Config) sizes {
	return sizes{
		layers: c.IntOr("num_hidden_layers", 0), predicting: c.IntOr("mtp_num_hidden_layers", 0),
		queries: c.IntOr("num_attention_heads", 0), keys: c.IntOr("num_key_value_heads", 0), head: c.IntOr("head_dim", 0),
		linear: linearSizes{
			keyHeads: c.IntOr("linear_num_key_heads", 0), valueHeads: c.IntOr("linear_num_value_heads", 0),
			keyDim: c.IntOr("linear_key_head_dim", 0), valueDim: c.IntOr("linear_value_head_dim", 0),
		},
	}
}

func (c *ggufCheckpoint) Config() *Config { return c.config.Fresh() }

func (c *ggufCheckpoint) Info(name string) (Info, bool) {
	p, ok := c.places[name]
	if !ok {
		return Info{}, false
	}
	t, _ := c.file.Tensor(p.name)
	return Info{Name: name, Type: t.Type, Shape: p.shape}, true
}

func (c *ggufCheckpoint) Tensor(name string) (Tensor, error) {
	p, ok := c.places[name]
	if !ok {
		return Tensor{}, fmt.Errorf("%s: %w", name, ErrMissing)
	}
	c.used.Mark(name)
	t, _ := c.file.Tensor(p.name)
	t.Name = name
	if p.expert >= 0 {
		each := len(t.Data) / int(t.Shape[0])
		t.Data = t.Data[p.expert*each : (p.expert+1)*each : (p.expert+1)*each]
		t.Shape = t.Shape[1:]
	}
	var rows []byte
	var err error
	switch {
	case p.rows != nil && inOneStretch(p.rows, t.Shape):
		t.Data = stretch(t, p.rows[0])
	case p.rows != nil:
		rows, err = gather(t, p.rows)
	case p.heads != 0:
		rows, err = unpermute(t, p.heads)
	}
	if err != nil {
		return Tensor{}, err
	}
	if rows != nil {
		c.file.Release(t)
		t.Data = rows
	}
	t.Shape = p.shape
	return t, nil
}

func (c *ggufCheckpoint) Unused() []string { return c.used.Unused(slices.Collect(maps.Keys(c.places))) }
func (c *ggufCheckpoint) Notes() []string  { return slices.Clone(c.notes) }
func (c *ggufCheckpoint) Release(t Tensor) { c.file.Release(t) }
func (c *ggufCheckpoint) Close() error     { return c.file.Close() }

func (c *ggufCheckpoint) Assets() (Assets, error) {
	vocabulary, err := readVocabulary(c.file)
	if err != nil {
		return Assets{}, fmt.Errorf("%s: %w", c.file.Path(), err)
	}
	a := Assets{Vocabulary: vocabulary, GenerationConfig: c.generation}
	a.Name, _ = c.file.String("general.name") // a name that is no text is none
	if vocabulary.ChatTemplate != "" {
		a.ChatTemplate = []byte(vocabulary.ChatTemplate)
	}
	return a, nil
}

func (c *ggufCheckpoint) String() string {
	if files := c.file.Files(); files > 1 {
		return fmt.Sprintf("GGUF, %d files, %d tensors, %s", files, len(c.file.Names()), FormatBytes(c.file.Bytes()))
	}
	return fmt.Sprintf("GGUF, %d tensors, %s", len(c.file.Names()), FormatBytes(c.file.Bytes()))
}
