package hub

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

// cache is a model's folder. Everything goes through an os.Root, which refuses paths and links that lead out of it.
type cache struct {
	want reference
	path string
	root *os.Root
}

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

func openCache(folder string, want reference) (*cache, error) {
	c := &cache{want: want, path: filepath.Join(folder, want.folder())}
	if err := os.MkdirAll(c.path, 0o755); err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	var err error
	c.root, err = os.OpenRoot(c.path)
	return c, err
}

func (c *cache) close() { c.root.Close() }

// find gives the path of the model when the cache holds all of it, else an empty one.
func (c *cache) find() (string, error) {
	commit, err := c.commit()
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	snapshot := path.Join("snapshots", commit)
	complete, err := c.complete(snapshot)
	if err != nil || !complete {
		return "", err
	}
	return filepath.Join(c.path, snapshot, c.want.file), nil
}

// commit is what the wanted revision names.
func (c *cache) commit() (string, error) {
	commit := c.want.revision
	if commitForm.MatchString(commit) {
		return commit, nil
	}
	text, err := c.read(path.Join("refs", c.want.revision), 128)
	if err != nil {
		return "", err
	}
	commit = strings.TrimSpace(string(text))
	if !commitForm.MatchString(commit) {
		return "", fmt.Errorf("%s holds %.60q, which is no commit: remove it", filepath.Join(c.path, "refs", c.want.revision), commit)
	}
	return commit, nil
}

// complete reports whether a snapshot holds configuration and every shard, or every part of the wanted .gguf file. Small files are
// downloaded before the weights, so complete weights mean a complete snapshot.
func (c *cache) complete(snapshot string) (bool, error) {
	if err := c.checkLinks(snapshot); err != nil {
		return false, err
	}
	if c.want.file != "" {
		return c.has(snapshot, c.want.files()...), nil
	}
	if !c.has(snapshot, "config.json") {
		return false, nil
	}
	if !c.has(snapshot, safetensors.IndexName) {
		return c.has(snapshot, safetensors.SingleName), nil
	}
	text, err := c.read(path.Join(snapshot, safetensors.IndexName), maxIndexBytes)
	if err != nil {
		return false, err
	}
	index, err := safetensors.ParseIndex(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", filepath.Join(c.path, snapshot, safetensors.IndexName), err)
	}
	return c.has(snapshot, safetensors.Shards(index)...), nil
}

func (c *cache) has(snapshot string, files ...string) bool {
	for _, file := range files {
		if info, err := c.root.Stat(path.Join(snapshot, file)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// checkLinks refuses a snapshot with a link that leads out of the model's folder: its files are later opened by path.
func (c *cache) checkLinks(snapshot string) error {
	return fs.WalkDir(c.root.FS(), snapshot, func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.Type()&fs.ModeSymlink == 0 {
			return err
		}
		if _, err := c.root.Stat(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is a link that does not stay in the model's folder: remove it (%w)", filepath.Join(c.path, file), err)
		}
		return nil
	})
}

// read reads a file of at most limit bytes.
func (c *cache) read(file string, limit int64) ([]byte, error) {
	f, err := c.root.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", filepath.Join(c.path, file), limit)
	}
	return text, err
}

// link makes a file of a snapshot point to its blob, in one step.
func (c *cache) link(commit, file, blob string) error {
	target := path.Join("snapshots", commit, file)
	folder, name := path.Split(target)
	if err := c.root.MkdirAll(path.Clean(folder), 0o755); err != nil {
		return err
	}
	temporary := path.Join(folder, "."+name+".part")
	if err := c.root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	up := strings.Repeat("../", strings.Count(target, "/"))
	if err := c.root.Symlink(path.Join(up, "blobs", blob), temporary); err != nil {
		return err
	}
	return c.root.Rename(temporary, target)
}

// point makes the revision name the commit, in one step.
func (c *cache) point(commit string) error {
	if c.want.revision == commit {
		return nil
	}
	ref := path.Join("refs", c.want.revision)
	if err := c.root.MkdirAll(path.Dir(ref), 0o755); err != nil {
		return err
	}
	if err := c.root.WriteFile(ref+".part", []byte(commit), 0o644); err != nil {
		return err
	}
	return c.root.Rename(ref+".part", ref)
}
