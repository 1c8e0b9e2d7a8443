package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// logitsCommand compares with references.
type logitsCommand struct {
	loadFlags
	Tokens string `required:"" type:"existingfile" help:"File with a JSON array of token ids." placeholder:"F.JSON"`
	Greedy int    `help:"Tokens to continue with, the likeliest each time."`
	Chunk  int    `help:"Rows of one step; 0: as many as fit."`
	Out    string `required:"" help:"File to write: logits f32 [tokens,vocabulary] and greedy i32 [N]." placeholder:"F.SAFETENSORS"`
}

// Run implements the command.
func (c *logitsCommand) Run() error {
	data, err := os.ReadFile(c.Tokens)
	if err != nil {
		return err
	}
	var tokens []int32
	if err := json.Unmarshal(data, &tokens); err != nil {
		return fmt.Errorf("%s must hold a JSON array of token ids: %w", c.Tokens, err)
	}
	if len(tokens) == 0 || c.Greedy < 0 || c.Chunk < 0 {
		return fmt.Errorf("give at least one token, and no negative --greedy or --chunk")
	}
	m, err := c.load(context.Background(), slog.Default(), noDrafts)
	if err != nil {
		return err
	}
	direct, err := m.Direct(len(tokens) + c.Greedy + 1)
	if err != nil {
		return err
	}
	logits, err := direct.Logits(tokens, c.Chunk, true)
	if err != nil {
		return err
	}
	var greedy []int32
	if c.Greedy > 0 {
		if greedy, err = direct.Greedy(tokens, c.Greedy); err != nil {
			return err
		}
	}
	vocab := int64(m.Layout.Vocab)
	return safetensors.Write(c.Out,
		asTensor("logits", tensor.F32, logits, int64(len(tokens)), vocab),
		asTensor("greedy", tensor.I32, greedy, int64(len(greedy))))
}

// asTensor views values as a tensor's bytes.
func asTensor[T float32 | int32](name string, t tensor.Type, values []T, shape ...int64) tensor.Tensor {
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
	return tensor.Tensor{Info: tensor.Info{Name: name, Type: t, Shape: shape}, Data: data}
}
