package sample

import "slices"

// Mark finds a text among tokens, however they spell it. It is a table of how much of the text has come: state 0 is nothing, and the
// state that equals len(Next) is all of it.
type Mark struct {
	Next []map[int32]int32 // by state: the states that tokens lead to, where it is not Else
	Else int32             // the state that all other tokens lead to: 0, or Lost
}

// Lost is the state in which a Mark can no longer come.
const Lost = -1

// TokenMark is the Mark of one token, which cannot be spelled.
func TokenMark(token int32) *Mark { return &Mark{Next: []map[int32]int32{{token: 1}}} }

// TextMark is the Mark of a text that is spelled by tokens below vocab; bytes is what each adds to the text, which may be nothing. The
// text may come anywhere or, where leads is set, only at the beginning, behind blanks.
func TextMark(text string, vocab int32, bytes func(token int32) []byte, leads bool) *Mark {
	m := &Mark{Next: make([]map[int32]int32, len(text))}
	step := follow(text)
	if leads {
		m.Else = Lost
		step = func(state int32, c byte) int32 {
			switch {
			case state == Lost || state == int32(len(text)):
				return state
			case c == text[state]:
				return state + 1
			case state == 0 && slices.Contains([]byte(" \t\r\n"), c):
				return 0
			}
			return Lost
		}
	}
	for state := range m.Next {
		m.Next[state] = map[int32]int32{}
		for token := range vocab {
			next := int32(state)
			for _, c := range bytes(token) {
				next = step(next, c)
			}
			if next != m.Else {
				m.Next[state][token] = next
			}
		}
	}
	return m
}

// follow is how a text is looked for, a byte at a time: how much of it has come is the longest beginning of it that the bytes so far
// end with. Once it has come it has (Knuth, Morris and Pratt).
func follow(text string) func(state int32, c byte) int32 {
	shorter := make([]int32, len(text)+1) // by length: the next shorter beginning that a beginning ends with
	var step func(state int32, c byte) int32
	step = func(state int32, c byte) int32 {
		switch {
		case state == int32(len(text)) || text[state] == c:
			return min(state+1, int32(len(text)))
		case state == 0:
			return 0
		}
		return step(shorter[state], c)
	}
	for n := 1; n < len(text); n++ {
		shorter[n+1] = step(shorter[n], text[n])
	}
	return step
}

// After is the state that a token leads to.
func (m *Mark) After(state, token int32) int32 {
	if state < 0 || int(state) >= len(m.Next) {
		return state
	}
	if next, ok := m.Next[state][token]; ok {
		return next
	}
	return m.Else
}

// Found tells whether a state is that of the whole text.
func (m *Mark) Found(state int32) bool { return int(state) == len(m.Next) }
