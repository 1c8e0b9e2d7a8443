package load

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// whole reports whether a part gives all rows of its tensor.
func whole(p model.Part) bool { return p.From.Each == p.From.Every }

// storedRows is how many rows the tensor of a part has.
func storedRows(p model.Part) int64 { return rowsIn(p, int64(p.Rows)) }

// rowsIn is how many rows, or bytes, a tensor has of which a part gives so many.
func rowsIn(p model.Part, given int64) int64 {
	if whole(p) {
		return given
	}
	return given / int64(p.From.Each) * int64(p.From.Every)
}

// storedRow is where in its tensor a part's row lies.
func storedRow(p model.Part, row int64) int64 {
	if whole(p) {
		return row
	}
	each := int64(p.From.Each)
	return row/each*int64(p.From.Every) + int64(p.From.First) + row%each
}

// runs cuts what a part gives out of its tensor's bytes: the rows that lie one after the other are one run.
func runs(data []byte, p model.Part) [][]byte {
	if whole(p) {
		return [][]byte{data}
	}
	row := int64(len(data)) / storedRows(p)
	every, first, each := row*int64(p.From.Every), row*int64(p.From.First), row*int64(p.From.Each)
	all := make([][]byte, 0, int64(len(data))/every)
	for ; len(data) > 0; data = data[every:] {
		all = append(all, data[first:first+each])
	}
	return all
}

// patternProblem says why a part's rows cannot be taken from a tensor of a scheme; "" where they can. A scheme of 0 has no blocks.
func patternProblem(p model.Part, scheme op.Scheme) string {
	f := p.From
	switch {
	case f == model.Pattern{}:
	case f.First < 0 || f.Each < 1 || f.First > f.Every-f.Each:
		return fmt.Sprintf("has no rows %d to %d of every %d", f.First, int64(f.First)+int64(f.Each)-1, f.Every)
	case p.Rows%f.Each != 0:
		return fmt.Sprintf("cannot give %d rows, %d of every %d", p.Rows, f.Each, f.Every)
	case scheme == op.SchemeF8Block && (f.First|f.Each|f.Every)%op.F8BlockRows != 0:
		return fmt.Sprintf("gives rows %d to %d of every %d, which do not begin and end with the %d that share scales in %s (another quantisation of this model is needed)",
			f.First, f.First+f.Each-1, f.Every, op.F8BlockRows, scheme)
	}
	return ""
}
