package engine

import "fmt"

// Grammar is a place in the text that a request's tokens spell: it says which tokens may come next. It is a value, and Next gives another one.
// Requests may share one, so that its methods are called from several goroutines.
//
// The tokens that end a request are not part of its text. They may be drawn where it is done, or where such a token, by Next, makes it so.
//
// An engine in another process would be sent what the grammar is compiled from, a grammar.Spec, and of a request that has begun the bytes of its
// state: match.State encodes itself.
type Grammar interface {
	Next(token int32) (next Grammar, ok bool) // the place behind a token; false: it may not come
	Done() bool                               // the text may end here
	Mask(to []uint32) error                   // sets bit t%32 of word t/32 of each token t of the model that may come; an error ends this request alone
	Only() (token int32, ok bool)             // the one token that may come, where there is one and the text may not end
}

// State is a Grammar whose Next gives its own type, as that of match.State does.
type State[S any] interface {
	// See the methods of Grammar.
	Next(token int32) (S, bool)
	Done() bool
	Mask(to []uint32) error
	Only() (token int32, ok bool)
}

// Following makes a Grammar of a State.
func Following[S State[S]](state S) Grammar { return following[S]{state} }

type following[S State[S]] struct{ state S }

func (f following[S]) Next(token int32) (Grammar, bool) {
	next, ok := f.state.Next(token)
	return following[S]{next}, ok
}

func (f following[S]) Done() bool             { return f.state.Done() }
func (f following[S]) Mask(to []uint32) error { return f.state.Mask(to) }
func (f following[S]) Only() (int32, bool)    { return f.state.Only() }

// GrammarError ends a request whose grammar fails, or leaves it no token to draw.
type GrammarError struct {
	Tokens int    // that were generated before
	Reason string // what is wrong and what to do
	Err    error  // of the grammar; nil where the reason says it all
	Fault  bool   // the server is at fault, not the request
}

// Error gives all of it.
func (e *GrammarError) Error() string {
	text := fmt.Sprintf("behind %d tokens of the answer %s", e.Tokens, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap is the grammar's own error.
func (e *GrammarError) Unwrap() error { return e.Err }
