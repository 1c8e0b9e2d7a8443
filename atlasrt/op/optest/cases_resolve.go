package optest

import (
	"fmt"
	"math"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// resolveCases mix tokens with references, among them ones past the end.
func resolveCases() []*Case {
	var list []*Case
	for _, s := range []struct{ rows, count int32 }{{1, 1}, {7, 3}, {64, 64}, {255, 64}, {256, 16}, {257, 64}, {2000, 200}} {
		c := of(fmt.Sprintf("rows %d of %d sampled", s.rows, s.count), op.Resolve{Rows: s.rows, Count: s.count})
		ids, sampled := make([]int32, s.rows), make([]int32, s.count)
		for r := range ids {
			switch i := int32(r); r % 5 {
			case 0, 1:
				ids[r] = -1 - i%s.count
			case 2:
				ids[r] = -1 - s.count - i
			case 3:
				ids[r] = 1000 + i
			}
		}
		ids[s.rows-1] = []int32{-1, -s.count, math.MinInt32}[s.rows%3]
		for i := range sampled {
			sampled[i] = int32(7*i) - 1 // a row without a token gave -1
		}
		set(c, "IDs", ids)
		set(c, "Sampled", sampled)
		list = append(list, c)
	}
	return list
}
