package optest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

var schemes = []op.Scheme{
	op.SchemeBF16, op.SchemeQ8_0, op.SchemeQ4_0, op.SchemeQ4_1, op.SchemeF8, op.SchemeF8Block, op.SchemeNVFP4,
	op.SchemeQ5_0, op.SchemeQ4_K, op.SchemeQ6_K,
}

// whole rounds a number of columns up to whole blocks of a scheme.
func whole(scheme op.Scheme, cols int) int {
	block := int(scheme.Block())
	return (cols + block - 1) / block * block
}

// rowCounts are numbers of rows around the sizes of tiles.
func rowCounts(o Options) []int {
	if o.Short {
		return []int{1, 3, 17}
	}
	return []int{1, 2, 3, 5, 8, 16, 17, 64, 300}
}

// shape is a matrix: rows are outputs, columns inputs.
type shape struct{ rows, cols int }

func (s shape) String() string { return fmt.Sprintf("%d×%d", s.rows, s.cols) }

// shapes are matrices with few, odd and many rows and columns that the scheme can hold.
func shapes(scheme op.Scheme, o Options) []shape {
	list := []shape{{17, 32}, {97, 96}, {48, 576}, {144, 1536}}
	if scheme.Block() == 1 {
		list = append(list, shape{33, 97}, shape{16, 1})
	}
	if scheme == op.SchemeF8Block { // an odd number of blocks of 128 columns
		list = append(list, shape{130, 640})
	}
	if scheme == op.SchemeNVFP4 { // half a block of 32 columns is left
		list = append(list, shape{16, 16}, shape{50, 336})
	}
	if !o.Short {
		list = append(list, shape{576, 1536}, shape{1, 64}, shape{24, 8192}, shape{1003, 160})
	}
	if !o.Short && scheme.Block() == 1 { // long rows, whose addresses are multiples of nothing
		list = append(list, shape{16, 9217})
	}
	for i := range list {
		list[i].cols = whole(scheme, list[i].cols)
	}
	return list
}

func linearCases(o Options) []*Case {
	var list []*Case
	for _, scheme := range schemes {
		if !o.Short {
			list = append(list, tallCases(scheme)...)
			list = append(list, largeCases(scheme)...)
		}
		list = append(list, unevenCase(scheme, 1), unevenCase(scheme, 3))
		list = append(list, peakedCases(scheme)...)
		for i, s := range shapes(scheme, o) {
			for k, rows := range rowCounts(o) {
				x := op.Linear{W: matrix(scheme, s.rows, s.cols), Rows: int32(rows), OutPitch: int32(s.rows)}
				name, bias, scale := fmt.Sprintf("%s %s rows %d", scheme, s, rows), "", ""
				if (i+k)%2 == 1 {
					bias, name = "Bias", name+" bias"
				}
				if (i+k)%3 == 1 {
					x.OutPitch, name = int32(s.rows+1+7*k), name+" pitch"
				}
				if (i+k)%5 == 2 || (i+k)%2 == 0 && factored(scheme) != "" {
					scale, name = "W.Scale", name+" scale"
				}
				list = append(list, of(name, x).with(bias, scale))
			}
		}
	}
	return list
}

// unevenCase has rows in which one column of each 32 is far larger than the others, and some stretches of 64 columns are tiny or zero.
func unevenCase(scheme op.Scheme, rows int) *Case {
	s := shape{80, whole(scheme, 1056)}
	c := of(fmt.Sprintf("%s %s rows %d uneven", scheme, s, rows), op.Linear{W: matrix(scheme, s.rows, s.cols), Rows: int32(rows), OutPitch: int32(s.rows)}).with(factored(scheme))
	rng := rand.New(rand.NewPCG(uint64(s.cols), uint64(rows)))
	for r := range rows {
		for j := range s.cols {
			x := rng.NormFloat64() * []float64{1, 0x1p-120, 1, 0, 0x1p-20}[(r+j/64)%5]
			if j%32 == 13 {
				x *= 40
			}
			c.numbers["In"] = append(c.numbers["In"], x)
		}
	}
	return c
}

// peak gives a case rows that are zero but for one block of 32 columns; every third row has two such blocks. Kernels that round
// activations to bytes must give these blocks fifteen bits, since they stand out of their row (see roundRest).
func (c *Case) peak(rows, cols int) *Case {
	c.Name, c.peaked = c.Name+" peaked", true
	rng := rand.New(rand.NewPCG(uint64(cols), uint64(rows)))
	for r := range rows {
		first := rng.IntN(cols / 32)
		for j := range cols {
			x := rng.NormFloat64()
			if g := j / 32; g != first && (r%3 > 0 || g != (first+5)%(cols/32)) {
				x = 0
			}
			c.numbers["In"] = append(c.numbers["In"], x)
		}
	}
	return c
}

