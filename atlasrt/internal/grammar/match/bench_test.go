package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
)

// quantiles reports times in microseconds.
func quantiles(b *testing.B, what string, times []time.Duration) {
	times = slices.Clone(times)
	slices.Sort(times)
	at := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))]) / 1e3 }
	b.ReportMetric(at(0.5), what+"-half-µs")
	b.ReportMetric(at(0.99), what+"-99%-µs")
	b.ReportMetric(at(1), what+"-most-µs")
	b.ReportMetric(0, "ns/op")
}

// repeats is how often an instance is gone through, each time with a machine that nobody has used. The least time of each mask counts: other
// programs run on the computer as well.
const repeats = 3

// times are of masks and of grammars until their first mask, in one thread.
type times struct {
	masks, grammars []time.Duration
	names           []string // of the masks
}

// instance goes through a valid instance. build makes a machine that nobody has used.
func (ts *times) instance(b *testing.B, v *Vocabulary, ids []int32, name string, build func() *Machine) {
	b.Helper()
	mask := make([]uint32, v.Words())
	least := make([]time.Duration, len(ids)+1)
	for again := range repeats {
		note := func(at int, since time.Time) {
			if took := time.Since(since); again == 0 || took < least[at] {
				least[at] = took
			}
		}
		begin := time.Now()
		s := build().Start()
		for at, id := range ids {
			before := time.Now()
			if err := s.Mask(mask); err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			note(at, before)
			if at == 0 {
				note(len(ids), begin)
			}
			next, ok := s.Next(id)
			if !ok || mask[id/32]>>(id%32)&1 == 0 {
				b.Logf("%s: token %d %q may not come", name, at, v.text(id))
				return
			}
			s = next
		}
		if !s.Done() {
			b.Fatalf("%s: not done", name)
		}
	}
	for at, id := range ids {
		ts.names = append(ts.names, fmt.Sprintf("%s, token %d %q", name, at, v.text(id)))
	}
	ts.masks = append(ts.masks, least[:len(ids)]...)
	ts.grammars = append(ts.grammars, least[len(ids)])
}

func (ts *times) report(b *testing.B) {
	b.Helper()
	quantiles(b, "mask", ts.masks)
	quantiles(b, "compile", ts.grammars)
	order := make([]int, len(ts.masks))
	for at := range order {
		order[at] = at
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(ts.masks[b], ts.masks[a]) })
	for at := 0; at < len(order); at += max(1, at/2) {
		b.Log(at, ts.masks[order[at]], ts.names[order[at]])
	}
	b.Log(len(ts.masks), "masks")
}

// BenchmarkInstances makes every mask of instances of real schemas, with grammars of the instances' own shape.
func BenchmarkInstances(b *testing.B) {
	v, tok := realVocabulary(b, "qwen3")
	for _, c := range []struct {
		name string
		most int
	}{{"plain", rules.Unbounded}, {"most1000", 1000}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				var ts times
				for _, line := range schemas(b) {
					for _, data := range line.valid {
						ts.instance(b, v, tok.Encode(string(data), false), string(data[:min(len(data), 80)]), func() *Machine {
							j := newJSONRules()
							j.text = func() regex.Ref { return j.Regexes.Repeat(j.character(), 0, c.most) }
							g, err := j.Grammar(j.shape(b, data))
							if err != nil {
								b.Fatal(err)
							}
							m, err := New(g, v, Limits{})
							if err != nil {
								b.Fatal(err)
							}
							return m
						})
					}
				}
				ts.report(b)
			}
		})
	}
}

// BenchmarkSchemas makes every mask of the valid instances of real schemas that are not refused. An instance whose properties are in another order
// than the schema's counts to where it stops.
func BenchmarkSchemas(b *testing.B) {
	v, tok := realVocabulary(b, "qwen3")
	for b.Loop() {
		var ts times
		for _, line := range schemas(b) {
			build := func() (*Machine, error) {
				r := rules.NewBuilder()
				start, err := schema.Add(r, line.schema, schema.Options{})
				if err != nil {
					return nil, err
				}
				g, err := r.Grammar(start)
				if err != nil {
					return nil, err
				}
				return New(g, v, Limits{})
			}
			if _, err := build(); err != nil {
				continue
			}
			for _, data := range line.valid {
				ts.instance(b, v, tok.Encode(string(data), false), line.name, func() *Machine {
					m, _ := build()
					return m
				})
			}
		}
		ts.report(b)
	}
}

func BenchmarkVocabulary(b *testing.B) {
	tokens, tok := realTokens(b, "qwen3")
	for b.Loop() {
		NewVocabulary(tokens, tok.IsSpecial)
	}
}

// BenchmarkMask makes one mask again and again, of states that are known.
func BenchmarkMask(b *testing.B) {
	v, _ := realVocabulary(b, "qwen3")
	mask := make([]uint32, v.Words())
	for _, text := range []string{`{"a":`, `{"a":"b`, `{"a`, `{"a":12`, `{"a":t`} {
		b.Run(text, func(b *testing.B) {
			s, _ := jsonMachine(b, v, Limits{}).Start().NextBytes([]byte(text))
			for b.Loop() {
				s.node.near.Store(nil)
				s.node.far.Store(nil)
				s.node.shorten(s.machine.work()).near.Store(nil)
				if err := s.Mask(mask); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLargeObject makes every mask of an object of 500 members, all of them optional.
func BenchmarkLargeObject(b *testing.B) {
	v, tok := realVocabulary(b, "qwen3")
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, `,"%c%dOption":%d`, "abcdefghijklmnopqrstuvwxyzABCDEF"[i%32], i, i)
	}
	data := []byte("{" + text.String()[1:] + "}")
	ids := tok.Encode(string(data), false)
	mask := make([]uint32, v.Words())
	for b.Loop() {
		j := newJSONRules()
		g, err := j.Grammar(j.shape(b, data))
		if err != nil {
			b.Fatal(err)
		}
		m, err := New(g, v, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		s := m.Start()
		for _, id := range ids {
			if err := s.Mask(mask); err != nil {
				b.Fatal(err)
			}
			s, _ = s.Next(id)
		}
		if !s.Done() {
			b.Fatal("not done")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(ids)), "µs/mask")
}
