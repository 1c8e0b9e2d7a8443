package optest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// history is a batch of a recurrent layer whose rows are computed in other ways as well: each sequence alone, in chunks, row by row, and
// with drafts that turn out right or wrong. A row must have the same bits each time, and so must the state that is left.
type history struct {
	whole *Case
	batch []stretch
}

func histories(o Options) []history {
	batch := []stretch{{rows: 16}, {rows: 1}, {rows: 9, position: 70}, {rows: 23}, {rows: 13, position: 2}}
	const name, drafts = "prompt, chunks, rows and drafts", 3
	var list []history
	add := func(c *Case) { list = append(list, history{c, batch}) }
	for _, channels := range []int{97, 520} {
		add(conv(fmt.Sprintf("%s, %d channels", name, channels), op.CausalConv{Channels: int32(channels), Width: 4, MaxDrafts: drafts}, batch, 0).with("Bias"))
	}
	for i, s := range smallStates {
		if o.Short && i > 1 {
			break
		}
		add(delta(fmt.Sprintf("%s, %s", name, s), s.rule(drafts), batch, 0))
		add(deltaNet(fmt.Sprintf("%s, %s", name, s), s.net(drafts, op.GateSilu), batch, 0))
	}
	return list
}

// feed is what a sequence brings to one call.
type feed struct {
	sequence, position int   // position is that of the first row
	rows               []int // of the whole batch: the first ones are the sequence's own, the others drafts that turn out wrong
	right              int   // how many are its own
	drafts, accepted   int   // see op.Recurrent
}

// steps are ways to compute the batch in several calls, one after the other.
func (h history) steps() map[string][][]feed {
	ways := map[string][][]feed{}
	first := 0
	for i, s := range h.batch {
		own := counting(s.rows)
		for k := range own {
			own[k] += int32(first)
		}
		ways["alone"] = append(ways["alone"], []feed{h.feed(i, own, 0, s.rows)})
		for way, n := range map[string]int{"in chunks of 3": 3, "row by row": 1} {
			for k := 0; k*n < s.rows; k++ {
				ways[way] = put(ways[way], k, h.feed(i, own, k*n, min(k*n+n, s.rows)))
			}
		}
		accepted := 0
		for at, k := 0, 0; at < s.rows; k++ { // a row and drafts, of which the first few are right
			drafts := max(min(k%4, s.rows-at-2), 0)
			right := min(k/2%4, drafts)
			f := h.feed(i, own, at, at+1+right)
			for range drafts - right {
				f.rows = append(f.rows, first)
			}
			f.drafts, f.accepted = drafts, accepted
			at, accepted = at+1+right, right
			ways["with drafts"] = put(ways["with drafts"], k, f)
		}
		first += s.rows
	}
	return ways
}

// put adds a sequence's feed to step k, which is one of the steps or the next.
func put(steps [][]feed, k int, f feed) [][]feed {
	if k == len(steps) {
		steps = append(steps, nil)
	}
	steps[k] = append(steps[k], f)
	return steps
}

// feed is rows of a sequence, whose own are rows of the whole batch.
func (h history) feed(sequence int, own []int32, from, to int) feed {
	f := feed{sequence: sequence, position: h.batch[sequence].position + from, right: to - from}
	for _, r := range own[from:to] {
		f.rows = append(f.rows, int(r))
	}
	return f
}

func (j *judge) judgeHistory(h history) Result {
	result := Result{Op: h.whole.Op, Case: h.whole.Name}
	p, err := j.prepare(h.whole)
	if err != nil {
		return result.failed(err)
	}
	full, err := j.target.run(p.Case, p.target, nil)
	if err != nil {
		return result.failed(err)
	}
	ways := h.steps()
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		memory := maps.Clone(p.target)
		for _, feeds := range ways[way] {
			c, before := p.step(memory, feeds)
			got, err := j.target.run(c, before, nil)
			if err != nil {
				return result.failed(fmt.Errorf("%s: %w", way, err))
			}
			for _, f := range p.fields {
				if f.role == inout {
					memory[f.name] = got[f.name]
				}
			}
			e, message := p.compareRows(feeds, full["Out"], got["Out"])
			result.add(e, 0, way+": "+message+" as in one call")
		}
		for _, f := range p.fields {
			if f.role == inout && f.name != "Journal" {
				e, message := compareBits(f, full[f.name], memory[f.name])
				result.add(e, 0, way+": "+message+" after all rows, as after one call")
			}
		}
	}
	return result
}

// step makes the call of some feeds, with states as earlier calls left them. before is what its buffers hold.
func (p *prepared) step(memory contents, feeds []feed) (c *Case, before contents) {
	c, before = p.clone(), maps.Clone(memory)
	slots := get[int32](p.target["Slot"])
	starts, rows := []int32{0}, []int{}
	var lengths, slot, drafts, accepted []int32
	for _, f := range feeds {
		rows = append(rows, f.rows...)
		starts, lengths, slot = append(starts, int32(len(rows))), append(lengths, int32(f.position+len(f.rows))), append(slot, slots[f.sequence])
		drafts, accepted = append(drafts, int32(f.drafts)), append(accepted, int32(f.accepted))
	}
	c.size("Rows", len(rows))
	c.size("Seqs", len(feeds))
	for name, values := range map[string][]int32{"Starts": starts, "Lengths": lengths, "Slot": slot, "Drafts": drafts, "Accepted": accepted} {
		if _, ok := memory[name]; ok {
			set(c, name, values)
			before[name] = c.values[name]
		}
	}
	for _, f := range p.fields {
		if f.first == "Rows" {
			before[f.name] = f.gather(p.target[f.name], rows)
		}
	}
	return c, before
}

// gather is a buffer of some of another's rows.
func (f field) gather(data []byte, rows []int) []byte {
	size, pitch := int(f.dtype.Bytes()), f.pitch*int(f.dtype.Bytes())
	var b bytes.Buffer
	for i, r := range rows {
		b.Write(data[r*pitch : r*pitch+f.inner*size])
		if i+1 < len(rows) {
			b.Write(make([]byte, pitch-f.inner*size))
		}
	}
	return b.Bytes()
}

// compareRows compares the rows of a step that are no wrong drafts with those of the whole batch.
func (p *prepared) compareRows(feeds []feed, full, got []byte) (worst float64, message string) {
	all := p.fields[slices.IndexFunc(p.fields, func(f field) bool { return f.name == "Out" })]
	size, at := all.inner*int(all.dtype.Bytes()), 0
	for _, f := range feeds {
		for i, r := range f.rows {
			if one := (window{r, 1}); i < f.right {
				row := all
				row.count = 1
				if e, m := compareBits(row, all.rows(full, one, 1), got[at:at+size]); e > worst {
					worst, message = e, fmt.Sprintf("row %d of sequence %d: %s", f.position+i, f.sequence, m)
				}
			}
			at += size
		}
	}
	return worst, message
}
