package weights

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Want is a tensor that a model needs.
type Want struct {
	Name  string  // in the checkpoint
	Shape []int64 // that it must have
	Types []Type  // those that will do; none: any
	Plus  float32 // is added to its elements when they are loaded
}

// maxReported bounds the lines of an error: a checkpoint of another model lacks thousands of tensors.
const maxReported = 30

// Check compares a checkpoint with what a model needs and reports everything at once: tensors that are missing (the error
// then wraps ErrMissing), of another shape or type, and scales, norms and filters that hold NaN or infinities. A scale may be
// stored as [] or as [1].
func Check(c Checkpoint, wants []Want) error {
	var problems []error
	var missing []Want
	var scan []string
	for _, want := range wants {
		info, ok := c.Info(want.Name)
		switch {
		case !ok:
			missing = append(missing, want)
		case !sameShape(info.Shape, want.Shape):
			problems = append(problems, fmt.Errorf("%s is %s in the checkpoint, the configuration wants %s", info.Title(), tensor.FormatShape(info.Shape), tensor.FormatShape(want.Shape)))
		case len(want.Types) > 0 && !slices.Contains(want.Types, info.Type):
			problems = append(problems, fmt.Errorf("%s is %v in the checkpoint, wanted one of %v", info.Title(), info.Type, want.Types))
		case isSmall(info):
			scan = append(scan, want.Name)
		}
	}
	problems = append(missingProblems(c, missing, wants), append(problems, scanAll(c, scan)...)...)
	return report("checkpoint does not fit the model", problems)
}

// CheckUsed reports the tensors that nobody has asked for, but for those that explained accounts for: a model that leaves
// weights out computes nonsense silently.
func CheckUsed(c Checkpoint, explained func(name string) bool) error {
	var problems []error
	for _, name := range c.Unused() {
		if info, _ := c.Info(name); info.Elements() == 0 {
			continue // there is nothing in it
		}
		if !explained(name) {
			problems = append(problems, fmt.Errorf("%s was not used", name))
		}
	}
	return report("checkpoint holds tensors that the model does not know", problems)
}

func report(what string, problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	if more := len(problems) - maxReported; more > 0 {
		problems = append(problems[:maxReported:maxReported], fmt.Errorf("and %d more", more))
	}
	return fmt.Errorf("%s:\n%w", what, errors.Join(problems...))
}

func sameShape(a, b []int64) bool {
	return slices.Equal(a, b) || isScalar(a) && isScalar(b)
}

func isScalar(shape []int64) bool {
	return len(shape) == 0 || len(shape) == 1 && shape[0] == 1
}

// isSmall picks what is small and ruins everything when it is broken: vectors, filters of one channel each, and scales of any shape.
func isSmall(info Info) bool {
	filters := len(info.Shape) == 3 && info.Shape[1] == 1
	return len(info.Shape) <= 1 || filters || strings.Contains(info.Name, "scale")
}

// scanAll looks for values that are not finite, in all named tensors, on all processors.
func scanAll(c Checkpoint, names []string) []error {
	var group sync.WaitGroup
	results := make([]error, len(names))
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, name := range names {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			t, err := c.Tensor(name)
			if err == nil {
				err = Finite(t)
				c.Release(t)
			}
			results[i] = err
		})
	}
	group.Wait()
	return slices.DeleteFunc(results, func(err error) bool { return err == nil })
}
