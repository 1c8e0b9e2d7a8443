package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
)

// Write stores a checkpoint of which no tensor was asked for yet in a new folder, as HuggingFace lays one out: safetensors files of
// shardBytes or, where one tensor alone is larger, that tensor; their index; and config.json last, so that a folder without it is no
// whole one. It holds one file in memory. What it wrote is gone when it fails.
func Write(folder string, c Checkpoint, shardBytes int64) (err error) {
	config, err := c.Config().JSON()
	if err != nil {
		return err
	}
	shards, err := divide(c, shardBytes)
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
	index := map[string]string{}
	for i, names := range shards {
		file := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		for _, name := range names {
			index[name] = file
		}
		if err := writeShard(filepath.Join(folder, file), c, names); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"weight_map": index})
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

func writeShard(path string, c Checkpoint, names []string) error {
	var list []Tensor
	defer func() {
		for _, t := range list {
			c.Release(t)
		}
	}()
	for _, name := range names {
		t, err := c.Tensor(name)
		if err != nil {
			return err
		}
		list = append(list, t)
	}
	return safetensors.Write(path, list...)
}
