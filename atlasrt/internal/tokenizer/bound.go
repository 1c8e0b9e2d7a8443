package tokenizer

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/text/unicode/norm"
)

// TooLong says that a text has more tokens than it may. Where it ends is not looked for, so AtLeast is what is certain.
type TooLong struct{ Limit, AtLeast int }

// Error gives both counts and says to shorten the text.
func (e *TooLong) Error() string {
	return fmt.Sprintf("the text has at least %d tokens, more than %d (shorten it)", e.AtLeast, e.Limit)
}

// bound says how much text a token can stand for, so that a text that cannot fit needs not be looked at.
type bound struct {
	token  int        // bytes of a word in one token at most; 0: no bound
	shrink int        // bytes of text that become one byte of words at most; 0: no bound
	loses  bool       // some bytes have no token and are left out:
	lost   *[256]bool // these
}

func (t *Tokenizer) newBound() bound {
	b := bound{token: t.longestToken(), shrink: t.shrinkage()}
	if m := &t.model; m.byteLevel && (m.unknown < 0 || m.fuseUnknown) {
		b.lost = new([256]bool)
		for x, id := range m.bytes {
			b.lost[x] = id < 0
			b.loses = b.loses || id < 0
		}
	}
	if b.loses && len(t.normalizers) > 0 {
		b.shrink = 0 // they may make what is lost of what is not
	}
	return b
}

// text is the error for a text that has more tokens than limit whatever they are, or nil.
func (b *bound) text(text string, limit int) error { return b.check(0, text, b.token*b.shrink, limit) }

// word is that error for a word that follows tokens.
func (b *bound) word(tokens int, word string, limit int) error {
	return b.check(tokens, word, b.token, limit)
}

func (b *bound) check(tokens int, text string, perToken, limit int) error {
	if perToken == 0 || len(text)/perToken <= limit-tokens {
		return over(tokens, limit)
	}
	size := len(text)
	if b.loses {
		for i := range len(text) {
			if b.lost[text[i]] {
				size--
			}
		}
	}
	return over(tokens+(size+perToken-1)/perToken, limit)
}

// over is the error for more tokens than limit.
func over(tokens, limit int) error {
	if tokens > limit {
		return &TooLong{Limit: limit, AtLeast: tokens}
	}
	return nil
}

// longestToken is bound.token.
func (t *Tokenizer) longestToken() int {
	b := &t.model
	longest := 0
	for token := range t.vocabulary.ids { // an id may stand for several
		if raw, ok := fromAlphabet(token); ok && b.byteLevel {
			token = raw
		}
		longest = max(longest, len(token))
	}
	for _, m := range []*addedMatcher{t.added, t.normalized} {
		for _, token := range m.tokens { // which are no words of the alphabet
			longest = max(longest, len(token.content))
		}
	}
	everyByte := !slices.Contains(b.bytes[:], -1)
	switch {
	case b.byteLevel || b.byteFallback && everyByte:
		return longest
	case b.unknown < 0 || b.fuseUnknown:
		return 0
	}
	return max(longest, 4) // one code point is unknown
}

// shrinkage is bound.shrink.
func (t *Tokenizer) shrinkage() int {
	factor := 1
	for _, n := range t.normalizers {
		factor *= shrinkOf(n)
	}
	for _, stage := range t.stages {
		switch s := stage.(type) {
		case splitStage:
			if s.behavior == removed {
				return 0
			}
		case prefixStage, metaspaceStage: // which leave nothing out
		default:
			return 0
		}
	}
	for _, m := range []*addedMatcher{t.added, t.normalized} {
		for _, token := range m.tokens {
			if token.leftStrip || token.rightStrip {
				return 0
			}
		}
	}
	return factor
}

// maxUnicodeShrink is how many bytes Unicode's normal forms, and lower case, make one of at most: U+1D6CA is four, and
// with two marks of two bytes becomes U+0390, which has two.
const maxUnicodeShrink = 4

func shrinkOf(n normalizer) int {
	switch n := n.(type) {
	case prependNormalizer:
		return 1
	case unicodeNormalizer:
		if norm.Form(n) == norm.NFD {
			return 3 // U+212A becomes K
		}
		return maxUnicodeShrink
	case lowercaseNormalizer:
		return 3 // U+212A becomes k
	case replaceNormalizer:
		if old, ok := n.pattern.(literal); ok && n.content != "" {
			return (len(old) + len(n.content) - 1) / len(n.content)
		}
	}
	return 0 // Strip, and patterns that match text of any length
}

// watch ends work whose result nobody waits for, or that takes too long. It is asked after every piece of work, and looks at
// the context now and then. A nil watch never ends anything.
type watch struct {
	ctx  context.Context
	left int // bytes of work until the context is looked at
	err  error
}

// watchBytes is how much text is worked on between two looks: a millisecond or less.
const watchBytes = 16 << 10

// ended counts bytes of work that were done and says whether to stop.
func (w *watch) ended(bytes int) bool {
	if w == nil {
		return false
	}
	if w.left -= bytes; w.left <= 0 {
		w.left = watchBytes
		if w.err == nil && w.ctx.Err() != nil {
			w.err = context.Cause(w.ctx)
		}
	}
	return w.err != nil
}

// fail ends the work with an error.
func (w *watch) fail(err error) {
	if w != nil && w.err == nil {
		w.err = err
	}
}

// watchedStage is a stage that w may stop.
func watchedStage(s stage, w *watch) stage {
	switch s := s.(type) {
	case splitStage:
		s.pattern = watched(s.pattern, w)
		return s
	case alphabetStage:
		s.inner = watchedStage(s.inner, w)
		return s
	}
	return s
}

// watched is a matcher that w may stop; only patterns without a scanner take long enough. What a stopped one found is
// not complete.
func watched(m matcher, w *watch) matcher {
	if e, ok := m.(expression); ok {
		e.watch = w
		return e
	}
	return m
}
