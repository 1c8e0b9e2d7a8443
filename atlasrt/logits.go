package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/solo"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// logitsCommand compares with references.
type logitsCommand struct {
	loadFlags
	headFlags
	Tokens string `required:"" type:"existingfile" help:"File with a JSON array of token ids." placeholder:"F.JSON"`
	Greedy int    `help:"Tokens to continue with, the likeliest each time."`
	Chunk  int    `help:"Rows of one step; 0: as many as fit."`
	MTP    bool   `name:"mtp" help:"Also what the checkpoint's MTP head computes, with three tokens that it drafts behind the prompt."`
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
	m, err := c.loadFlags.load(context.Background(), slog.Default(), c.drafting())
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
	tensors := []tensor.Tensor{
		asTensor("logits", tensor.F32, logits, int64(len(tokens)), vocab),
		asTensor("greedy", tensor.I32, greedy, int64(len(greedy))),
	}
	if c.MTP {
		head, err := headOf(m, tokens, c.Chunk)
		if err != nil {
			return err
		}
		rows, drafts := int64(len(tokens)), int64(len(head.draft))
		tensors = append(tensors,
			asTensor("hidden", tensor.F32, head.hidden, rows, int64(len(head.hidden))/rows),
			asTensor("mtp_logits", tensor.F32, head.scores, rows-1, int64(len(head.guess))/drafts),
			asTensor("mtp_draft", tensor.I32, head.draft, drafts),
			asTensor("mtp_draft_logits", tensor.F32, head.guess, drafts, int64(len(head.guess))/drafts))
	}
	return safetensors.Write(c.Out, tensors...)
}

// referenceDrafts is how many tokens references draft.
const referenceDrafts = 3

// drafting is what references draft, where they are asked for.
func (c *logitsCommand) drafting() drafting {
	if !c.MTP {
		return noDrafts
	}
	return c.headFlags.drafting(referenceDrafts)
}

// headValues is what a head that drafts computes for a prompt.
type headValues struct {
	hidden []float32 // [tokens,columns]: what it reads of the model
	scores []float32 // [tokens-1,columns]: row t from hidden state t and token t+1; a column for each token that can be drafted
	draft  []int32   // behind the likeliest token after the prompt
	guess  []float32 // [drafts,columns]: the logits of each draft
}

// headOf computes a prompt in chunks of so many rows (0: as many as fit), and drafts.
func headOf(m *instance.Loaded, tokens []int32, chunk int) (v headValues, err error) {
	stream, err := m.Stream()
	if err != nil {
		return v, err
	}
	defer stream.Close()
	s, err := m.Solo(stream, len(tokens)+1+m.Sizes.Drafts)
	if err != nil {
		return v, err
	}
	defer s.Close()
	if chunk == 0 || chunk > s.Rows {
		chunk = s.Rows
	}
	for first := 0; first < len(tokens); first += chunk {
		end, step := min(first+chunk, len(tokens)), solo.Step{}
		if end < len(tokens) {
			step, err = s.Take(tokens[first:end], tokens[end])
		} else {
			step, err = s.Draw(tokens[first:], 0, m.Sizes.Drafts)
		}
		if err != nil {
			return v, err
		}
		v.hidden, v.scores = append(v.hidden, step.Hidden...), append(v.scores, step.Scores...)
		v.draft, v.guess = step.Drafts, step.Guess
	}
	v.scores = v.scores[:len(v.scores)/len(tokens)*(len(tokens)-1)]
	return v, nil
}

// asTensor views values as a tensor's bytes.
func asTensor[T float32 | int32](name string, t tensor.Type, values []T, shape ...int64) tensor.Tensor {
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
	return tensor.Tensor{Info: tensor.Info{Name: name, Type: t, Shape: shape}, Data: data}
}
