package weights

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// maxNear bounds the names that are shown beside a missing one.
const maxNear = 3

// missingProblems names the tensors that are missing, each with names of the checkpoint that look alike and that the model
// does not want: an export under other names shows at a glance.
func missingProblems(c Checkpoint, missing, wants []Want) []error {
	if len(missing) == 0 {
		return nil
	}
	wanted := map[string]bool{}
	for _, want := range wants {
		wanted[want.Name] = true
	}
	others := slices.DeleteFunc(c.Unused(), func(name string) bool { return wanted[name] })
	problems := make([]error, len(missing))
	for i, want := range missing {
		problems[i] = fmt.Errorf("%s %s: %w", want.Name, tensor.FormatShape(want.Shape), ErrMissing)
		if i >= maxReported {
			continue // nobody will see it
		}
		if near := nearest(want.Name, others); len(near) > 0 {
			problems[i] = fmt.Errorf("%w (it has %s)", problems[i], strings.Join(near, ", "))
		} else if want.Name == headName+"weight" {
			problems[i] = fmt.Errorf("%w (config.json does not tie it to the embedding with tie_word_embeddings: is this a model without its head?)", problems[i])
		}
	}
	return problems
}

// nearest gives the names that share most parts with the wanted one, at its beginning and its end, and more than half of
// them. The kind (weight, bias) does not count.
func nearest(name string, others []string) []string {
	want := modules(name)
	best, near := len(want)/2+1, []string(nil)
	for _, other := range others {
		have := modules(other)
		head := 0
		for head < min(len(want), len(have)) && want[head] == have[head] {
			head++
		}
		tail := 0
		for tail < min(len(want), len(have))-head && want[len(want)-1-tail] == have[len(have)-1-tail] {
			tail++
		}
		switch alike := head + tail; {
		case alike > best:
			best, near = alike, []string{other}
		case alike == best && len(near) < maxNear:
			near = append(near, other)
		}
	}
	return near
}

// modules are the parts of a name but for the last.
func modules(name string) []string {
	parts := strings.Split(name, ".")
	return parts[:max(1, len(parts)-1)]
}
