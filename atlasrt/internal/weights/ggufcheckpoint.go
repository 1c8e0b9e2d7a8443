package weights

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
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
	var heads pairedHeads
	if arch.pairedRows {
		read := config.Fresh()
		heads = pairedHeads{query: read.Int("num_attention_heads"), key: read.Int("num_key_value_heads")}
	}
	places, err := hfNames(file, heads)
	if err != nil {
		return nil, err
	}
	generation, notes := ggufGeneration(file)
	return &ggufCheckpoint{file: file, config: config, places: places, notes: append(vocabularyNotes(file), notes...), generation: generation}, nil
}

func (c *ggufCheckpoint) Config() *Config { return c.config.Fresh() }

func (c *ggufCheckpoint) Info(name string) (Info, bool) {
	t, _, ok := c.find(name)
	return t.Info, ok
}

// find gives the stored tensor under its HuggingFace name, rows as they are in the file.
func (c *ggufCheckpoint) find(name string) (Tensor, place, bool) {
	p, ok := c.places[name]
	if !ok {
		return Tensor{}, p, false
	}
	t, _ := c.file.Tensor(p.name)
	t.Name = name
	if p.expert >= 0 {
		each := len(t.Data) / int(t.Shape[0])
		t.Data = t.Data[p.expert*each : (p.expert+1)*each : (p.expert+1)*each]
		t.Shape = t.Shape[1:]
	}
	return t, p, true
}

func (c *ggufCheckpoint) Tensor(name string) (Tensor, error) {
	t, p, ok := c.find(name)
	if !ok {
		return Tensor{}, fmt.Errorf("%s: %w", name, ErrMissing)
	}
	c.used.Mark(name)
	if p.heads == 0 {
		return t, nil
	}
	rows, err := unpermute(t, p.heads)
	if err != nil {
		return Tensor{}, err
	}
	c.file.Release(t)
	t.Data = rows
	return t, nil
}

// unpermute puts the rows of a Q or K projection, weight or bias, into HuggingFace's order. GGUF files of the llama
// architecture hold the two halves of a head interleaved, so that rotary pairs are neighbours: row 2i+s of a head is row
// s·half+i of HuggingFace's. Whole rows move, so blocks stay as they are.
func unpermute(t Tensor, heads int) ([]byte, error) {
	rows := 0
	if len(t.Shape) > 0 {
		rows = int(t.Shape[0])
	}
	if rows == 0 || rows%(2*heads) != 0 {
		return nil, fmt.Errorf("tensor %v: its rows are not divided into pairs by %d heads", t.Info, heads)
	}
	head, row := rows/heads, len(t.Data)/rows
	out := make([]byte, len(t.Data))
	err := mapping.Guard(func() error {
		for to := range rows {
			inHead := to % head
			from := to - inHead + inHead%(head/2)*2 + inHead/(head/2)
			copy(out[to*row:(to+1)*row], t.Data[from*row:])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("tensor %v: %w", t.Info, err)
	}
	return out, nil
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
