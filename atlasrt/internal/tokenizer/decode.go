package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder says how token texts become text.
type decoder struct {
	byteLevel    bool
	byteFallback bool                  // <0xNN> is a byte
	rewrite      []func(string) string // of each token's text
	firstRewrite func(string) string   // of the first token's text, instead of rewrite; nil: the same
	stripContent byte                  // what stripStart counts
	stripStart   int                   // how many times stripContent is taken from the start of the whole
}

// tokenBytes is what a token adds to the text and whether it is one byte by fallback.
func (d *decoder) tokenBytes(token string) (text string, isByte bool) {
	if d.byteLevel {
		if raw, ok := fromAlphabet(token); ok {
			return raw, false
		}
		return token, false
	}
	for _, rewrite := range d.rewrite {
		token = rewrite(token)
	}
	if d.byteFallback {
		if b, ok := byteToken(token); ok {
			return string([]byte{b}), true
		}
	}
	return token, false
}

// byteToken is the byte that a token like <0x0A> stands for.
func byteToken(token string) (byte, bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}

// pieceTable holds what each token adds to the text, end to end.
type pieceTable struct {
	data   []byte
	ends   []uint32
	isByte []bool
}

// newPieceTable fills the table. Added tokens that are found in normalized text come back as they are found.
func newPieceTable(d *decoder, tokens []string, normalized *addedMatcher) pieceTable {
	found := make(map[int]string)
	for _, token := range normalized.tokens {
		found[int(token.id)] = token.content
	}
	t := pieceTable{ends: make([]uint32, len(tokens)), isByte: make([]bool, len(tokens))}
	for id, token := range tokens {
		if text, ok := found[id]; ok {
			token = text
		}
		text, isByte := d.tokenBytes(token)
		t.data = append(t.data, text...)
		t.ends[id], t.isByte[id] = uint32(len(t.data)), isByte
	}
	return t
}

func (t *pieceTable) piece(id int32) []byte {
	start := uint32(0)
	if id > 0 {
		start = t.ends[id-1]
	}
	return t.data[start:t.ends[id]:t.ends[id]]
}

// Detokenizer turns tokens into text as they come. It serves one sequence and one goroutine.
//
// The texts it returns are whole code points, and together they are what Decode returns for all the tokens.
type Detokenizer struct {
	tokenizer   *Tokenizer
	skipSpecial bool
	started     bool   // a token was pushed
	strip       int    // how many more of stripContent to take from the start
	pending     []byte // the beginning of a code point
	fallback    bool   // pending came from byte tokens
}

// NewDetokenizer starts a sequence. skipSpecial leaves special tokens out of the text; added tokens that are not
// special stay.
func (t *Tokenizer) NewDetokenizer(skipSpecial bool) *Detokenizer {
	return &Detokenizer{tokenizer: t, skipSpecial: skipSpecial, strip: t.decoder.stripStart}
}

// Push adds a token and returns the text that became whole by it, which may be empty. Unknown ids add nothing.
func (d *Detokenizer) Push(id int32) string {
	var out strings.Builder
	d.push(&out, id)
	return out.String()
}

// Flush ends the sequence: U+FFFD for what never became a code point.
func (d *Detokenizer) Flush() string {
	var out strings.Builder
	d.flush(&out)
	return out.String()
}

func (d *Detokenizer) push(out *strings.Builder, id int32) {
	t := d.tokenizer
	if id < 0 || int(id) >= len(t.vocabulary.tokens) || d.skipSpecial && t.vocabulary.special[id] {
		return
	}
	piece, isByte := t.pieces.piece(id), t.pieces.isByte[id]
	if !d.started && t.decoder.firstRewrite != nil {
		piece = []byte(t.decoder.firstRewrite(t.vocabulary.tokens[id]))
	}
	if t.vocabulary.tokens[id] != "" {
		d.started = true
	}
	if isByte != d.fallback && !t.decoder.byteLevel {
		d.flush(out)
		d.fallback = isByte
	}
	for d.strip > 0 && len(piece) > 0 {
		if piece[0] != t.decoder.stripContent {
			d.strip = 0
			break
		}
		piece = piece[1:]
		d.strip--
	}
	d.pending = append(d.pending, piece...)
	rest := d.pending
	for len(rest) > 0 {
		n := wholePrefix(rest)
		out.Write(rest[:n])
		if rest = rest[n:]; len(rest) == 0 || !utf8.FullRune(rest) {
			break
		}
		out.WriteString("\uFFFD")
		rest = rest[d.brokenPrefix(rest):]
	}
	d.pending = append(d.pending[:0], rest...)
}

func (d *Detokenizer) flush(out *strings.Builder) {
	for rest := d.pending; len(rest) > 0; rest = rest[d.brokenPrefix(rest):] {
		out.WriteString("\uFFFD")
	}
	d.pending = d.pending[:0]
}

// wholePrefix is how many bytes of text are whole code points.
func wholePrefix(text []byte) int {
	i := 0
	for i < len(text) {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// brokenPrefix is how many bytes one U+FFFD stands for at the start of text, where no code point is: one byte token, or
// else as many bytes as some code point begins with (Unicode 3.9, maximal subparts).
func (d *Detokenizer) brokenPrefix(text []byte) int {
	n := 1
	for !d.fallback && n < len(text) && !utf8.FullRune(text[:n+1]) {
		n++
	}
	return n
}
