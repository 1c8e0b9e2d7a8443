package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// guide holds a task to its grammar. After each token a job goes over it and finds out what may come next: a few tokens that must come, or the
// mask of those that may. While a job runs, from begin until poll or wait, the guide is the job's; otherwise it is the loop's.
//
// Where a step draws several tokens there is a mask for each: the drafts between them come to the host with the tokens of the step that made them.
type guide struct {
	grammar Grammar  // behind all tokens but those of news
	ends    []int32  // that end the request
	allowed []uint32 // mask of the tokens that the request allows; nil: all

	// What begin and append give a job.
	news      []int32 // tokens that came since the last job
	generated int     // tokens in all
	force     bool    // tokens that must come are wanted, up to most
	most      int
	early     int     // tokens that must still come before the end
	drafts    []int32 // of the tokens behind

	// What a job finds.
	forced []int32    // tokens that must come; where there are any there is no mask
	masks  [][]uint32 // of the next token, and behind drafts: as many as a step may draw
	rows   int        // of masks, those that were found
	err    error
	beyond error // why nothing may be drawn behind the last of the drafts that have a mask; nil: something may

	made chan struct{} // receives when a job has ended

	// The loop's own.
	running   bool // a job was begun and its end was not received
	ready     bool // the first mask is that of the next token
	postponed bool // the draw was put off until the mask is there
	slow      bool // the last draw was put off: no step waits for this one
}

// mostForced is how many tokens a job forces at most; the next one goes on.
const mostForced = 64

// newGuide is the guide of a request whose steps make so many draws, with all memory that its jobs need.
func newGuide(r *Request, allowed []uint32, vocab int32, draws int) *guide {
	if r.Grammar == nil {
		return nil
	}
	g := &guide{grammar: r.Grammar, ends: r.End, allowed: allowed, masks: make([][]uint32, draws), made: make(chan struct{}, 1)}
	for i := range g.masks {
		g.masks[i] = make([]uint32, maskWords(vocab))
	}
	return g
}

// begin gives a job what it needs of a request that has generated so many tokens. No token is forced before the request is scored: before the
// log-probabilities of its prompt, where it wants any, are on their way.
func (g *guide) begin(r *Request, generated int, scored bool) {
	g.generated = generated
	g.early = max(r.MinTokens-generated, 0)
	g.force = r.LogProbs < 0 && scored // a forced token has no logits
	g.most = min(r.MaxTokens-generated, mostForced)
	g.ready, g.running = false, true
}

// append takes in a token that was generated.
func (g *guide) append(token int32) {
	g.news, g.ready = append(g.news, token), false
}

// use lets a step draw with the masks that were found.
func (g *guide) use() {
	g.ready = true
	g.slow, g.postponed = g.slow && g.postponed, false
}

// postpone lets the draw wait for its mask.
func (g *guide) postpone() { g.postponed, g.slow = true, true }

// maskWords is how many words have a bit for each token.
func maskWords(vocab int32) int { return divideUp(int(vocab), 32) }

// job goes over the news.
func (g *guide) job() {
	defer func() {
		if p := recover(); p != nil {
			g.err = g.panics(p)
		}
	}()
	g.rows, g.beyond = 0, nil
	for _, token := range g.news {
		next, ok := g.grammar.Next(token)
		if !ok {
			g.err = g.stuck(token)
			return
		}
		g.grammar = next
	}
	g.news, g.forced = g.news[:0], g.forced[:0]
	if g.force && g.findForced() {
		return
	}
	if g.err = g.findMask(g.grammar, g.room()); g.err == nil {
		g.follow()
	}
}

// follow makes the masks behind drafts, as far as they may come. Where the grammar fails behind one that may, nothing can be drawn there: the
// request fails as it would have, if the draft is right.
func (g *guide) follow() {
	defer func() {
		if p := recover(); p != nil {
			g.beyond = g.panics(p)
			clear(g.masks[g.rows-1])
		}
	}()
	at := g.grammar
	for _, draft := range g.drafts {
		last := g.masks[g.rows-1]
		if draft < 0 || int(draft) >= 32*len(last) || last[draft/32]>>(draft%32)&1 == 0 || slices.Contains(g.ends, draft) {
			return
		}
		mask := g.room()
		next, ok := at.Next(draft)
		if !ok {
			g.beyond = g.stuck(draft)
			return
		}
		if at, g.beyond = next, g.findMask(next, mask); g.beyond != nil {
			return
		}
	}
}

// room is the next mask, which allows nothing.
func (g *guide) room() []uint32 {
	mask := g.masks[g.rows]
	clear(mask)
	g.rows++
	return mask
}

// stuck says that the grammar cannot go on behind a token that it allowed.
func (g *guide) stuck(token int32) error {
	return g.fails(fmt.Sprintf("token %d was drawn, and the grammar cannot go on behind it: that takes more work than is allowed (ask for a simpler one), or is a fault of the server", token), nil)
}

func (g *guide) panics(p any) error {
	return &GrammarError{Tokens: g.generated + max(g.rows-1, 0), Reason: "the grammar panics", Err: fmt.Errorf("%v", p), Fault: true}
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

// findMask makes the newest mask, which allows nothing yet, at a place of the grammar. Where that fails it still allows nothing.
func (g *guide) findMask(at Grammar, mask []uint32) (err error) {
	early := max(g.early-(g.rows-1), 0)
	defer func() {
		if err != nil {
			clear(mask)
		}
	}()
	if err := at.Mask(mask); err != nil {
		return g.fails("the grammar gives up (ask for a simpler one)", err)
	}
	done, mayEnd := at.Done(), false
	for _, end := range g.ends {
		word, bit := end/32, uint32(1)<<(end%32)
		ends := done
		if !ends && mask[word]&bit != 0 {
			next, ok := at.Next(end)
			ends = ok && next.Done()
		}
		mask[word] &^= bit
		if ends && early == 0 {
			mask[word] |= bit
		}
		mayEnd = mayEnd || ends
	}
	some := func(word uint32) bool { return word != 0 }
	fits := slices.ContainsFunc(mask, some)
	for i, word := range g.allowed {
		mask[i] &= word
	}
	switch {
	case slices.ContainsFunc(mask, some):
		return nil
	case fits:
		return g.fails("the grammar goes on with tokens that are not allowed (allow more; the tokens that end an answer count, too)", nil)
	case mayEnd:
		return g.fails(fmt.Sprintf("the grammar allows nothing but the end, and min_tokens asks for %d tokens more (ask for fewer)", early), nil)
	case done:
		return g.fails("the text of the grammar is complete, and no token may end the answer (let the end tokens of the model end it)", nil)
	}
	return g.fails("no token of the model goes on as the grammar asks (ask for another one)", nil)
}

func (g *guide) fails(reason string, err error) error {
	return &GrammarError{Tokens: g.generated + max(g.rows-1, 0), Reason: reason, Err: err}
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

// wait returns when the last job has ended, or false when expired receives first.
func (g *guide) wait(expired <-chan time.Time) (ended bool) {
	select {
	case <-g.made:
		g.running = false
	case <-expired:
	}
	return !g.running
}

// needsMask tells whether a chunk draws a token of a task whose guide has not let it: see use.
func (t *task) needsMask(c *sched.Chunk) bool {
	if t.guide == nil || t.guide.ready || c.Draws == 0 || c.Dropped {
		return false
	}
	finish, _ := t.sequence.Finish()
	return finish == sched.Unfinished
}
