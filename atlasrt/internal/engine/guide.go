package engine

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// guide holds a task to its grammar. After each token a job goes over it and finds out what may come next: a few tokens that must come, or the
// mask of those that may. While it runs, the guide is the job's; before and behind, the loop's.
//
// A task with a guide draws one token a step. Where steps draw several, a mask for each draft is wanted: match.State.Tree makes those of all
// drafts at once, but the drafts are known to the device alone.
type guide struct {
	grammar Grammar  // behind all tokens but those of news
	ends    []int32  // that end the request
	allowed []uint32 // mask of the tokens that the request allows; nil: all

	// What a job is given.
	news      []int32 // tokens that came since the last job
	generated int     // tokens in all
	force     bool    // tokens that must come are wanted, up to most
	most      int
	early     int // tokens that must still come before the end

	// What it finds.
	forced []int32 // tokens that must come; where there are any there is no mask
	mask   []uint32
	err    error

	made chan struct{} // receives when a job has ended

	// The loop's own.
	running bool // a job was begun and its end was not received
	ready   bool // the mask is that of the next token
	held    bool // the draw was given up until the mask is there
	late    bool // it was given up the last time: nobody waits for it
}

// mostForced is how many tokens a job forces at most; the next one goes on.
const mostForced = 64

func newGuide(r *Request, allowed []uint32) *guide {
	if r.Grammar == nil {
		return nil
	}
	return &guide{grammar: r.Grammar, ends: r.End, allowed: allowed, made: make(chan struct{}, 1)}
}

// job goes over the news. The mask has so many words.
func (g *guide) job(words int) {
	defer func() {
		if p := recover(); p != nil {
			g.err = &GrammarError{Tokens: g.generated, Reason: "the grammar panics", Err: fmt.Errorf("%v", p), Fault: true}
		}
	}()
	for _, token := range g.news {
		next, ok := g.grammar.Next(token)
		if !ok {
			g.err = g.fails(fmt.Sprintf("token %d was drawn, and the grammar cannot go on behind it: that takes more work than is allowed (ask for a simpler one), or is a fault of the server", token), nil)
			return
		}
		g.grammar = next
	}
	g.news, g.forced = g.news[:0], g.forced[:0]
	if g.force && g.findForced() {
		return
	}
	if g.mask == nil {
		g.mask = make([]uint32, words)
	}
	g.err = g.findMask()
}

// findForced collects tokens that must come. A token that ends the request is the last.
func (g *guide) findForced() bool {
	at := g.grammar
	for len(g.forced) < g.most {
		token, ok := at.Only()
		if !ok {
			break
		}
		if at, ok = at.Next(token); !ok {
			break
		}
		end := slices.Contains(g.ends, token)
		if end && (!at.Done() || len(g.forced) < g.early) {
			break
		}
		if g.forced = append(g.forced, token); end {
			break
		}
	}
	return len(g.forced) > 0
}

// findMask makes the mask of the next token.
func (g *guide) findMask() error {
	clear(g.mask)
	if err := g.grammar.Mask(g.mask); err != nil {
		return g.fails("the grammar gives up (ask for a simpler one)", err)
	}
	done, mayEnd := g.grammar.Done(), false
	for _, end := range g.ends {
		word, bit := end/32, uint32(1)<<(end%32)
		ends := done
		if !ends && g.mask[word]&bit != 0 {
			next, ok := g.grammar.Next(end)
			ends = ok && next.Done()
		}
		g.mask[word] &^= bit
		if ends && g.early == 0 {
			g.mask[word] |= bit
		}
		mayEnd = mayEnd || ends
	}
	some := func(word uint32) bool { return word != 0 }
	fits := slices.ContainsFunc(g.mask, some)
	for i, word := range g.allowed {
		g.mask[i] &= word
	}
	switch {
	case slices.ContainsFunc(g.mask, some):
		return nil
	case fits:
		return g.fails("the grammar goes on with tokens that are not allowed (allow more; the tokens that end an answer count, too)", nil)
	case mayEnd:
		return g.fails(fmt.Sprintf("the grammar allows nothing but the end, and min_tokens asks for %d tokens more (ask for fewer)", g.early), nil)
	case done:
		return g.fails("the text of the grammar is complete, and no token may end the answer (let the end tokens of the model end it)", nil)
	}
	return g.fails("no token of the model goes on as the grammar asks (ask for another one)", nil)
}

func (g *guide) fails(reason string, err error) error {
	return &GrammarError{Tokens: g.generated, Reason: reason, Err: err}
}

// poll tells whether the last job has ended.
func (g *guide) poll() bool {
	if g.running {
		select {
		case <-g.made:
			g.running = false
		default:
		}
	}
	return !g.running
}

// guides tells whether a chunk draws a token that the guide of its task must have a say in, and has not.
func (t *task) guides(c *sched.Chunk) bool {
	if t.guide == nil || t.guide.ready || c.Draws == 0 || c.Dropped {
		return false
	}
	finish, _ := t.sequence.Finish()
	return finish == sched.Unfinished
}
