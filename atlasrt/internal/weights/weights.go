// Package weights opens a checkpoint, whatever format it is in, and gives its tensors by their HuggingFace names.
//
// Invariants: a Checkpoint is read only and checked when it is opened; a tensor's bytes always match its type and shape.
// Bytes may lie in a file mapping: touch them within mapping.Guard, which survives a file that was cut meanwhile. Every tensor that
// is asked for is remembered, so that what is left over can be listed. No tensor is kept in memory here.
package weights

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Type is how a tensor's elements are stored; Info names a tensor and its shape; Tensor adds its bytes.
type (
	Type   = tensor.Type
	Info   = tensor.Info
	Tensor = tensor.Tensor
)

// ErrMissing says that a checkpoint lacks a tensor.
var ErrMissing = errors.New("no such tensor in the checkpoint")

// Checkpoint gives tensors by their HuggingFace names. Its methods may be called from several goroutines, Close only once
// and last.
type Checkpoint interface {
	// Config gives a reader of the model's settings under their HuggingFace names: a new one at each call.
	Config() *Config
	// Info tells what is known of a tensor without reading it. It does not count as use.
	Info(name string) (Info, bool)
	// Tensor gives a tensor and marks it as used. The error wraps ErrMissing when there is none.
	Tensor(name string) (Tensor, error)
	// Unused lists the tensors that were never asked for, sorted.
	Unused() []string
	// Release gives back the memory of a tensor whose bytes have been copied.
	Release(Tensor)
	// Assets reads what belongs to the model besides its weights: tokenizer, chat template, generation defaults.
	Assets() (Assets, error)
	// Notes says what was assumed where the files are not as they should be, one line each, for a warning.
	Notes() []string
	// String describes the checkpoint for logs: format, files, size.
	String() string
	Close() error
}

// Tracker remembers which names were asked for. The zero value has met none.
type Tracker struct {
	mutex sync.Mutex
	names map[string]bool
}

// Mark notes that a name was asked for.
func (t *Tracker) Mark(name string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.names == nil {
		t.names = map[string]bool{}
	}
	t.names[name] = true
}

// Unused gives those of all that were never marked, sorted.
func (t *Tracker) Unused(all []string) []string {
	t.mutex.Lock()
	marked := maps.Clone(t.names)
	t.mutex.Unlock()
	left := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return marked[name] })
	slices.Sort(left)
	return left
}

// FormatBytes writes a size for people.
func FormatBytes(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
