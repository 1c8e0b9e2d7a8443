package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/hub"
	"github.com/atlas-inference/atlas/internal/table"
)

// listCommand lists the models that --model can name without a download.
type listCommand struct {
	hardwareFlags
	Cache    string `help:"Folder of models besides the HuggingFace cache." default:".cache"`
	HubCache string `help:"HuggingFace cache; empty: the hub folder of --hub-home." env:"HF_HUB_CACHE"`
	HubHome  string `help:"HuggingFace home; empty: ~/.cache/huggingface." env:"HF_HOME"`
	JSON     bool   `help:"Print JSON."`
}

// state says what can be done with a model.
type state string

const (
	modelFits     state = "fits"
	modelLarge    state = "too large"
	modelUnserved state = "not served"
	modelDamaged  state = "damaged"
	modelUnknown  state = "unknown" // no kernels run here
)

// listed is a model as it is listed.
type listed struct {
	Model   string `json:"model"` // what --model takes
	Format  string `json:"format,omitempty"`
	Stored  string `json:"stored,omitempty"` // how most of its bytes are
	Bytes   int64  `json:"bytes,omitempty"`
	Context int32  `json:"context,omitempty"`
	State   state  `json:"state"`
	Reason  string `json:"reason,omitempty"`
}

// Run implements the command.
func (c *listCommand) Run() error {
	found, err := c.find()
	if err != nil {
		return err
	}
	target, noTarget := c.hardwareFlags.open("")
	models := make([]listed, len(found))
	for i, f := range found {
		models[i] = look(f, target, noTarget)
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(models)
	}
	return printModels(os.Stdout, models, c.Cache)
}

// find looks where models lie.
func (c *listCommand) find() ([]hub.Found, error) {
	found, err := below(c.Cache)
	if err != nil {
		return nil, err
	}
	folder, err := modelFlags{HubCache: c.HubCache, HubHome: c.HubHome}.hubFolder()
	if err != nil {
		return nil, err
	}
	cached, err := hub.List(folder)
	return append(found, cached...), err
}

// below lists a folder's GGUF files and folders with a config.json, its own and those of its folders.
func below(folder string) ([]hub.Found, error) {
	var found []hub.Found
	for _, at := range []string{escaped(folder), filepath.Join(escaped(folder), "*")} {
		folders, err := filepath.Glob(filepath.Join(at, "config.json"))
		if err != nil {
			return nil, fmt.Errorf("--cache %s: %w", folder, err)
		}
		for _, config := range folders {
			path := filepath.Dir(config)
			if weighs, err := filepath.Glob(filepath.Join(escaped(path), "*.safetensors*")); err == nil && len(weighs) > 0 {
				found = append(found, hub.Found{Model: path, Path: path})
			}
		}
		files, err := filepath.Glob(filepath.Join(at, "*.[gG][gG][uU][fF]"))
		if err != nil {
			return nil, fmt.Errorf("--cache %s: %w", folder, err)
		}
		for _, path := range gguf.Pieces(files) {
			name := path
			if path == filepath.Join(folder, smollm2) {
				name = "smollm2"
			}
			found = append(found, hub.Found{Model: name, Path: path})
		}
	}
	return found, nil
}

// look says what a model is. Nothing is loaded.
func look(f hub.Found, target *instance.Target, noTarget error) listed {
	l := listed{Model: f.Model, State: modelDamaged}
	if f.Problem != nil {
		l.Reason = f.Problem.Error()
		return l
	}
	l.Format, l.Bytes = onDisk(f.Path)
	checkpoint, err := weights.Open(f.Path)
	if err != nil {
		l.Reason = err.Error()
		return l
	}
	defer checkpoint.Close()
	l.Stored, _, _ = strings.Cut(bytesByType(checkpoint, checkpoint.Unused()), " ") // nobody has asked for a tensor yet
	if noTarget != nil {
		l.State, l.Reason = modelUnknown, noTarget.Error()
		return l
	}
	sizes, err := sizeFlags{KVType: "auto"}.sizes(false) // as serve has them
	if err != nil {
		l.Reason = err.Error()
		return l
	}
	p, err := instance.Prepare(target, checkpoint, sizes)
	if err != nil {
		l.State, l.Reason = modelUnserved, err.Error()
		return l
	}
	l.Context = p.Layout.MaxContext
	if _, err := p.Plan(); err != nil {
		l.State, l.Reason = modelLarge, err.Error()
		return l
	}
	l.State = modelFits
	return l
}

// onDisk is a model's format, and the size of its weights.
func onDisk(path string) (format string, bytes int64) {
	files := []string{path}
	format = "GGUF"
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		format = "safetensors"
		files, _ = filepath.Glob(filepath.Join(escaped(path), "*.safetensors"))
	} else if part, ok := gguf.ParsePartName(filepath.Base(path)); ok {
		files = nil
		for _, name := range part.All() {
			files = append(files, filepath.Join(filepath.Dir(path), name))
		}
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			bytes += info.Size()
		}
	}
	return format, bytes
}

// escaped is a path that a pattern takes as it is.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// printModels writes the list for people, whose reasons come below it.
func printModels(w io.Writer, models []listed, cache string) error {
	if len(models) == 0 {
		_, err := fmt.Fprintln(w, table.Fit(fmt.Sprintf("no models, neither below %s nor in the HuggingFace cache (make serve fetches SmolLM2; run --model owner/name fetches that one)", cache), table.Columns))
		return err
	}
	t := table.New("model", "format", "stored", "\tsize", "\tcontext", "state")
	var reasons []string
	for _, m := range models {
		size, context := "", ""
		if m.Bytes > 0 {
			size = formatBytes(m.Bytes)
		}
		if m.Context > 0 {
			context = fmt.Sprint(m.Context)
		}
		t.Row(m.Model, m.Format, m.Stored, size, context, string(m.State))
		if m.Reason != "" {
			reasons = append(reasons, fmt.Sprintf("%s, %s: %s", m.Model, m.State, m.Reason))
		}
	}
	err := t.Print(w)
	for _, reason := range reasons {
		_, printed := fmt.Fprintln(w, table.Fit(reason, table.Columns))
		err = errors.Join(err, printed)
	}
	return err
}
