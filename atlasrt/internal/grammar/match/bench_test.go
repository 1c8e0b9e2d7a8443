package match

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// quantiles reports times in microseconds.
func quantiles(b *testing.B, what string, times []time.Duration) {
	slices.Sort(times)
	at := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))]) / 1e3 }
	b.ReportMetric(at(0.5), what+"-half-µs")
	b.ReportMetric(at(0.99), what+"-99%-µs")
	b.ReportMetric(at(1), what+"-most-µs")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkInstances makes every mask of instances of real schemas, each with a grammar of its own that nobody has used.
func BenchmarkInstances(b *testing.B) {
	v, tok := realVocabulary(b, "qwen3")
	all := instances(b)
	mask := make([]uint32, v.Words())
	for _, c := range []struct {
		name string
		text func(j *jsonRules) func() regex.Ref
	}{
		{"plain", func(j *jsonRules) func() regex.Ref { return j.text }},
		{"most100000", func(j *jsonRules) func() regex.Ref {
			return func() regex.Ref { return j.Regexes.Repeat(j.character(), 0, 100000) }
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				var masks, compiles []time.Duration
				worst := map[time.Duration]string{}
				for _, data := range all[:20] {
					b.Logf("%.80s", data)
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
					s := m.Start()
					for at, id := range tok.Encode(string(data), false) {
						before := time.Now()
						if err := s.Mask(mask); err != nil {
							b.Fatal(err)
						}
						took := time.Since(before)
						masks = append(masks, took)
						if at == 0 {
							compiles = append(compiles, time.Since(begin))
						}
						worst[took] = fmt.Sprintf("token %d %q of %.100s", at, v.text(id), data)
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
				quantiles(b, "mask", masks)
				quantiles(b, "compile", compiles)
				slices.Sort(masks)
				for _, took := range masks[len(masks)-5:] {
					b.Log(took, worst[took])
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

var _ = rules.Empty
