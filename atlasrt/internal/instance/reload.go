package instance

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// settled is how long an image has to rest before it is read.
const settled = 50 * time.Millisecond

// FollowKernels exchanges the kernels between two steps whenever the image in folder changes, until ctx ends. What does not
// load is logged, and the kernels stay as they are.
func (t *Target) FollowKernels(ctx context.Context, folder string, e *engine.Engine, log *slog.Logger) error {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		err = watcher.Add(filepath.Join(folder, t.Bundle.Hardware))
	}
	if err != nil {
		return fmt.Errorf("watch kernels: %w", err)
	}
	go func() {
		defer watcher.Close()
		due := make(<-chan time.Time)
		for {
			select {
			case <-ctx.Done():
				return
			case event := <-watcher.Events:
				if filepath.Base(event.Name) == "image.zst" && event.Op != fsnotify.Chmod {
					due = time.After(settled)
				}
			case err := <-watcher.Errors:
				log.Warn("kernels are not followed any more", "error", err)
				return
			case <-due:
				err := e.Between(func() error { return t.reload(os.DirFS(folder)) })
				if err != nil {
					log.Error("newer kernels do not load", "error", err)
				} else {
					log.Info("newer kernels", "hardware", t.Bundle.Hardware)
				}
			}
		}
	}()
	return nil
}

// reload puts the kernels of a newer image in the place of those that the set launches. Nothing may be launched meanwhile, and steps that
// were recorded before launch the old ones.
func (t *Target) reload(files fs.FS) error {
	set, ok := t.Set.(interface{ Swap(kernels []op.Kernel) })
	if !ok {
		return fmt.Errorf("the kernels of %s cannot be exchanged while they run", t.Bundle.Hardware)
	}
	kernels, err := t.Bundle.Load(t.Device, files)
	if err == nil {
		set.Swap(kernels)
	}
	return err
}
