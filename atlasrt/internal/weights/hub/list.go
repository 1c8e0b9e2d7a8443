package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

// Found is a model in a cache.
type Found struct {
	Model string // what Resolve takes
	Path  string // what it gives; empty where Problem says why there is none
	// Problem is what is wrong with it: a download that did not finish, a link that leads elsewhere.
	Problem error
}

// mostModels bounds a list: a cache that holds more is none.
const mostModels = 10000

// List lists what a HuggingFace cache holds that Resolve would find there, and what is not whole. A cache that is not there is empty.
// Nothing is written and nobody is asked.
func List(folder string) ([]Found, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the HuggingFace cache: %w", err)
	}
	var all []Found
	for _, entry := range entries {
		name, ok := strings.CutPrefix(entry.Name(), "models--")
		owner, name, two := strings.Cut(name, "--")
		if !ok || !two {
			continue
		}
		all = append(all, repository(folder, owner+"/"+name)...)
		if len(all) > mostModels {
			return nil, fmt.Errorf("the HuggingFace cache %s holds more than %d models", folder, mostModels)
		}
	}
	return all, nil
}

// repository lists the models of one repository, by the revisions that have a name.
func repository(folder, model string) []Found {
	want, err := parseReference(model)
	if err != nil {
		return nil // no model is called so
	}
	c := &cache{want: want, path: filepath.Join(folder, want.folder())}
	if c.root, err = os.OpenRoot(c.path); err != nil {
		return []Found{{Model: model, Problem: err}}
	}
	defer c.close()
	var all []Found
	for _, revision := range c.revisions() {
		name := model
		if revision != want.revision {
			name += "@" + revision
		}
		all = append(all, c.models(name)...)
	}
	if len(all) == 0 {
		return []Found{{Model: model, Problem: errors.New("no revision of it is whole (name it to finish the download)")}}
	}
	return all
}

// revisions are main, where it is there, and the other names.
func (c *cache) revisions() []string {
	var names []string
	// What cannot be read has no names that Resolve would find either.
	_ = fs.WalkDir(c.root.FS(), "refs", func(file string, entry fs.DirEntry, err error) error {
		if name, ok := strings.CutPrefix(file, "refs/"); ok && err == nil && !entry.IsDir() && !strings.HasSuffix(name, ".part") {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	if i := slices.Index(names, c.want.revision); i >= 0 { // the default
		names = slices.Insert(slices.Delete(names, i, i+1), 0, c.want.revision)
	}
	return names
}

// models lists what one revision holds, by its name.
func (c *cache) models(name string) []Found {
	whole, err := parseReference(name)
	if err != nil {
		return nil // no revision can be asked for by such a name
	}
	snapshot, files, err := c.files(whole, mostModels)
	if err != nil {
		return []Found{{Model: name, Problem: err}}
	}
	var all []Found
	pieces := gguf.Pieces(files)
	begun := slices.Contains(files, "config.json") && len(pieces) == 0 // which GGUF models have beside them, too
	if begun || slices.Contains(files, safetensors.IndexName) || slices.Contains(files, safetensors.SingleName) {
		all = append(all, c.found(name, whole))
	}
	for _, file := range pieces {
		if one, err := parseReference(name + ":" + file); err == nil {
			all = append(all, c.found(name+":"+file, one))
		}
	}
	if len(all) == 0 {
		all = append(all, Found{Model: name, Problem: fmt.Errorf("%s holds neither safetensors nor GGUF files", snapshot)})
	}
	return all
}

// found looks for one model.
func (c *cache) found(model string, want reference) Found {
	c.want = want
	path, err := c.find()
	if err == nil && path == "" {
		err = errors.New("it is not whole (name it to finish the download)")
	}
	return Found{Model: model, Path: path, Problem: err}
}

// files are those of a revision, below its snapshot; more than most are an error.
func (c *cache) files(want reference, most int) (snapshot string, files []string, err error) {
	c.want = want
	commit, err := c.commit()
	if err != nil {
		return "", nil, err
	}
	snapshot = path.Join("snapshots", commit)
	below := map[string]bool{}
	err = fs.WalkDir(c.root.FS(), snapshot, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		below[strings.TrimPrefix(file, snapshot+"/")] = true
		if len(below) > most {
			return fmt.Errorf("%s holds more than %d files, which no model has", filepath.Join(c.path, snapshot), most)
		}
		return nil
	})
	return filepath.Join(c.path, snapshot), slices.Sorted(maps.Keys(below)), err
}
