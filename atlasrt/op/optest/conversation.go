package optest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// conversation is a batch of prefills whose rows are computed in other ways as well: each sequence alone, in chunks, and token by token.
// A row must have the same bits each time.
type conversation struct {
	name  string
	whole *Case
	batch []sequence
}

func conversations(o Options) []conversation {
	var list []conversation
	batch := []sequence{{1, 1}, {16, 16}, {40, 40}, {23, 70}, {17, 17}}
	for i, h := range headShapes {
		if o.Short && i > 1 {
			break
		}
		for k, kv := range kvTypes {
			x := h.attention(kv, 16, []int{0, 0, 9}[(i+k)%3])
			name := fmt.Sprintf("prefill, chunks and decodes %s %s window %d", h, kv, x.Window)
			list = append(list, conversation{name, attention(name, x, batch, 0), batch})
		}
	}
	if o.Short {
		return list
	}
	// Long sequences, which kernels divide among blocks in another way when they are alone.
	for _, long := range []struct {
		heads  heads
		window int
		batch  []sequence
	}{
		{heads{64, 2, 64}, 0, []sequence{{70, 1400}, {1, 4500}, {2, 700}}},
		{heads{64, 2, 64}, 900, []sequence{{70, 1400}, {1, 4500}, {2, 700}}},
		{heads{8, 2, 64}, 0, append(decodes(16, 1700, 20), sequence{1, 8700})},
		{heads{8, 2, 128}, 0, append(decodes(9, 70, 240), sequence{1, 8700})},
		{heads{2, 1, 256}, 0, append(decodes(9, 70, 120), sequence{1, 4500})},
	} {
		x := long.heads.attention(op.BF16, 16, long.window)
		name := fmt.Sprintf("long sequences %s window %d", long.heads, long.window)
		list = append(list, conversation{name, attention(name, x, long.batch, 0), long.batch})
	}
	return list
}

// part is a sequence's rows from one position to another.
type part struct{ sequence, from, to int }

// splits are ways to cut a batch into calls.
func (v conversation) splits() map[string][][]part {
	ways := map[string][][]part{}
	for i, s := range v.batch {
		first := s.length - s.rows
		ways["alone"] = append(ways["alone"], []part{{i, first, s.length}})
		ways["last row alone"] = append(ways["last row alone"], []part{{i, s.length - 1, s.length}})
		for way, n := range map[string]int{"in chunks of 3": 3, "token by token": 1} {
			for k := 0; first+k*n < s.length; k++ {
				if k == len(ways[way]) {
					ways[way] = append(ways[way], nil)
				}
				ways[way][k] = append(ways[way][k], part{i, first + k*n, min(first+(k+1)*n, s.length)})
			}
		}
	}
	return ways
}

func (j *judge) judgeSplits(v conversation) Result {
	result := Result{Op: "PagedAttention", Case: v.name}
	p, err := j.prepare(v.whole)
	if err != nil {
		return result.failed(err)
	}
	full, err := j.target.run(p.Case, p.target, nil)
	if err != nil {
		return result.failed(err)
	}
	splits := v.splits()
	for _, way := range slices.Sorted(maps.Keys(splits)) {
		for _, parts := range splits[way] {
			c, before, want := v.cut(p, parts, full["Out"])
			got, err := j.target.run(c, before, nil)
			if err != nil {
				return result.failed(fmt.Errorf("%s: %w", way, err))
			}
			e, message := compareBits(c.rowsOf(j.Act), want, got["Out"])
			result.add(e, 0, way+": "+message+" as in one prefill")
		}
	}
	return result
}

// rowsOf is the field of the result, for a case of attention.
func (c *Case) rowsOf(act op.DType) field {
	x := c.args.Interface().(op.PagedAttention)
	width := int(x.Heads * x.HeadDim)
	return field{name: "Out", role: out, dtype: act, count: int(x.Rows), inner: width, pitch: width, cols: width}
}

// cut makes the call that computes some parts of the sequences. before is what its buffers hold, want what its result must be.
func (v conversation) cut(p *prepared, parts []part, full []byte) (c *Case, before contents, want []byte) {
	c = p.clone()
	x := p.args.Interface().(op.PagedAttention)
	tables, begins := get[int32](p.target["Tables"]), get[int32](p.target["Starts"])
	qRow, outRow := len(p.target["Q"])/int(x.Rows), len(full)/int(x.Rows)
	starts, lengths, someTables, rows := []int32{0}, []int32{}, []int32{}, 0
	var q bytes.Buffer
	for _, part := range parts {
		s := v.batch[part.sequence]
		from := int(begins[part.sequence]) + part.from - (s.length - s.rows)
		n := part.to - part.from
		rows += n
		q.Write(p.target["Q"][from*qRow : (from+n)*qRow])
		want = append(want, full[from*outRow:(from+n)*outRow]...)
		starts, lengths = append(starts, int32(rows)), append(lengths, int32(part.to))
		someTables = append(someTables, tables[part.sequence*int(x.MaxBlocks):(part.sequence+1)*int(x.MaxBlocks)]...)
	}
	c.args.FieldByName("Rows").SetInt(int64(rows))
	c.args.FieldByName("Seqs").SetInt(int64(len(parts)))
	set(c, "Starts", starts)
	set(c, "Lengths", lengths)
	set(c, "Tables", someTables)
	before = contents{"K": p.target["K"], "V": p.target["V"], "Q": q.Bytes(), "Out": p.target["Out"][:len(want)]}
	for _, name := range []string{"Starts", "Lengths", "Tables"} {
		before[name] = c.values[name]
	}
	return c, before, want
}
