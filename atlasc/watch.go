package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

type watchCommand struct {
	buildCommand `embed:""`
}

// quiet is how long sources have to rest before a build: editors write in several steps.
const quiet = 100 * time.Millisecond

func (c *watchCommand) Run(env *environment) error {
	root, err := findRoot(env.root)
	if err != nil {
		return err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch sources: %w", err)
	}
	defer watcher.Close()
	for _, folder := range []string{"kernels", "targets", contractDir} {
		if err := watchFolders(watcher, filepath.Join(root, folder)); err != nil {
			return fmt.Errorf("watch sources: %w", err)
		}
	}
	due := time.After(0)
	for {
		select {
		case <-env.ctx.Done():
			return nil
		case event := <-watcher.Events:
			if strings.HasPrefix(filepath.Base(event.Name), ".") || event.Op == fsnotify.Chmod {
				continue
			}
			if info, err := os.Stat(event.Name); err == nil && info.IsDir() {
				if err := watchFolders(watcher, event.Name); err != nil {
					return fmt.Errorf("watch sources: %w", err)
				}
			}
			due = time.After(quiet)
		case err := <-watcher.Errors:
			return fmt.Errorf("watch sources: %w", err)
		case <-due:
			start := time.Now()
			if code := report(env.stderr, c.buildCommand.Run(env)); code == exitUsage || code == exitNoCompile {
				return exitError(code)
			} else if code == exitOK {
				fmt.Fprintf(env.stdout, "up to date after %v\n", time.Since(start).Round(time.Millisecond))
			}
		}
	}
}

// watchFolders watches a folder and those in it; a watch on files would be lost when an editor replaces them.
func watchFolders(w *fsnotify.Watcher, folder string) error {
	return filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return w.Add(file)
	})
}
