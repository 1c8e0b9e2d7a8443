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
	Root     string       // of the repository
	CacheDir string       // made if it is not there
	Parallel int          // compilers at a time
	Sources  *source.Tree // as they were when the build began: keys of the cache are made of them
	// Reread gives the sources as they are now: what changes while it is compiled is not kept.
	Reread func() *source.Tree
	// Progress is called after each unit, from one goroutine at a time; it may be nil.
	Progress func(Progress)
}

// Progress is how far a build is, in units.
type Progress struct {
	Done, Total int // units that are compiled, and all
	Kept        int // of those done, how many the cache had
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
		if keys[i], err = key(b.Sources, version, c.Flags(), u); err != nil {
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
	objects, err := b.compile(ctx, job{c, version, store, work}, units, keys)
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
func key(sources *source.Tree, version string, flags []string, u Unit) (cache.ActionID, error) {
	h := sha256.New()
	fmt.Fprintf(h, "object %s\n%q %q %s\n", version, flags, u.Flags, u.Source)
	files, missing := sources.Closure(u.Source)
	if err := missing.Err(); err != nil {
		return cache.ActionID{}, err
	}
	if err := sources.Hash(h, files); err != nil {
		return cache.ActionID{}, err
	}
	return cache.ActionID(h.Sum(nil)), nil
}

// job is what the compilations of an image share.
type job struct {
	Compiler
	version string
	store   *cache.Cache
	work    string // folder
}

// compile returns the path of each unit's object.
func (b *Builder) compile(ctx context.Context, j job, units []Unit, keys []cache.ActionID) ([]string, error) {
	var (
		group    errgroup.Group
		mu       sync.Mutex
		so       = Progress{Total: len(units)}
		failures = make([]error, len(units))
		objects  = make([]string, len(units))
	)
	group.SetLimit(max(1, b.Parallel))
	for i, u := range units {
		group.Go(func() error {
			objects[i] = filepath.Join(j.work, fmt.Sprintf("%d.o", i))
			var kept bool
			kept, failures[i] = b.object(ctx, j, u, keys[i], objects[i])
			mu.Lock()
			defer mu.Unlock()
			so.Done++
			if kept {
				so.Kept++
			}
			if b.Progress != nil {
				b.Progress(so)
			}
			return nil // every unit is tried, so that every failure is seen
		})
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("the build was interrupted: %w", err)
	}
	return objects, errors.Join(distinct(failures)...)
}

// object writes a unit's object, from the cache where it is there undamaged, and reports whether it was.
func (b *Builder) object(ctx context.Context, j job, u Unit, id cache.ActionID, file string) (kept bool, err error) {
	if data, _, err := j.store.GetBytes(id); err == nil {
		if err := os.WriteFile(file, data, 0o666); err != nil {
			return false, fmt.Errorf("take the object of %s from the cache: %w", u.Name, err)
		}
		return true, nil
	}
	return false, b.fresh(ctx, j, u, id, file)
}

// fresh compiles a unit and keeps its object.
func (b *Builder) fresh(ctx context.Context, j job, u Unit, id cache.ActionID, file string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := j.Compile(ctx, u, file); err != nil {
		return err
	}
	now, err := key(b.Reread(), j.version, j.Flags(), u)
	if err != nil {
		return err
	}
	if now != id {
		return fmt.Errorf("%s: a source of %s changed while it was compiled (run atlasc build again)", u.At, u.Name)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the object of %s: %w", u.Name, err)
	}
	if err := j.store.PutBytes(id, data); err != nil {
		return fmt.Errorf("keep the object of %s: %w", u.Name, err)
	}
	return nil
}

// mostFailures is how many failures a build shows.
const mostFailures = 20

// distinct drops failures whose compiler said the same about the same lines, since units share their bodies, and those
// that are too many to read.
func distinct(failures []error) []error {
	var kept []error
	more := 0
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
		switch {
		case err == nil:
		case len(kept) < mostFailures:
			kept = append(kept, err)
		default:
			more++
		}
	}
	if more > 0 {
		kept = append(kept, fmt.Errorf("%d more kernels do not compile", more))
	}
	return kept
}
