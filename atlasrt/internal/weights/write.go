package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

// Layout is how a checkpoint is written.
type Layout struct {
	ShardBytes int64                    // of a file, or one tensor where that alone is larger
	Config     *Config                  // config.json; nil: what the checkpoint's own reader has
	Name       func(name string) string // what a tensor is called in the files; nil: as in the checkpoint
}

// Write stores a checkpoint of which no tensor was asked for yet in a new folder, as HuggingFace lays one out: safetensors files, their
// index, and config.json last, so that a folder without it is no whole one. It holds a few tensors in memory. What it wrote is gone when it
// fails.
func Write(folder string, c Checkpoint, layout Layout) (err error) {
	if layout.Config == nil {
		layout.Config = c.Config()
	}
	config, err := layout.Config.JSON()
	if err != nil {
		return err
	}
	shards, err := divide(c, layout.ShardBytes)
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	index, total := map[string]string{}, int64(0)
	for i, names := range shards {
		file := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		infos := make([]Info, len(names))
		for j, name := range names {
			infos[j], _ = c.Info(name)
			if layout.Name != nil {
				infos[j].Name = layout.Name(name)
			}
			if other, ok := index[infos[j].Name]; ok {
				return fmt.Errorf("two tensors would be called %s (one is in %s)", infos[j].Name, other)
			}
			index[infos[j].Name] = file
			bytes, err := infos[j].Type.Bytes(infos[j].Shape)
			if err != nil {
				return fmt.Errorf("%v: %w", infos[j], err)
			}
			total += bytes
		}
		if err := writeShard(filepath.Join(folder, file), c, names, infos); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": total}, "weight_map": index})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, safetensors.IndexName), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "config.json"), config, 0o644)
}

// divide says which tensors make each file.
func divide(c Checkpoint, shardBytes int64) (shards [][]string, err error) {
	room := int64(0)
	for _, name := range c.Unused() {
		info, _ := c.Info(name)
		bytes, err := info.Type.Bytes(info.Shape)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", info, err)
		}
		if room < bytes {
			shards, room = append(shards, nil), shardBytes
		}
		last := len(shards) - 1
		shards[last], room = append(shards[last], name), room-bytes
	}
	return shards, nil
}

// ahead is how many tensors are read, or made up, while others are written.
const ahead = 4

// writeShard writes tensors, which have the names of infos in the file. One goroutine reads them, another writes.
func writeShard(path string, c Checkpoint, names []string, infos []Info) error {
	type result struct {
		Tensor
		err error
	}
	results, stop := make(chan result, ahead), make(chan struct{})
	go func() {
		defer close(results)
		for _, name := range names {
			t, err := c.Tensor(name)
			select {
			case results <- result{t, err}:
			case <-stop:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	var last Tensor
	err := safetensors.WriteEach(path, infos, func(int) ([]byte, error) {
		c.Release(last)
		r := <-results
		last = r.Tensor
		return r.Data, r.err
	})
	close(stop)
	c.Release(last)
	for r := range results {
		c.Release(r.Tensor)
	}
	return err
}