// peakedCases are products of rows whose blocks stand out (see peak): of few rows, and of more rows than kernels prepare at a time.
func peakedCases(scheme op.Scheme) []*Case {
	if !slices.Contains(inBytes, scheme) {
		return nil
	}
	cols := whole(scheme, 1056)
	var list []*Case
	for _, rows := range []int{1, 2, 3, 7, 70} {
		x := op.Linear{W: matrix(scheme, 80, cols), Rows: int32(rows), OutPitch: 80}
		list = append(list, of(fmt.Sprintf("%s 80×%d rows %d", scheme, cols, rows), x).with(word(rows == 3, "Bias"), factored(scheme)).peak(rows, cols))
	}
	long := whole(scheme, 8448) // more blocks than the bits of one word that marks those which stand out
	return append(list, of(fmt.Sprintf("%s 24×%d rows 9", scheme, long), op.Linear{W: matrix(scheme, 24, long), Rows: 9, OutPitch: 24}).with("W.Scale").peak(9, long))
}

// tallCases are matrices with more outputs than all blocks of a GPU compute at once, for a few dozen rows.
func tallCases(scheme op.Scheme) []*Case {
	var list []*Case
	for i, s := range []shape{{25600, 160}, {6208, 160}, {3112, 352}} {
		s.cols = whole(scheme, s.cols)
		for k, rows := range []int{9, 33, 17}[:min(i+2, 3)] {
			c := of(fmt.Sprintf("%s %s rows %d", scheme, s, rows), op.Linear{W: matrix(scheme, s.rows, s.cols), Rows: int32(rows), OutPitch: int32(s.rows)})
			if (i+k)%2 == 1 {
				c.with("Bias")
			}
			list = append(list, c.with(factored(scheme)))
		}
	}
	if w := matrix(scheme, 256, 8448); w.Rounding == op.RoundingE4M3xRow { // rows longer than the block that rounds one can hold
		list = append(list, of(fmt.Sprintf("%s 256×8448 rows 257", scheme), op.Linear{W: w, Rows: 257, OutPitch: 256}).with(factored(scheme)))
		w.Rows, w.Cols = 6200, 256 // so many outputs that rounding pays for few rows
		list = append(list, of(fmt.Sprintf("%s 6200×256 rows 49", scheme), op.Linear{W: w, Rows: 49, OutPitch: 6200}).with(factored(scheme)))
	}
	return list
}

// largeCases have so many rows and outputs that a GPU takes its larger tiles, the last of which are partly outside the matrix. Only bf16
// and schemes whose activations are rounded have such tiles.
func largeCases(scheme op.Scheme) []*Case {
	large := func(outputs, cols, rows, past int, with ...string) *Case {
		name := fmt.Sprintf("%s %d×%d rows %d", scheme, outputs, cols, rows) + word(past > 0, " pitch") + word(len(with) > 0, " bias")
		x := op.Linear{W: matrix(scheme, outputs, cols), Rows: int32(rows), OutPitch: int32(outputs + past)}
		return of(name, x).with(append(with, factored(scheme))...)
	}
	switch scheme {
	case op.SchemeBF16:
		return []*Case{large(8440, 40, 65, 0, "Bias"), large(16760, 40, 140, 5)}
	case op.SchemeF8, op.SchemeF8Block:
		return []*Case{large(5752, 384, 300, 0, "Bias"), large(6392, 256, 300, 5), large(5752, 640, 300, 5), large(6392, 512, 300, 0, "Bias"), large(2056, 1280, 300, 5)}
	}
	return nil
}

// tallLogits multiplies all rows by an output matrix, the last row first.
func tallLogits(scheme op.Scheme, outputs, cols, rows int) *Case {
	cols = whole(scheme, cols)
	x := op.Logits{W: matrix(scheme, outputs, cols), Rows: int32(rows), InRows: int32(rows)}
	index := make([]int32, rows)
	for i := range index {
		index[i] = int32(rows - 1 - i)
	}
	c := of(fmt.Sprintf("%s %d×%d rows %d", scheme, outputs, cols, rows), x)
	set(c, "Index", index)
	return c.with(factored(scheme))
}

func logitsCases(o Options) []*Case {
	var list []*Case
	for _, scheme := range schemes {
		for _, s := range []shape{{257, 96}, {1000, 576}, {97, 1536}} {
			s.cols = whole(scheme, s.cols)
			for _, rows := range []int{1, 2, 4, 5, 8, 17} {
				x := op.Logits{W: matrix(scheme, s.rows, s.cols), Rows: int32(rows), InRows: int32(rows + 3)}
				c := of(fmt.Sprintf("%s %s rows %d", scheme, s, rows), x)
				index := make([]int32, rows)
				for i := range index {
					index[i] = int32(rows + 2 - i)
					if i%4 == 3 {
						index[i] = -1
					}
				}
				set(c, "Index", index)
				list = append(list, c.with(factored(scheme)))
			}
			if o.Short {
				break
			}
		}
		if !o.Short {
			list = append(list, tallLogits(scheme, 26001, 96, 9), tallLogits(scheme, 26001, 96, 33))
		}
		if slices.Contains(inBytes, scheme) {
			cols := whole(scheme, 1056)
			list = append(list, tallLogits(scheme, 97, cols, 1).peak(1, cols), tallLogits(scheme, 97, cols, 6).peak(6, cols))
		}
	}
	return list
}

