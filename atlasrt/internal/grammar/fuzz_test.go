package grammar

import (
	"context"
	"encoding/json"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/internal/validate"
)

// pieces are tokens of a vocabulary that cut JSON in all sorts of ways: bytes, and what spans brackets, quotes and characters.
func pieces() [][]byte {
	var all [][]byte
	for b := range 256 {
		all = append(all, []byte{byte(b)})
	}
	for _, text := range strings.Fields(`{" ": ":" "," "} }} ]] [[ [] {} "" null true false ,"a":1 "a" ab "ab": "é" 12 0.5 e2 -1 \" \\ \u00 \n": 2024-02- 255. ---- -0000- aa`) {
		all = append(all, []byte(text))
	}
	return append(all, []byte("\xc3"), []byte("\xa9\""), []byte(`": `), []byte("\n "))
}

// What becomes of random schemas. Each is refused as such or held, within a bound of work. Where it is held, masks allow the tokens that may come,
// bytes that are said to be forced are, no text comes to a dead end, and where a text may end it is a value that another validator allows.
func FuzzSchemas(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		made, walked := make([]byte, 10+r.IntN(60)), make([]byte, 30)
		for i := range made {
			made[i] = byte(r.Uint32())
		}
		for i := range walked {
			walked[i] = byte(r.Uint32())
		}
		f.Add(made, walked)
	}
	tokens := pieces()
	v := match.NewVocabulary(tokens, func(int32) bool { return false })
	f.Fuzz(func(t *testing.T, made, walked []byte) {
		c := choices{made[:min(len(made), 200)]}
		text := c.root()
		notation := []Notation{Compact, Spaced, Flexible}[c.of(3)]
		limits := Limits{Schema: schema.Limits{Work: 20_000, Symbols: 20_000}}
		g, err := Compile(context.Background(), Spec{Kind: Schema, Text: text, Notation: notation}, v, limits)
		var refused *Error
		if err != nil && !errors.As(err, &refused) {
			var fault *Fault
			if errors.As(err, &fault) {
				t.Fatalf("%s: %v\n%s", text, fault.Value, fault.Stack)
			}
			t.Fatalf("%s: %v", text, err)
		}
		if err != nil {
			return
		}
		w := journey{t: t, schema: text, tokens: tokens, vocabulary: v}
		w.judge, _ = validate.Compile(text)
		w.along(g.Start(), walked[:min(len(walked), 100)])
	})
}

// journey goes through a text of a schema.
type journey struct {
	t          *testing.T
	schema     string
	tokens     [][]byte
	vocabulary *match.Vocabulary
	judge      *validate.Schema // nil: it cannot read the schema
	text       []byte
}

// along takes the tokens that bytes choose, and then some that lead to an end.
func (w *journey) along(s match.State, by []byte) {
	for step := range 200 {
		if s.Done() {
			w.ended()
		}
		allowed, ok := w.allowed(s)
		if !ok || len(allowed) == 0 || s.Done() && step > len(by) {
			return
		}
		token := allowed[0]
		if step < len(by) {
			token = allowed[int(by[step])%len(allowed)]
		} else if i := slices.IndexFunc(allowed, func(id int32) bool { return strings.Contains(`"]}`, string(w.tokens[id])) }); i >= 0 {
			token = allowed[i]
		}
		s, _ = s.Next(token)
		w.text = append(w.text, w.tokens[token]...)
	}
}

// allowed are the tokens that may come, by all that a state says; false: its limits do not allow to tell.
func (w *journey) allowed(s match.State) (allowed []int32, ok bool) {
	mask := make([]uint32, w.vocabulary.Words())
	if err := s.Mask(mask); err != nil {
		return nil, false
	}
	for id, piece := range w.tokens {
		in := mask[id/32]>>(id%32)&1 == 1
		if _, may := s.Next(int32(id)); may != in {
			w.t.Fatalf("%s: behind %q: the mask of %q is %t, and it may come: %t", w.schema, w.text, piece, in, may)
		}
		if in {
			allowed = append(allowed, int32(id))
		}
	}
	set := 0
	for _, word := range mask {
		set += bits.OnesCount32(word)
	}
	only, one := s.Only()
	switch {
	case set != len(allowed):
		w.t.Fatalf("%s: behind %q: the mask has %d tokens, of which %d are the vocabulary's", w.schema, w.text, set, len(allowed))
	case one != (set == 1 && !s.Done()) || one && only != allowed[0]:
		w.t.Fatalf("%s: behind %q: %d is said to be the only token: %t; the mask has %v", w.schema, w.text, only, one, allowed)
	case set == 0 && !s.Done():
		w.t.Fatalf("%s: behind %q nothing may come, and it may not end", w.schema, w.text)
	}
	return allowed, true
}

// ended judges a text that may end.
func (w *journey) ended() {
	if !json.Valid(w.text) {
		w.t.Fatalf("%s: %q may end and is no JSON", w.schema, w.text)
	}
	if _, err := jsontree.Decode(w.text, jsontree.Limits{}); err != nil || w.judge == nil {
		return // a key comes twice, which no grammar can tell
	}
	if err := w.judge.Check(string(w.text)); err != nil {
		w.t.Fatalf("%s: %q may end: %v", w.schema, w.text, err)
	}
}
