package weights

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// memory is what all readers of one file's settings share: goroutines may read the same checkpoint.
type memory struct {
	mutex    sync.Mutex
	read     map[string]bool // full keys
	assumed  []string
	metadata func() []string // unread keys of the file that these settings were translated from; nil: these are the file's own
}

// Know notes that keys of this object have been read, or would be: what a family's structs name. A key of an object inside
// has the form "rope_scaling.factor".
func (c *Config) Know(keys ...string) {
	c.memory.mutex.Lock()
	defer c.memory.mutex.Unlock()
	for _, key := range keys {
		c.memory.read[c.prefix+key] = true
	}
}

// Assume keeps a line about something that was taken for granted, for Assumed.
func (c *Config) Assume(format string, arguments ...any) {
	line := fmt.Sprintf(format, arguments...)
	c.memory.mutex.Lock()
	defer c.memory.mutex.Unlock()
	if !slices.Contains(c.memory.assumed, line) {
		c.memory.assumed = append(c.memory.assumed, line)
	}
}

// Assumed lists what was taken for granted about the file, in the order it was met.
func (c *Config) Assumed() []string {
	c.memory.mutex.Lock()
	defer c.memory.mutex.Unlock()
	return slices.Clone(c.memory.assumed)
}

// Translated reports whether the settings stand for the metadata of a GGUF file, which has keys of its own.
func (c *Config) Translated() bool { return c.memory.metadata != nil }

// Unread lists the keys of the file that no reader has asked for, sorted. Of an object that was read, it lists the keys
// inside; of one that was not, its own. For a GGUF file they are keys of its metadata.
func (c *Config) Unread() []string {
	c.memory.mutex.Lock()
	defer c.memory.mutex.Unlock()
	if c.memory.metadata != nil {
		return c.memory.metadata()
	}
	return unread(c.values, c.prefix, c.memory.read)
}

func unread(values map[string]any, prefix string, read map[string]bool) []string {
	var left []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		inside, isObject := values[key].(map[string]any)
		switch {
		case !read[prefix+key]:
			left = append(left, prefix+key)
		case isObject:
			left = append(left, unread(inside, prefix+key+".", read)...)
		}
	}
	return left
}
