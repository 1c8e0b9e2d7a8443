package optest

import (
	"bytes"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// window is some neighbouring rows of a batch.
type window struct{ first, rows int }

// windows are the smaller batches in which rows of a large one are computed again: single rows from several places, and numbers of rows
// for which kernels choose another tile.
func windows(rows int, short bool) []window {
	list := []window{{0, 1}, {1, 1}, {rows / 2, 1}, {rows - 1, 1}, {5, 2}, {3, 5}, {7, 16}, {rows - 17, 17}}
	if !short {
		list = append(list, window{2, 3}, window{11, 4}, window{1, 8}, window{20, 9}, window{40, 33}, window{rows - 64, 64}, window{9, 128}, window{0, rows - 1})
	}
	return list
}

// judgeRows runs a batch, then windows of its rows, and wants the same bits for each row.
func (j *judge) judgeRows(c *Case) Result {
	result := Result{Op: c.Op, Case: c.Name}
	p, err := j.prepare(c)
	if err != nil {
		return result.failed(err)
	}
	full, err := j.target.run(c, p.target, nil)
	if err != nil {
		return result.failed(err)
	}
	total := int(c.args.FieldByName("Rows").Int())
	for _, w := range windows(total, j.Short) {
		part := p.cut(w)
		got, err := j.target.run(part.Case, part.target, nil)
		if err != nil {
			return result.failed(fmt.Errorf("rows %d…%d of %d: %w", w.first, w.first+w.rows-1, total, err))
		}
		want := p.expect(w, part, full)
		for _, f := range part.fields {
			if f.role != in {
				e, message := compareBits(f, want[f.name], got[f.name])
				result.add(e, 0, fmt.Sprintf("rows %d…%d of %d: %s as among all rows", w.first, w.first+w.rows-1, total, message))
			}
		}
	}
	return result
}

// cut makes a case of a window of rows.
func (p *prepared) cut(w window) *prepared {
	part := &prepared{Case: p.clone(), target: contents{}}
	part.args.FieldByName("Rows").SetInt(int64(w.rows))
	for _, f := range p.fields {
		part.target[f.name] = f.rows(p.target[f.name], w, p.picks())
	}
	if p.ids != nil {
		part.group(p.ids[w.first*p.picks() : (w.first+w.rows)*p.picks()])
		for _, name := range []string{"Order", "Starts"} {
			part.target[name] = part.values[name]
		}
	}
	part.fields = make([]field, len(p.fields))
	for i, f := range p.fields {
		part.fields[i] = f.shorten(w, p.picks())
	}
	return part
}

// picks is how many items of a "Rows*TopK" buffer belong to a row.
func (c *Case) picks() int {
	if v := c.args.FieldByName("TopK"); v.IsValid() && v.CanInt() {
		return int(v.Int())
	}
	return 1
}

// perRow is how many items of a buffer belong to a row; 0 where it is not laid out by rows.
func (f field) perRow(picks int) int {
	switch f.first {
	case "Rows":
		return 1
	case "Rows*TopK":
		return picks
	}
	return 0
}

// rows is the part of a buffer that belongs to a window of rows, or all of it where it is not laid out by rows.
func (f field) rows(data []byte, w window, picks int) []byte {
	n, size := f.perRow(picks), int(f.dtype.Bytes())
	switch {
	case f.first == "Rows+1": // EditStarts: batches here have no edits, so that all are zero
		return data[:(w.rows+1)*size]
	case n == 0:
		return data
	}
	pitch, inner := f.pitch, f.inner
	if f.vector {
		pitch, inner = 1, 1
	}
	from := w.first * n * pitch
	to := ((w.first+w.rows)*n-1)*pitch + inner
	return data[from*size : to*size]
}

// shorten is the field of a case with a window's rows only.
func (f field) shorten(w window, picks int) field {
	n := f.perRow(picks)
	switch {
	case n == 0:
	case f.vector:
		f.inner, f.pitch, f.cols = w.rows*n, w.rows*n, w.rows*n
	default:
		f.count = w.rows * n
	}
	return f
}

// expect is what a window's results must be, given those of all rows.
func (p *prepared) expect(w window, part *prepared, full contents) contents {
	want := contents{}
	for _, f := range p.fields {
		if f.role == in {
			continue
		}
		want[f.name] = f.rows(full[f.name], w, p.picks())
		if x, ok := part.args.Interface().(op.RotaryCache); ok && f.perRow(1) == 0 {
			want[f.name] = cached(x, f, p.target[f.name], full[f.name], get[int32](part.target["Slots"]))
		}
	}
	return want
}

// cached is a key or value cache after some slots have been written: before, with those slots taken from after.
func cached(x op.RotaryCache, f field, before, after []byte, slots []int32) []byte {
	result := bytes.Clone(before)
	size := int(f.dtype.Bytes()) * int(x.HeadDim)
	for _, slot := range slots {
		for h := range int(x.KVHeads) {
			if slot >= 0 {
				at := size * ((int(slot/x.BlockSize)*int(x.KVHeads)+h)*int(x.BlockSize) + int(slot%x.BlockSize))
				copy(result[at:at+size], after[at:])
			}
		}
	}
	return result
}

// group sets the expert of each pick, and the lists Order and Starts, which follow from that.
func (c *Case) group(ids []int32) *Case {
	w, _ := c.weight()
	order, starts := make([]int32, len(ids)), make([]int32, w.Count+1)
	oracle.Group(order, starts, ids)
	c.ids = ids
	set(c, "Order", order)
	set(c, "Starts", starts)
	if c.args.FieldByName("IDs").IsValid() {
		set(c, "IDs", ids)
	}
	return c
}
