package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

const (
	maxIndexBytes = 100_000_000
	atOnce        = 4  // files
	maxFailures   = 5  // attempts in a row in which no byte arrived
	maxAttempts   = 20 // of one file
)

// download fetches one model into the cache.
type download struct {
	want     reference
	remote   *remote
	cache    *cache
	progress func(Progress)
	mutex    sync.Mutex             // one call of progress at a time; guards blobs
	blobs    map[string]*sync.Mutex // two files of the same content share one blob
	patience
}

// patience is how long a download waits.
type patience struct {
	pause time.Duration // before the second attempt; doubled for each more
	stall time.Duration // without a byte: the connection is dead
}

func (d *download) run(ctx context.Context) error {
	var list listing
	err := d.retry(ctx, func() (moved bool, err error) {
		short, cancel := context.WithTimeout(ctx, d.stall)
		defer cancel()
		list, err = d.remote.list(short, d.want)
		return false, err
	})
	if err != nil {
		return err
	}
	if err := d.cache.root.MkdirAll("blobs", 0o755); err != nil {
		return err
	}
	if d.want.file != "" {
		for _, file := range d.want.files() {
			if _, ok := list.sizes[file]; !ok {
				return fmt.Errorf("it has no file %s, but %s", file, models(list))
			}
		}
		err = d.fetchAll(ctx, list, d.want.files())
	} else {
		err = d.fetchCheckpoint(ctx, list)
	}
	if err != nil {
		return err
	}
	return d.cache.point(list.commit)
}

// fetchCheckpoint fetches the small files first: they say which others are needed.
func (d *download) fetchCheckpoint(ctx context.Context, list listing) error {
	_, indexed := list.sizes[safetensors.IndexName]
	_, single := list.sizes[safetensors.SingleName]
	_, config := list.sizes["config.json"]
	if !config || !indexed && !single {
		if files := gguf.Pieces(slices.Sorted(maps.Keys(list.sizes))); len(files) > 0 {
			return fmt.Errorf("it holds GGUF files: name one of them as %s:%s (%s)", d.want, files[0], models(list))
		}
		if _, adapter := list.sizes["adapter_config.json"]; adapter {
			return errors.New("it is a LoRA adapter, which changes another model: merge it into that, and give the folder of the result")
		}
		return errors.New("it holds no config.json with model.safetensors: other formats (PyTorch's .bin) are not supported, because reading them can run code")
	}
	if err := d.fetchAll(ctx, list, small(list)); err != nil {
		return err
	}
	if !indexed {
		return d.fetchAll(ctx, list, []string{safetensors.SingleName})
	}
	text, err := d.cache.read(path.Join("snapshots", list.commit, safetensors.IndexName), maxIndexBytes)
	if err != nil {
		return err
	}
	index, err := safetensors.ParseIndex(text)
	if err != nil {
		return fmt.Errorf("%s: %w", safetensors.IndexName, err)
	}
	return d.fetchAll(ctx, list, safetensors.Shards(index))
}

// small lists the files beside the weights that are of use.
func small(list listing) []string {
	_, whole := list.sizes["tokenizer.json"]
	_, template := list.sizes["chat_template.jinja"]
	return slices.DeleteFunc(slices.Sorted(maps.Keys(list.sizes)), func(name string) bool {
		switch name {
		case "config.json", "generation_config.json", "hf_quant_config.json", "preprocessor_config.json", safetensors.IndexName,
			"special_tokens_map.json", "added_tokens.json":
			return false
		case "vocab.json", "merges.txt", "tokenizer.model":
			return whole // which stands for them
		case "additional_chat_templates/default.jinja":
			return template
		}
		text := strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jinja")
		return !text || strings.Contains(name, "/") || !strings.HasPrefix(name, "tokenizer") && !strings.HasPrefix(name, "chat_template")
	})
}

// maxListed bounds the names in one error.
const maxListed = 30

// models lists the GGUF models for a user to choose from.
func models(list listing) string {
	all := gguf.Pieces(slices.Sorted(maps.Keys(list.sizes)))
	if len(all) == 0 {
		return "no other GGUF file"
	}
	return weights.Listed(all, maxListed)
}

func (d *download) fetchAll(ctx context.Context, list listing, names []string) error {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return d.cache.has(path.Join("snapshots", list.commit), name) })
	need := int64(0)
	for _, name := range missing {
		size, ok := list.sizes[name]
		if !ok {
			return fmt.Errorf("%s names %s, which the model does not have", safetensors.IndexName, name)
		}
		need += max(size, 0)
	}
	if err := d.checkSpace(need); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range missing {
		group.Go(func() error {
			err := d.retry(ctx, func() (bool, error) { return d.fetch(ctx, list.commit, name, list.sizes[name]) })
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (d *download) checkSpace(need int64) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(d.cache.path, &disk); err != nil {
		return nil // the file system does not say: writing will tell
	}
	if free := int64(disk.Bavail) * int64(disk.Bsize); need > free {
		return fmt.Errorf("it needs %s, %s has %s free: free some, or set HF_HUB_CACHE to a larger disk", weights.FormatBytes(need), d.cache.path, weights.FormatBytes(free))
	}
	return nil
}

// retry repeats try while its error is temporary and, once in a few attempts, bytes arrive.
func (d *download) retry(ctx context.Context, try func() (moved bool, err error)) error {
	pause := d.pause
	failures := 0
	for range maxAttempts {
		moved, err := try()
		var passing temporary
		if err == nil || !errors.As(err, &passing) || ctx.Err() != nil {
			return err
		}
		if moved {
			failures, pause = 0, d.pause
		}
		if failures++; failures == maxFailures {
			return fmt.Errorf("%w (given up after %d attempts; what has arrived is kept, run it again to continue)", err, failures)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause *= 2
	}
	return fmt.Errorf("the connection was cut %d times: run it again to continue", maxAttempts)
}
