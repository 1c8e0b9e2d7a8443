package toolchain

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/cache"
	"golang.org/x/sync/errgroup"

	"github.com/atlas-inference/atlas/atlasc/internal/source"
)

// Builder compiles the units of images, in parallel, as far as its cache does not hold them.
type Builder struct {
	Root     string // of the repository
	CacheDir string // made if it is not there
	Parallel int    // compilers at a time
	Sources  *source.Tree
	// Progress is called after each unit, from one goroutine at a time; it may be nil.
	Progress func(done, total int, u Unit)
}

// Image compiles and links units and returns the image. The error joins a Failure per unit that does not compile.
func (b *Builder) Image(ctx context.Context, c Compiler, units []Unit) ([]byte, error) {
	version, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(b.CacheDir, 0o777); err != nil {
		return nil, fmt.Errorf("make the cache of compiled kernels: %w", err)
	}
	store, err := cache.Open(b.CacheDir)
	if err != nil {
		return nil, fmt.Errorf("open the cache of compiled kernels: %w", err)
	}
	keys := make([]cache.ActionID, len(units))
	for i, u := range units {
		if keys[i], err = b.key(version, c.Flags(), u); err != nil {
			return nil, err
		}
	}
	h := sha256.New()
	for i, u := range units {
		fmt.Fprintf(h, "image %x %q %v\n", keys[i], u.Source, u.Launches)
	}
	imageKey := cache.ActionID(h.Sum(nil))
	if image, _, err := store.GetBytes(imageKey); err == nil {
		return image, nil
	}
	work, err := os.MkdirTemp("", "atlasc-")
	if err != nil {
		return nil, fmt.Errorf("make a working folder: %w", err)
	}
	defer os.RemoveAll(work)
	objects, err := b.compile(ctx, c, store, work, units, keys)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(work, "image")
	if err := c.Link(ctx, units, objects, out); err != nil {
		return nil, err
	}
	image, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("read the linked image: %w", err)
	}
	if err := store.PutBytes(imageKey, image); err != nil {
		return nil, fmt.Errorf("keep the image: %w", err)
	}
	_ = store.Trim() // an old entry more does no harm
	return image, nil
}

// key names all that an object depends on.
func (b *Builder) key(version string, flags []string, u Unit) (cache.ActionID, error) {
	h := sha256.New()
	fmt.Fprintf(h, "object %s\n%q %q %s\n", version, flags, u.Flags, u.Source)
	files, missing := b.Sources.Closure(u.Source)
	if err := missing.Err(); err != nil {
		return cache.ActionID{}, err
	}
	if err := b.Sources.Hash(h, files); err != nil {
		return cache.ActionID{}, err
	}
	return cache.ActionID(h.Sum(nil)), nil
}

// compile returns the path of each unit's object.
func (b *Builder) compile(ctx context.Context, c Compiler, store *cache.Cache, work string, units []Unit, keys []cache.ActionID) ([]string, error) {
	var (
		group    errgroup.Group
		mu       sync.Mutex
		done     int
		failures = make([]error, len(units))
		objects  = make([]string, len(units))
	)
	group.SetLimit(max(1, b.Parallel))
	for i, u := range units {
		group.Go(func() error {
			objects[i], failures[i] = compileOne(ctx, c, store, filepath.Join(work, fmt.Sprintf("%d.o", i)), u, keys[i])
			mu.Lock()
			defer mu.Unlock()
			done++
			if b.Progress != nil {
				b.Progress(done, len(units), u)
			}
			return nil // every unit is tried, so that every failure is seen
		})
	}
	_ = group.Wait()
	return objects, errors.Join(distinct(failures)...)
}

// compileOne returns the path of an object that may be in the cache.
func compileOne(ctx context.Context, c Compiler, store *cache.Cache, object string, u Unit, key cache.ActionID) (string, error) {
	if file, _, err := store.GetFile(key); err == nil {
		return file, nil
	}
	if err := c.Compile(ctx, u, object); err != nil {
		return "", err
	}
	data, err := os.ReadFile(object)
	if err != nil {
		return "", fmt.Errorf("read the object of %s: %w", u.Name, err)
	}
	if err := store.PutBytes(key, data); err != nil {
		return "", fmt.Errorf("keep the object of %s: %w", u.Name, err)
	}
	return object, nil
}

// distinct drops failures whose compiler said the same about the same lines: units share their bodies.
func distinct(failures []error) []error {
	var kept []error
	said := map[string]bool{}
	for _, err := range failures {
		var f *Failure
		if errors.As(err, &f) {
			output := strings.ReplaceAll(f.Output, f.Unit.Source, "")
			if said[output] {
				continue
			}
			said[output] = true
		}
		if err != nil {
			kept = append(kept, err)
		}
	}
	return kept
}
