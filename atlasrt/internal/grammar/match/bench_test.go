package match

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
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

// BenchmarkInstances makes every mask of instances of real schemas.
func BenchmarkInstances(b *testing.B) {
	v, tok := realVocabulary(b, "qwen3")
	all := instances(b)
	mask := make([]uint32, v.Words())
	for _, c := range []struct {
		name string
		text func(j *jsonRules) func() regex.Ref
	}{
		{"plain", func(j *jsonRules) func() regex.Ref { return j.text }},
		{"most1000", func(j *jsonRules) func() regex.Ref {
			return func() regex.Ref { return j.Regexes.Repeat(j.character(), 0, 1000) }
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				var masks, compiles []time.Duration
				var names []string
				for _, data := range all {
					ids := tok.Encode(string(data), false)
					least := make([]time.Duration, len(ids)+1)
					for again := range repeats {
						j := newJSONRules()
						j.text = c.text(j)
						shape := j.shape(b, data)
						begin := time.Now()
						g, err := j.Grammar(shape)
						if err != nil {
							b.Fatal(err)
						}
						m, err := New(g, v, Limits{})
						if err != nil {
							b.Fatal(err)
						}
						note := func(at int, took time.Duration) {
							if again == 0 || took < least[at] {
								least[at] = took
							}
						}
						s := m.Start()
						for at, id := range ids {
							before := time.Now()
							if err := s.Mask(mask); err != nil {
								b.Fatal(err)
							}
							note(at, time.Since(before))
							if at == 0 {
								note(len(ids), time.Since(begin))
							}
							next, ok := s.Next(id)
							if !ok || mask[id/32]>>(id%32)&1 == 0 {
								b.Fatalf("%s: token %d %q may not come", data, at, v.text(id))
							}
							s = next
						}
						if !s.Done() {
							b.Fatalf("%s: not done", data)
						}
					}
					for at, id := range ids {
						names = append(names, fmt.Sprintf("token %d %q of %.100s", at, v.text(id), data))
					}
					masks = append(masks, least[:len(ids)]...)
					compiles = append(compiles, least[len(ids)])
				}
				quantiles(b, "mask", masks)
				quantiles(b, "compile", compiles)
				order := make([]int, len(masks))
				for at := range order {
					order[at] = at
				}
				slices.SortFunc(order, func(a, b int) int { return int(masks[b] - masks[a]) })
				for at := 0; at < len(order); at += max(1, at/2) {
					b.Log(at, masks[order[at]], names[order[at]])
				}
				b.Log(len(masks), "masks")
			}
		})
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
