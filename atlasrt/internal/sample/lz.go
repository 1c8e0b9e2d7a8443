package sample

import "math"

// What the LZ penalty looks at: the last tokens are the buffer, and those before them the window. The sizes are the paper's.
const (
	lzBuffer = 32
	lzWindow = 512
)

// lzOffsets are the offsets of the LZ penalty ("LZ Penalty: An information-theoretic repetition penalty for autoregressive language
// models", Ginart et al. 2025, arXiv:2504.20131). A token's logit changes by the strength times the bits by which it would lengthen the
// context if that were compressed as Lempel and Ziv do (LZ77), a token at a time:
//
//	log2(vocab)                          a token that the window does not have
//	log2(d)                              one that it has, d tokens before its end at the nearest
//	log2((l-1)·(d+1) / (l·d)) - 1        one with which the window's longest match of the context's end grows to l tokens
//
// The match ends d tokens before the window's end, l is at most 33. As logits only count against each other, log2(vocab) is taken off all
// of them, so that tokens that the window does not have keep theirs. The paper writes l and d of the match without saying whether the token is part
// of it: it is here, as the term would have no value otherwise where a match of one token grows.
func lzOffsets(strength float32, vocab int32, context []int32) []offset {
	end := len(context) - lzBuffer
	if end <= 0 {
		return nil
	}
	start := max(end-lzWindow, 0)
	literal := math.Log2(float64(vocab))
	longest, lengths := 0, make([]int, end-start)
	for i := start; i < end-1; i++ {
		lengths[i-start] = commonEnd(context[start:i+1], context, lzBuffer)
		longest = max(longest, lengths[i-start])
	}
	at, grows := make(map[int32]int, end-start), make(map[int32]bool)
	var offsets []offset
	for i := end - 1; i >= start; i-- {
		token, d := context[i], float64(end-i)
		n, ok := at[token]
		if !ok {
			n = len(offsets)
			at[token] = n
			offsets = append(offsets, offset{token, lzOffset(strength, math.Log2(d), literal)})
		}
		if i > start && longest > 0 && lengths[i-1-start] == longest && !grows[token] {
			grows[token] = true
			l := float64(longest + 1)
			offsets[n].value = lzOffset(strength, math.Log2((l-1)*(d+1)/(l*d))-1, literal)
		}
	}
	return offsets
}

// lzOffset is the offset of a token that takes so many bits, where the vocabulary's number of bits is an upper bound.
func lzOffset(strength float32, bits, literal float64) float32 {
	return float32(float64(strength) * (min(bits, literal) - literal))
}

// commonEnd is how many tokens, at most a limit, two texts have in common at their ends.
func commonEnd(a, b []int32, limit int) (n int) {
	for n < min(limit, len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
