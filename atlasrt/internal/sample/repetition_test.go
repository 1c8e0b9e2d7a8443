package sample

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// spelling is a vocabulary in which texts have many spellings.
var spelling = [][]byte{[]byte("a"), []byte("b"), []byte("ab"), []byte(":"), []byte("a:"), []byte("ba"), []byte("\n"), []byte("bab"), []byte("c"), []byte("abc:a")}

// naive is what edits do to logits, from the formulas, over all tokens at once and in float64.
func naive(p Params, breakers []string, logits []float32, prompt, generated, hold []int32) []float64 {
	context, n := slices.Concat(prompt, generated), len(prompt)+len(generated)
	seen, counted := context, generated
	if p.Window > 0 {
		seen = context[max(n-int(p.Window), 0):]
		counted = seen
	} else if p.Window == WholeContext {
		counted = context
	}
	out := make([]float64, len(logits))
	for i := range out {
		token := int32(i)
		z := float64(logits[i]) + float64(p.LogitBias[token])
		for _, word := range p.BadWords {
			last := len(word) - 1
			if word[last] == token && last <= len(generated) && slices.Equal(generated[len(generated)-last:], word[:last]) {
				z = math.Inf(-1)
			}
		}
		if slices.Contains(hold, token) {
			z = math.Inf(-1)
		}
		if slices.Contains(seen, token) && z > 0 {
			z /= float64(p.RepetitionPenalty)
		} else if slices.Contains(seen, token) {
			z *= float64(p.RepetitionPenalty)
		}
		for first, other := range counted {
			if other == token {
				z -= float64(p.FrequencyPenalty)
				if slices.Index(counted, token) == first {
					z -= float64(p.PresencePenalty)
				}
			}
		}
		z -= naiveDRY(p.DRY, breakers, context, token)
		if p.LZPenalty > 0 {
			z += float64(p.LZPenalty) * (naiveBits(context, token, len(logits)) - math.Log2(float64(len(logits))))
		}
		out[i] = z
	}
	return out
}

// naiveDRY looks for the longest text that stood before the token, in the range, and stands at the context's end, behind the last breaker.
func naiveDRY(d DRY, breakers []string, context []int32, token int32) float64 {
	if d.Multiplier == 0 {
		return 0
	}
	if d.Range > 0 {
		context = context[max(len(context)-int(d.Range), 0):]
	}
	limit := 0
	for from := len(context) - 1; from >= 0 && !breaks(breakers, context, from); from-- {
		limit++
	}
	for _, text := range breakers {
		if strings.Contains(string(spelling[token]), text) {
			return 0
		}
	}
	longest := 0
	for i, next := range context {
		length := 0
		for length < min(i, limit) && context[i-1-length] == context[len(context)-1-length] {
			length++
		}
		if next == token {
			longest = max(longest, length)
		}
	}
	if longest < int(d.AllowedLength) {
		return 0
	}
	return min(float64(d.Multiplier)*math.Pow(float64(d.Base), float64(longest)-float64(d.AllowedLength)), certain)
}

// breaks tells whether a breaker ends in the token at a place.
func breaks(breakers []string, context []int32, at int) bool {
	var before []byte
	for _, token := range context[:at] {
		before = append(before, spelling[token]...)
	}
	whole := slices.Concat(before, spelling[context[at]])
	for _, text := range breakers {
		for end := len(before) + 1; end <= len(whole); end++ {
			if bytes.HasSuffix(whole[:end], []byte(text)) {
				return true
			}
		}
	}
	return false
}

// naiveBits is the bits that a token takes behind a context.
func naiveBits(context []int32, token int32, vocab int) float64 {
	bits := math.Log2(float64(vocab))
	window := context[:max(len(context)-lzBuffer, 0)]
	window = window[max(len(window)-lzWindow, 0):]
	for i, known := range window {
		if known == token {
			bits = min(math.Log2(float64(len(window)-i)), math.Log2(float64(vocab)))
		}
	}
	for length := min(lzBuffer, len(window)); length > 0; length-- {
		followed, grown := false, 0.0
		for i := length; i < len(window); i++ {
			if slices.Equal(window[i-length:i], context[len(context)-length:]) {
				followed = true
				if d, l := float64(len(window)-i), float64(length+1); window[i] == token {
					grown = min(math.Log2((l-1)*(d+1)/(l*d))-1, math.Log2(float64(vocab)))
				}
			}
		}
		if followed {
			if grown != 0 {
				return grown
			}
			return bits
		}
	}
	return bits
}

