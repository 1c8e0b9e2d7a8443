package sample

import (
	"math"
	"slices"
)

// What the LZ penalty looks at: the last tokens are the buffer, and those before them the window. The sizes are the paper's.
const (
	lzBuffer = 32
	lzWindow = 512
)

// lz is how far a sequence is with the LZ penalty ("LZ Penalty: An information-theoretic repetition penalty for autoregressive language
// models", Ginart et al. 2025, arXiv:2504.20131). A token's logit changes by the strength times the bits by which it would lengthen the
// context if that were compressed as Lempel and Ziv do (LZ77), a token at a time:
//
//	log2(vocab)                          a token that the window does not have
//	log2(d)                              one that it has, d tokens before its end at the nearest
//	log2((l-1)·(d+1) / (l·d)) - 1        one with which the window's longest match of the context's end grows to l tokens
//
// The match ends d tokens before the window's end, l is at most 33. As logits only count against each other, log2(vocab) is taken off all of
// them, so that tokens that the window does not have keep theirs. The paper writes l and d of the match without saying whether the token is
// part of it: it is here, as the term would have no value otherwise where a match of one token grows.
type lz struct {
	strength, literal float64
	at                [lzWindow + 1]float32 // offset of a token by its distance
	nearest           map[int32]int         // by token: where the window has it last
	last              [lzWindow]bool        // by place, modulo the window: it is the nearest of its token
	seen              int                   // tokens that were in the window
	gone              []int32               // tokens that left it with the last one
	now               []offset
	grown             []offset
}

func newLZ(strength float32, vocab int32) *lz {
	l := &lz{strength: float64(strength), literal: math.Log2(float64(vocab)), nearest: map[int32]int{}}
	for d := 1; d <= lzWindow; d++ {
		l.at[d] = l.offset(math.Log2(float64(d)))
	}
	return l
}

// offset is that of a token that takes so many bits, of which the vocabulary has an upper bound.
func (l *lz) offset(bits float64) float32 {
	return float32(l.strength * (min(bits, l.literal) - l.literal))
}

// slide moves the window to where it is behind a context, which grew.
func (l *lz) slide(context []int32) (start, end int) {
	end = max(len(context)-lzBuffer, 0)
	start = max(end-lzWindow, 0)
	l.gone = l.gone[:0]
	for ; l.seen < end; l.seen++ {
		if out := l.seen - lzWindow; out >= 0 && l.last[out%lzWindow] {
			delete(l.nearest, context[out])
			l.gone = append(l.gone, context[out])
		}
		token := context[l.seen]
		if i, ok := l.nearest[token]; ok {
			l.last[i%lzWindow] = false
		}
		l.nearest[token], l.last[l.seen%lzWindow] = l.seen, true
	}
	return start, end
}

// offsets are those of the next token, each token once, and the tokens that have none any more unless they are among them.
func (l *lz) offsets(context []int32) (now []offset, gone []int32) {
	start, end := l.slide(context)
	longest := 0
	l.now, l.grown = l.now[:0], l.grown[:0]
	for i := end - 1; i >= start; i-- {
		d := end - i
		if l.last[i%lzWindow] {
			l.now = append(l.now, offset{context[i], l.at[d]})
		}
		if i == start || context[i-1] != context[len(context)-1] {
			continue
		}
		length := commonEnd(context[start:i], context, lzBuffer)
		if length > longest {
			longest, l.grown = length, l.grown[:0]
		}
		known := func(o offset) bool { return o.token == context[i] }
		if length == longest && !slices.ContainsFunc(l.grown, known) {
			grown, d := float64(length+1), float64(d)
			l.grown = append(l.grown, offset{context[i], l.offset(math.Log2((grown-1)*(d+1)/(grown*d)) - 1)})
		}
	}
	for _, o := range l.grown {
		i := slices.IndexFunc(l.now, func(other offset) bool { return other.token == o.token })
		l.now[i].value = o.value
	}
	return l.now, l.gone
}

// commonEnd is how many tokens, at most a limit, two texts have in common at their ends.
func commonEnd(a, b []int32, limit int) (n int) {
	for n < min(limit, len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
