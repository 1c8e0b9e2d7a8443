package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/internal/table"
)

// summary says in a few lines what a checkpoint is.
type summary struct {
	checkpoint weights.Checkpoint
	names      []string // of all tensors
	table      *table.Table
}

func (s *summary) row(what, value string) { s.table.Row(what, value) }

// summarize begins with what is known of any checkpoint. The error says what of its configuration cannot be read.
func summarize(name string, c weights.Checkpoint) (*summary, error) {
	s := &summary{checkpoint: c, names: c.Unused(), table: table.New("summary", "")} // nobody has asked for a tensor yet
	if name != "" {
		s.row("model", name)
	}
	s.row("checkpoint", c.String())
	config := c.Config()
	s.row("family", cmp.Or(config.StringOr("model_type", ""), "none is named"))
	s.row("stored", bytesByType(c, s.names))
	return s, config.Err()
}

// bytesByType lists how tensors are stored, most bytes first.
func bytesByType(c weights.Checkpoint, names []string) string {
	sums := map[weights.Type]int64{}
	for _, name := range names {
		if info, ok := c.Info(name); ok {
			if n, err := info.Type.Bytes(info.Shape); err == nil {
				sums[info.Type] += n
			}
		}
	}
	types := slices.SortedFunc(maps.Keys(sums), func(a, b weights.Type) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, t := range types {
		parts = append(parts, t.String()+" "+formatBytes(sums[t]))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// serve adds what a model makes of the checkpoint, and whether it fits.
func (s *summary) serve(p *instance.Prepared) {
	parameters, read := int64(0), map[string]bool{}
	for _, want := range p.Counter.Wants {
		info, ok := s.checkpoint.Info(want.Name)
		read[want.Name] = true
		if ok && !isScale(want.Name) {
			n := info.Elements()
			if p.Counter.Kept(want.Name) == "nvfp4" && info.Type == tensor.U8 { // two in a byte
				n *= 2
			}
			parameters += n
		}
	}
	s.row("parameters", fmt.Sprintf("%s (%d)", roughly(parameters), parameters))
	unread := slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return read[name] })
	s.row("tensors that nothing reads", shortList(unread))
	for _, line := range p.Counter.Converted() {
		s.row("kept otherwise", line)
	}
	s.row("context", fmt.Sprintf("%d tokens", p.Layout.MaxContext))
	s.row("layers", layers(p))
	s.row("vocabulary", fmt.Sprintf("%d tokens", p.Layout.Vocab))
	s.row("served", "yes, on "+p.Target.Bundle.Hardware)
	if p.Target.Device == nil {
		s.row("fits", "unknown: this machine has no "+p.Target.Bundle.Hardware)
		return
	}
	m, err := p.Plan()
	if err != nil {
		s.row("fits", "no: "+err.Error())
		return
	}
	s.row("memory", fmt.Sprintf("%s: %s of %s (%s)", parts(m), formatBytes(m.Total), formatBytes(m.Limit), p.Bound))
	s.row("fits", fmt.Sprintf("yes, %d sequences of %d tokens at a time", m.Tokens/p.Sizes.MaxContext, p.Sizes.MaxContext))
}

// parts says where memory goes.
func parts(m engine.Memory) string {
	line := fmt.Sprintf("weights %s, work %s, cache %s for %d tokens", formatBytes(m.Weights), formatBytes(m.Activations+m.Scratch+m.Inputs+m.Logits),
		formatBytes(m.Cache), m.Tokens)
	if m.Slots > 0 {
		line += fmt.Sprintf(", states %s for %d sequences", formatBytes(m.States), m.Slots)
	}
	return line
}

// note adds what was assumed about the files, and what of them has no effect.
func (s *summary) note(lines []string) {
	for _, line := range lines {
		s.row("note", line)
	}
}

// isScale knows the factors beside quantised matrices, which are no parameters.
func isScale(name string) bool {
	return weights.EndsIn(name, "_scale", "_scale_inv", "_scale_2")
}

// layers says how many layers keep something, and what of which kind. Their numbers count those that do.
func layers(p *instance.Prepared) string {
	var attention, recurrent []int
	for i, kept := range p.Layout.Memory {
		if kept.Kind == model.PerToken {
			attention = append(attention, i)
		} else {
			recurrent = append(recurrent, i)
		}
	}
	switch all := len(p.Layout.Memory); {
	case all == 0:
		return "none"
	case len(recurrent) == 0:
		return fmt.Sprintf("%d of attention", all)
	case len(attention) == 0:
		return fmt.Sprintf("%d with a state", all)
	default:
		return fmt.Sprintf("%d: %d of attention (%s), %d with a state (%s)", all, len(attention), ranges(attention), len(recurrent), ranges(recurrent))
	}
}

// speak adds how the model reads and writes.
func (s *summary) speak(text *instance.Text) {
	template := "none (chat is not possible)"
	if text.Template != nil {
		template = "yes"
	}
	s.row("chat template", template)
	var end []string
	for _, id := range text.End {
		end = append(end, fmt.Sprintf("%q (%d)", text.Tokenizer.Decode([]int32{id}, false), id))
	}
	s.row("an answer ends at", cmp.Or(strings.Join(end, ", "), "no token"))
}

// mostListed bounds the names in one line.
const mostListed = 8

// shortList names the first of many, or says that there are none.
func shortList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return weights.Listed(names, mostListed)
}

// roughly is a number as people say it.
func roughly(n int64) string {
	switch x := float64(n); {
	case n >= 1e9:
		return fmt.Sprintf("%.2f billion", x/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f million", x/1e6)
	}
	return fmt.Sprint(n)
}
