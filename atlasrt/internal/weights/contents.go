package weights

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/filetype"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

// maxEntries bounds what is looked at of a folder.
const maxEntries = 100_000

// contents is the names of what lies in a folder, sorted.
type contents struct {
	path  string
	names []string
}

// contentsOf reads the names of at most most entries; more are an error.
func contentsOf(path string, most int) (contents, error) {
	folder, err := os.Open(path)
	if err != nil {
		return contents{}, fmt.Errorf("open checkpoint: %w", err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(most + 1)
	if err != nil && err != io.EOF {
		return contents{}, fmt.Errorf("open checkpoint: %w", err)
	}
	if len(names) > most {
		return contents{}, fmt.Errorf("open checkpoint: %s holds more than %d files (give the folder of one checkpoint)", path, most)
	}
	slices.Sort(names)
	return contents{path, names}, nil
}

func (c contents) has(name string) bool {
	_, found := slices.BinarySearch(c.names, name)
	return found
}

// ending lists the files whose names end so, in lower or upper case.
func (c contents) ending(endings ...string) []string {
	return slices.DeleteFunc(slices.Clone(c.names), func(name string) bool {
		return !EndsIn(strings.ToLower(name), endings...)
	})
}

// gguf lists the GGUF models, one of several parts by its first, without projectors of images.
func (c contents) gguf() []string {
	return slices.DeleteFunc(gguf.Pieces(c.names), func(name string) bool { return strings.Contains(strings.ToLower(name), "mmproj") })
}

var shardForm = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})\.safetensors$`)

// openSafetensors opens the files that hold the weights, and says what was assumed. Without such files it gives nil.
func (c contents) openSafetensors() (tensors *safetensors.Folder, notes []string, err error) {
	if !c.has(safetensors.IndexName) {
		files, notes := c.unlisted()
		if len(files) == 0 {
			return nil, nil, nil
		}
		tensors, err = safetensors.OpenFiles(c.path, files...)
		return tensors, notes, err
	}
	index, err := safetensors.ReadIndex(c.path)
	if c.has(safetensors.SingleName) && !slices.Contains(safetensors.Shards(index), safetensors.SingleName) { // as transformers, which looks for this one first
		why := "the index is of other files"
		if err != nil {
			why = err.Error()
		}
		tensors, err = safetensors.OpenFiles(c.path, safetensors.SingleName)
		return tensors, []string{fmt.Sprintf("%s: %s was taken for all of it, and not what %s lists: %s", c.path, safetensors.SingleName, safetensors.IndexName, why)}, err
	}
	if err != nil {
		return nil, nil, err
	}
	tensors, err = safetensors.OpenIndexed(c.path, index)
	return tensors, nil, err
}

// unlisted finds the files that hold the weights where no index lists them, and says what was assumed.
func (c contents) unlisted() (files, notes []string) {
	if c.has(safetensors.SingleName) {
		return []string{safetensors.SingleName}, nil
	}
	all := slices.DeleteFunc(c.ending(".safetensors"), func(name string) bool {
		return strings.HasPrefix(name, "adapter") || strings.HasPrefix(name, "consolidated") || strings.HasPrefix(name, "optimizer")
	})
	if len(all) == 1 && !shardForm.MatchString(all[0]) {
		return all, []string{fmt.Sprintf("%s holds no %s: %s was taken for it", c.path, safetensors.SingleName, all[0])}
	}
	for i, name := range all {
		m := shardForm.FindStringSubmatch(name)
		if m == nil || m[1] != shardForm.FindStringSubmatch(all[0])[1] || m[3] != fmt.Sprintf("%05d", len(all)) || m[2] != fmt.Sprintf("%05d", i+1) {
			return nil, nil
		}
	}
	if len(all) > 0 {
		notes = []string{fmt.Sprintf("%s holds no %s: all %d files that belong to one model by their names were taken", c.path, safetensors.IndexName, len(all))}
	}
	return all, notes
}

// problem says what the folder is, as it holds no checkpoint that can be opened.
func (c contents) problem() error {
	is := func(what string, arguments ...any) error {
		return fmt.Errorf("%s %s", c.path, fmt.Sprintf(what, arguments...))
	}
	config := c.has("config.json")
	models, shards := c.gguf(), c.ending(".safetensors")
	switch {
	case len(c.names) == 0:
		return is("is an empty folder: %s", wanted)
	case len(models) > 1:
		return is("holds %d GGUF models: give one of them, %s", len(models), Listed(models, maxListed))
	case c.has("adapter_config.json"):
		return is("is a LoRA adapter, which changes another model: merge it into that, and give the folder of the result")
	case c.has("model_index.json"):
		return is("is a diffusers pipeline, which makes images: %s", wanted)
	case c.has("snapshots") && c.has("blobs"):
		return is("is a model's folder in the HuggingFace cache: give the model's name, owner/name, or a folder below %s", filepath.Join(c.path, "snapshots"))
	}
	for _, name := range c.names {
		if m := shardForm.FindStringSubmatch(name); m != nil && config {
			parts, _ := strconv.Atoi(m[3])
			return is("holds %d of %d safetensors files and no %s: finish the download", len(shards), parts, safetensors.IndexName)
		}
	}
	if left := c.ending(".gguf"); len(left) > 0 {
		if part, ok := gguf.ParsePartName(left[0]); ok {
			return is("lacks %s, the first of %d parts: finish the download", part.Of(1), part.Parts)
		}
		return is("holds %s, the projector of images of a model, and not the model: %s", left[0], wanted)
	}
	unfinished := slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return !filetype.Unfinished(name) })
	pickles := c.ending(".bin", ".pt", ".pth", ".ckpt")
	others := c.ending(".h5", ".msgpack", ".onnx", ".tflite", ".npz")
	switch {
	case len(unfinished) > 0:
		return is("holds a download that did not finish: %s (finish it)", Listed(unfinished, maxListed))
	case c.has("params.json") && len(c.ending(".safetensors", ".pth")) > 0 && !config:
		return is("holds a model in its makers' own format (params.json): get it in HuggingFace's, with config.json and safetensors files")
	case len(shards) > 0 && config:
		return is("holds several safetensors files and no %s: finish the download, or give a folder of the one model (%s)", safetensors.IndexName, Listed(shards, maxListed))
	case len(pickles) > 0 && config:
		return is("holds PyTorch files (.bin, .pt, .pth) only, whose format can run code when it is read: convert the checkpoint to safetensors")
	case len(others) > 0:
		return is("holds %s: convert the checkpoint to safetensors, or %s", Listed(others, maxListed), wanted)
	case config:
		return is("holds config.json and no weights, neither %s nor %s: finish the download", safetensors.SingleName, safetensors.IndexName)
	}
	return is("holds no config.json: %s", wanted)
}

// maxListed bounds the names in one error.
const maxListed = 10
