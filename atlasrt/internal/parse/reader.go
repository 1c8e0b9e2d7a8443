package parse

import (
	"bytes"
	"iter"
)

// Bytes around the text of a control token. No UTF-8 has them, so nothing that a model spells becomes one.
const (
	controlBegin = "\xff"
	controlEnd   = "\xfe"
)

// reader is an answer as one text that a program reads from its start to its end. It waits inside of its methods for what has
// not come yet, so that a program reads as if all were there, and cannot tell how its input was cut. It never goes back: time
// is linear in the text.
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

// peek is the next byte; 0 at the end.
func (r *reader) peek() byte {
	r.steps++
	if !r.has(1) {
		return 0
	}
	return r.text[r.at]
}

// take reads a literal where it comes next. It waits no longer than what came agrees with the literal.
func (r *reader) take(literal string) bool {
	if !r.sees(literal) {
		return false
	}
	r.at += len(literal)
	return true
}

// sees tells whether a literal comes next.
func (r *reader) sees(literal string) bool {
	for i := range len(literal) {
		r.steps++
		if !r.has(i+1) || r.text[r.at+i] != literal[i] {
			return false
		}
	}
	return true
}

// space reads white space.
func (r *reader) space() {
	for isSpace(r.peek()) {
		r.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// until reads to the first of some literals, which is read too and whose index it gives; -1 where the answer ends before. What
// comes before is handed over in pieces, as soon as no literal can begin in it. Of literals that begin at one place the longest
// is taken.
func (r *reader) until(literals []string, hand func(string)) int {
	for {
		rest := r.text[r.at:]
		place, which, open := len(rest), -1, len(rest)
		for i, literal := range literals {
			r.steps += len(rest)
			at := bytes.Index(rest, []byte(literal))
			if at >= 0 && (at < place || at == place && which >= 0 && len(literal) > len(literals[which])) {
				place, which = at, i
			}
			open = min(open, len(rest)-overlap(rest, literal))
		}
		switch {
		case which >= 0 && (place < open || r.ended):
			r.hand(place, hand)
			r.at += len(literals[which])
			return which
		case r.ended:
			r.hand(len(rest), hand)
			return -1
		}
		r.hand(min(open, place), hand)
		r.wait()
	}
}

// hand reads n bytes and hands them over.
func (r *reader) hand(n int, to func(string)) {
	if n > 0 {
		text := string(r.text[r.at : r.at+n])
		r.at += n
		to(text)
	}
}

// overlap is how many bytes at the end of a text begin a literal without completing it.
func overlap(text []byte, literal string) int {
	for n := min(len(literal)-1, len(text)); n > 0; n-- {
		if string(text[len(text)-n:]) == literal[:n] {
			return n
		}
	}
	return 0
}

// record keeps what is read from now on, for recorded.
func (r *reader) record() { r.kept = r.at }

// recorded is what was read since record, and ends its keeping.
func (r *reader) recorded() string {
	text := string(r.text[r.kept:r.at])
	r.kept = -1
	return text
}
