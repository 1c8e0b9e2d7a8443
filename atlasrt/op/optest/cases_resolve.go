package optest

import (
	"fmt"
	"math"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// resolveCases mix tokens with references, some of them past the end. The words after the tokens may be anything and must be copied.
func resolveCases() []*Case {
	var list []*Case
	for _, s := range []struct {
		rows, samples, others int32
		inPlace               bool
	}{
		{1, 1, 0, false}, {7, 3, 12, false}, {64, 64, 5000, false}, {255, 64, 1, false}, {256, 16, 255, false}, {257, 64, 300, false}, {2000, 200, 70000, false},
		{7, 3, 0, true}, {300, 64, 20, true},
	} {
		name := fmt.Sprintf("rows %d of %d sampled, %d more words", s.rows, s.samples, s.others)
		c := of(name, op.Resolve{Count: s.rows + s.others, Rows: s.rows, Samples: s.samples})
		if s.inPlace {
			c.Name += ", in place"
			c.alias["Out"] = "In"
		}
		words, sampled := make([]int32, s.rows+s.others), make([]int32, s.samples)
		for i := range words {
			words[i] = int32(uint32(i) * 2654435761)
		}
		for r := range words[:s.rows] {
			switch i := int32(r); r % 5 {
			case 0, 1:
				words[r] = -1 - i%s.samples
			case 2:
				words[r] = -1 - s.samples - i
			case 3:
				words[r] = 1000 + i
			default:
				words[r] = 0
			}
		}
		words[s.rows-1] = []int32{-1, -s.samples, math.MinInt32}[s.rows%3]
		for i := range sampled {
			sampled[i] = int32(7*i) - 1 // a row without a token gave -1
		}
		set(c, "In", words)
		set(c, "Sampled", sampled)
		list = append(list, c)
	}
	return list
}
