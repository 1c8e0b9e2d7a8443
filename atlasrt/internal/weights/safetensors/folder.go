package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/filetype"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

const (
	// IndexName is the file that says which shard holds which tensor.
	IndexName = "model.safetensors.index.json"
	// SingleName is the only shard where there is no index.
	SingleName = "model.safetensors"

	maxIndexBytes = 100_000_000
	maxShards     = 10_000
)

// Folder is a checkpoint's safetensors files, seen as one.
type Folder struct {
	shards []*shard
	home   map[string]*shard // tensor → the file that holds it
	notes  []string
}

// shard is a file of a folder.
type shard struct {
	*File
	name string // in the folder, and in the index; a link leads to a file that may have another
}

// OpenIndexed opens every shard of a folder that its index names. Other safetensors files of the folder are left alone.
// Where the index and the shards differ the shards count, and a note says so; of two shards that hold a tensor the one
// counts that the index names.
func OpenIndexed(folder string, index map[string]string) (*Folder, error) {
	return openShards(folder, Shards(index), index)
}

// OpenFiles opens these files of a folder, whatever an index says. No tensor may be in two of them.
func OpenFiles(folder string, names ...string) (*Folder, error) {
	return openShards(folder, names, nil)
}

// ReadIndex reads the folder's index: tensor → plain file name. The error is os.ErrNotExist when there is no index.
func ReadIndex(folder string) (map[string]string, error) {
	path := filepath.Join(folder, IndexName)
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIndexBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	index, err := ParseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, orElse(err, text))
	}
	return index, nil
}

// orElse adds to the error of a file that could not be read what the file is, where that is known.
func orElse(err error, content []byte) error {
	if what := filetype.Describe(content[:min(filetype.BeginningBytes, len(content))]); what != "" {
		return fmt.Errorf("it is %s: %w", what, err)
	}
	return err
}

// ParseIndex reads the text of an index: tensor → plain file name.
func ParseIndex(text []byte) (map[string]string, error) {
	if len(text) > maxIndexBytes {
		return nil, fmt.Errorf("the index is larger than %d bytes", maxIndexBytes)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // which some editors put first
	var raw struct {
		WeightMap weightMap `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	if len(raw.WeightMap) == 0 {
		return nil, errors.New("weight_map is missing or empty")
	}
	return raw.WeightMap, nil
}

// weightMap refuses doubled tensors, which a plain map would hide, and shard names that leave the folder.
type weightMap map[string]string

// UnmarshalJSON reads an object of strings.
func (m *weightMap) UnmarshalJSON(text []byte) error {
	if *m != nil {
		return fmt.Errorf("weight_map: %w", ErrDuplicate)
	}
	*m = weightMap{}
	s := &scanner{text: text}
	shards := map[string]string{} // shared strings: a map of 100000 tensors names few files
	return s.object(func(name string) error {
		shard, err := s.string()
		if err != nil {
			return fmt.Errorf("weight_map %q: %w", name, err)
		}
		if _, ok := (*m)[name]; ok {
			return fmt.Errorf("weight_map %q: %w", name, ErrDuplicate)
		}
		if _, ok := shards[shard]; !ok {
			if shard != filepath.Base(shard) || strings.ContainsAny(shard, "/\\\x00") || !strings.HasSuffix(shard, ".safetensors") {
				return fmt.Errorf("weight_map %q: %q is no plain name of a .safetensors file", name, shard)
			}
			if len(shards) == maxShards {
				return fmt.Errorf("weight_map names more than %d files", maxShards)
			}
			shards[shard] = shard
		}
		(*m)[name] = shards[shard]
		return nil
	})
}

// Shards lists the files of an index, sorted.
func Shards(index map[string]string) []string {
	seen := map[string]bool{}
	for _, shard := range index {
		seen[shard] = true
	}
	names := make([]string, 0, len(seen))
	for shard := range seen {
		names = append(names, shard)
	}
	slices.Sort(names)
	return names
}

func openShards(folder string, names []string, index map[string]string) (_ *Folder, err error) {
	f := &Folder{home: map[string]*shard{}}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	var differ []string // tensors that the index does not say right
	for _, name := range names {
		file, err := f.openShard(filepath.Join(folder, name))
		if errors.Is(err, os.ErrNotExist) && index != nil {
			return nil, fmt.Errorf("shard %s, which %s names, is missing: finish the download (%w)", name, IndexName, err)
		}
		if err != nil {
			return nil, err
		}
		s := &shard{file, name}
		f.shards = append(f.shards, s)
		for _, tensor := range s.Names() {
			if other, ok := f.home[tensor]; ok {
				if index[tensor] == "" || index[tensor] != s.name && index[tensor] != other.name {
					return nil, fmt.Errorf("%s: tensor %q is in %s too: %w", s.Path(), tensor, other.Path(), ErrDuplicate)
				}
				differ = append(differ, tensor)
				if index[tensor] != s.name {
					continue
				}
			}
			f.home[tensor] = s
		}
	}
	for tensor, s := range f.home {
		if index != nil && index[tensor] != s.name {
			differ = append(differ, tensor)
		}
	}
	for tensor := range index {
		if f.home[tensor] == nil {
			differ = append(differ, tensor)
		}
	}
	if n := len(differ); n > 0 {
		f.notes = append(f.notes, fmt.Sprintf("%s and the files of %s differ about %q, %d tensors in all: what the files hold counts", IndexName, folder, slices.Min(differ), n))
	}
	return f, nil
}

// Notes says what was assumed about the files, a line each.
func (f *Folder) Notes() []string { return slices.Clone(f.notes) }

// Names lists the tensors of all files in alphabetical order.
func (f *Folder) Names() []string {
	names := make([]string, 0, len(f.home))
	for name := range f.home {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Tensor finds a tensor by name. Its bytes lie in a mapping: see mapping.Guard.
func (f *Folder) Tensor(name string) (tensor.Tensor, bool) {
	file, ok := f.home[name]
	if !ok {
		return tensor.Tensor{}, false
	}
	return file.Tensor(name)
}

// Release lets the memory of a tensor go that has been copied; it is read again when touched.
func (f *Folder) Release(t tensor.Tensor) {
	if file, ok := f.home[t.Name]; ok {
		file.Release(t)
	}
}

// Shards lists the names that the files have in the folder.
func (f *Folder) Shards() []string {
	names := make([]string, len(f.shards))
	for i, s := range f.shards {
		names[i] = s.name
	}
	return names
}

// Files is the number of files.
func (f *Folder) Files() int { return len(f.shards) }

// Bytes is what the tensors of all files take together.
func (f *Folder) Bytes() int64 {
	total := int64(0)
	for _, s := range f.shards {
		total += int64(len(s.data))
	}
	return total
}

// Close unmaps every file.
func (f *Folder) Close() error {
	var all []error
	for _, s := range f.shards {
		all = append(all, s.Close())
	}
	return errors.Join(all...)
}