// Edits that are kept up to date as a sequence grows are those of the whole sequence.
func TestEditsFollowTheFormulas(t *testing.T) {
	vocab := int32(len(spelling))
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		p, often := Defaults(), func() bool { return r.IntN(2) == 0 }
		breakers := []string{}
		if often() {
			p.RepetitionPenalty = 0.5 + r.Float32()
		}
		if often() {
			p.FrequencyPenalty, p.PresencePenalty = r.Float32(), r.Float32()-0.5
		}
		if often() {
			p.Window = []int32{WholeContext, 1, 2, 5, 40}[r.IntN(5)]
		}
		if often() {
			p.DRY = DRY{Multiplier: 0.1 + r.Float32(), Base: 1 + r.Float32(), AllowedLength: 1 + r.Int32N(3), Range: []int32{0, 0, 1, 7, 30}[r.IntN(5)]}
			breakers = [][]string{{}, {":"}, {"ab", "\n"}, {"bab"}, {"a:a", ":"}}[r.IntN(5)]
			p.DRY.Breakers = NewBreakers(breakers, spelling)
		}
		if often() {
			p.LZPenalty = r.Float32()
		}
		if often() {
			p.LogitBias = map[int32]float32{r.Int32N(vocab): 2}
		}
		// Few tokens repeat much, many little.
		kinds := 1 + r.Int32N(vocab)
		tokens := func(n int) []int32 {
			out := make([]int32, n)
			for i := range out {
				if out[i] = r.Int32N(kinds); i > 4 && r.IntN(3) > 0 {
					out[i] = out[i-3-r.IntN(2)]
				}
			}
			return out
		}
		for range r.IntN(4) {
			p.BadWords = append(p.BadWords, tokens(1+r.IntN(3)))
		}
		prompt, hold := tokens(1+r.IntN(90)), tokens(r.IntN(3))
		if seed%25 == 0 { // longer than the window of the LZ penalty
			prompt, p.LZPenalty, p.DRY = tokens(lzWindow+r.IntN(60)), 0.3, DRY{}
		}
		logits := make([]float32, vocab)
		for i := range logits {
			logits[i] = 6*r.Float32() - 3
		}
		if err := p.Validate(vocab); err != nil {
			t.Fatal(err)
		}
		e := NewEdits(p, vocab, prompt, hold, nil)
		var generated []int32
		for step, token := range tokens(60) {
			if step == 20 {
				e.LetGo()
				hold = nil
			}
			got, want := e.apply(logits), naive(p, breakers, logits, prompt, generated, hold)
			for i := range got {
				if near := math.Abs(float64(got[i])-want[i]) <= 1e-4*(1+math.Abs(want[i])); !near && float64(got[i]) != want[i] {
					t.Fatalf("seed %d: %+v, breakers %q, prompt %v, generated %v: the logit of token %d is %g, want %g", seed, p, breakers, prompt, generated, i, got[i], want[i])
				}
				if out := math.IsInf(want[i], -1); e.RulesOut(int32(i)) != out {
					t.Fatalf("seed %d: %+v, generated %v: token %d is ruled out: %v, want %v", seed, p, generated, i, !out, out)
				}
			}
			if e != nil {
				for i, c := range e.causes {
					if c == (cause{}) || e.at[e.Token[i]] != i {
						t.Fatalf("seed %d: entry %d of token %d changes nothing, or is not found", seed, i, e.Token[i])
					}
				}
			}
			generated = append(generated, token)
			e.Append(token)
		}
	}
}

// A text is found wherever its last byte comes, however tokens spell it.
func TestBreakers(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, texts := range [][]string{{":"}, {"ab"}, {"abab"}, {"aba", "\n"}, {"bb", "c:a"}, {"abc:a"}, {}} {
		b := NewBreakers(texts, spelling)
		for range 50 {
			states := b.start()
			var context []int32
			for range 30 {
				context = append(context, r.Int32N(int32(len(spelling))))
				got, want := b.follow(states, context[len(context)-1]), breaks(texts, context, len(context)-1)
				if got != want {
					t.Fatalf("%q in %v: ends in the last token: %v, want %v", texts, context, got, want)
				}
			}
		}
		for token, text := range spelling {
			want := slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(string(text), s) })
			if got := b.within(int32(token)); got != want {
				t.Errorf("%q within %q: got %v, want %v", texts, text, got, want)
			}
		}
	}
}

// Long repetitions cost no more than a float32 holds, and a repetition of one token is found in little time.
func TestDRYOfOneToken(t *testing.T) {
	prompt := make([]int32, 100_000)
	p := Defaults()
	p.DRY = DRY{Multiplier: 1, Base: 1.75, AllowedLength: 2}
	e := NewEdits(p, 10, prompt, nil, nil)
	for range 3 {
		e.Append(0)
		if now := fmt.Sprint(e.Now().Token, e.Now().Offset); now != "[0] [-1e+30]" {
			t.Fatalf("got %s, want the one token and the largest penalty", now)
		}
	}
	if e.Append(1); e.Now().Len() > 0 {
		t.Errorf("behind another token: got %v, want nothing", e.Now())
	}
}

// The penalty of a token that the window does not have is nothing, and that of one that goes on with a repetition is the largest.
func TestLZPenalty(t *testing.T) {
	var context []int32
	for range 20 {
		context = append(context, 1, 2, 3, 4)
	}
	p := Defaults()
	p.LZPenalty = 0.5
	e := NewEdits(p, 1<<10, context, nil, nil)
	got := e.apply(make([]float32, 8))
	grown := float32(0.5 * (math.Log2(32.0*5/(33*4)) - 1 - 10)) // with a window that ends with 1 2 3 4, the match of 32 tokens that goes on with 1 ends four tokens before
	want := []float32{0, grown, 0.5 * (float32(math.Log2(3)) - 10), 0.5 * (1 - 10), 0.5 * (0 - 10), 0, 0, 0}
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-5 {
			t.Errorf("token %d: got %g, want %g", i, got[i], want[i])
		}
	}
}