func embeddingCases() []*Case {
	var list []*Case
	for _, scheme := range schemes {
		for i, s := range append(shapes(scheme, Options{Short: true}), shape{1000, whole(scheme, 576)}) {
			rows := []int{1, 6, 33}[i%3]
			c := of(fmt.Sprintf("%s %s rows %d", scheme, s, rows), op.Embedding{W: matrix(scheme, s.rows, s.cols), Rows: int32(rows)})
			ids := make([]int32, rows)
			for r := range ids {
				ids[r] = int32(r * 7 % s.rows)
			}
			copy(ids[1:], []int32{-1, int32(s.rows), int32(s.rows - 1), 1 << 30})
			set(c, "IDs", ids)
			if i == 1 {
				c.with("W.Scale")
			}
			list = append(list, c.with(factored(scheme)))
		}
	}
	return list
}

func normCases() []*Case {
	var list []*Case
	for i, s := range []shape{{1, 96}, {1, 8192}, {5, 97}, {3, 144}, {300, 576}, {2, 1}, {17, 1536}, {64, 1023}, {1, 64}} {
		x := op.RMSNorm{Rows: int32(s.rows), Cols: int32(s.cols), Eps: []float32{1e-6, 1e-5}[i%2]}
		list = append(list,
			of(s.String(), x),
			of(s.String()+" residual", x).with("Residual"),
			inPlace(of(s.String()+" in place", x)),
			inPlace(of(s.String()+" residual, in place", x).with("Residual")))
	}
	return list
}

// inPlace writes a result over the input.
func inPlace(c *Case) *Case {
	c.alias["Out"] = "In"
	return c
}

func gateCases() []*Case {
	var list []*Case
	for _, s := range []shape{{1, 96}, {1, 8192}, {5, 97}, {3, 144}, {300, 576}, {2, 1}, {17, 1536}, {1, 1}} {
		list = append(list, of(s.String(), op.SwiGLU{Rows: int32(s.rows), Cols: int32(s.cols)}))
	}
	extreme := make([]float64, 2*64)
	for i := range extreme {
		extreme[i] = []float64{-100, 100, -20, 20, 0, 1e-30, -88, 88}[i%8]
	}
	c := of("large gates", op.SwiGLU{Rows: 1, Cols: 64})
	c.numbers["In"] = extreme
	return append(list, c)
}

func expertCases(o Options) []*Case {
	var list []*Case
	for _, scheme := range schemes {
		for i, s := range []struct{ experts, half, cols, rows, top int }{
			{4, 17, 96, 5, 2}, {8, 48, 160, 1, 8}, {8, 32, 64, 33, 1}, {16, 96, 96, 17, 4}, {3, 8, 32, 64, 3}, {64, 24, 96, 20, 8},
			{5, 80, 384, 150, 3}, {16, 32, 128, 150, 2}, {8300, 32, 8, 8300, 1},
		} {
			if o.Short && i > 2 || s.rows > 1000 && scheme != op.SchemeBF16 { // one scheme is enough for more experts than fit into shared memory
				break
			}
			s.cols = whole(scheme, s.cols)
			for pattern, name := range []string{"scattered", "few experts", "one expert"} {
				if pattern == 2 && s.top > 1 || pattern > 0 && s.rows > 1000 {
					continue
				}
				ids := picks(s.rows, s.experts, s.top, pattern)
				title := fmt.Sprintf("%s %d×%d×%d rows %d top %d, %s", scheme, s.experts, s.half, s.cols, s.rows, s.top, name)
				list = append(list,
					of(title, op.ExpertUp{W: experts(scheme, s.experts, 2*s.half, s.cols), Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)),
					of(title, op.ExpertDown{W: experts(scheme, s.experts, s.half, s.cols), Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)))
			}
		}
	}
	for _, scheme := range inBytes {
		cols, ids := whole(scheme, 1056), picks(12, 4, 2, 0)
		title := fmt.Sprintf("%s 4×40×%d rows 12 top 2", scheme, cols)
		list = append(list, of(title, op.ExpertDown{W: experts(scheme, 4, 40, cols), Rows: 12, TopK: 2}).group(ids).with(factored(scheme)).peak(24, cols))
	}
	return list
}

// sharedPicks are picks of experts the last of which is every row's last pick.
func sharedPicks(rows, count, top, pattern int) []int32 {
	ids := picks(rows, count-1, top, pattern)
	for r := range rows {
		ids[(r+1)*top-1] = int32(count - 1)
	}
	return ids
}

// picks chooses top different experts for each row: at random (pattern 0), the same ones for all rows (1), or the last one (2, with top 1).
func picks(rows, count, top, pattern int) []int32 {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(count)))
	var ids []int32
	for range rows {
		var order []int
		if pattern == 0 {
			order = rng.Perm(count)
		}
		for k := range top {
			switch pattern {
			case 0:
				ids = append(ids, int32(order[k]))
			case 1:
				ids = append(ids, int32(count-1-k))
			default:
				ids = append(ids, int32(count-1))
			}
		}
	}
	return ids
}
