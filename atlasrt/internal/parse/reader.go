package parse

import "iter"

// Bytes around the text of a control token. No UTF-8 has them, so nothing that a model spells becomes one.
const (
	controlBegin = "\xff"
	controlEnd   = "\xfe"
)

// reader is an answer as one text that a program reads from its start to its end. It waits inside of its methods for what has
// not come yet, so that a program reads as if all were there, and cannot tell how its input was cut. It does not go back, and looks
// ahead no farther than a mark and the white space before it: time is linear in the text.
type reader struct {
	text  []byte // that came and is not forgotten
	at    int    // what is read ends here
	kept  int    // record began here; -1: nothing that is read is kept
	ended bool   // nothing more comes
	wait  func() // until something came, or the end
	steps int    // bytes looked at, for tests
}

// feed runs a program on a reader. One goroutine may use it: push hands over text, end says that no more comes, and stop ends
// the program wherever it waits.
type feed struct {
	reader *reader
	resume func() (struct{}, bool)
	stop   func()
}

func newFeed(program func(*reader)) *feed {
	r := &reader{kept: -1}
	f := &feed{reader: r}
	f.resume, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.wait = func() {
			if !yield(struct{}{}) {
				r.ended = true
			}
		}
		r.wait() // for the first push
		program(r)
	})
	f.resume()
	return f
}

func (f *feed) push(text string) {
	r := f.reader
	done := r.at
	if r.kept >= 0 {
		done = r.kept
	}
	if done > len(r.text)/2 { // so that a byte is moved once in the mean
		r.text = append(r.text[:0], r.text[done:]...)
		r.at -= done
		r.kept = min(r.kept, 0)
	}
	r.text = append(r.text, text...)
	f.resume()
}

func (f *feed) end() {
	f.reader.ended = true
	f.resume()
}

// has waits until n bytes are unread; false: the answer ends before.
func (r *reader) has(n int) bool {
	for len(r.text)-r.at < n && !r.ended {
		r.wait()
	}
	return len(r.text)-r.at >= n
}

// ahead is the byte n bytes on; 0 behind the end.
func (r *reader) ahead(n int) byte {
	r.steps++
	if !r.has(n + 1) {
		return 0
	}
	return r.text[r.at+n]
}

// peek is the next byte; 0 at the end.
func (r *reader) peek() byte { return r.ahead(0) }

// sees tells whether a literal comes n bytes on. It waits no longer than what came agrees with the literal.
func (r *reader) sees(n int, literal string) bool {
	for i := range len(literal) {
		if r.ahead(n+i) != literal[i] {
			return false
		}
	}
	return true
}

// take reads a literal where it comes next.
func (r *reader) take(literal string) bool {
	if !r.sees(0, literal) {
		return false
	}
	r.at += len(literal)
	return true
}

// space reads white space.
func (r *reader) space() {
	for isSpace(r.peek()) {
		r.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// until reads to the first of some literals and past it. It gives its index; -1 where the answer ends before. What comes before is
// handed over in pieces, as soon as no literal can begin in it. Of literals that begin at one place the longest is taken.
func (r *reader) until(literals []string, hand func(string)) int {
	which := r.find(literals, hand)
	if which >= 0 {
		r.at += len(literals[which])
	}
	return which
}

// find is until, but leaves the literal unread.
func (r *reader) find(literals []string, hand func(string)) int {
	n := 0 // unread bytes that begin no literal
	for {
		which, open := -1, n == len(r.text)-r.at
		if !open {
			which, open = r.begins(r.text[r.at+n:], literals)
		}
		switch {
		case open && !r.ended:
			r.hand(n, hand)
			n = 0
			r.wait()
		case which >= 0:
			r.hand(n, hand)
			return which
		case n == len(r.text)-r.at:
			r.hand(n, hand)
			return -1
		default:
			n++
		}
	}
}

// begins gives the longest literal that a text begins with, or -1. open tells that a longer one may still come.
func (r *reader) begins(text []byte, literals []string) (which int, open bool) {
	which = -1
	r.steps++
	for i, literal := range literals {
		n := 0
		for n < len(literal) && n < len(text) && literal[n] == text[n] {
			n++
		}
		r.steps += n
		switch {
		case n == len(literal):
			if which < 0 || n > len(literals[which]) {
				which = i
			}
		case n == len(text):
			open = true
		}
	}
	return which, open
}

// hand reads n bytes and hands them over.
func (r *reader) hand(n int, to func(string)) {
	if n > 0 {
		text := string(r.text[r.at : r.at+n])
		r.at += n
		to(text)
	}
}

// record keeps what is read from now on, for recorded.
func (r *reader) record() { r.kept = r.at }

// recorded is what was read since record, if it was called, and ends its keeping.
func (r *reader) recorded() string {
	if r.kept < 0 {
		return ""
	}
	text := string(r.text[r.kept:r.at])
	r.kept = -1
	return text
}
