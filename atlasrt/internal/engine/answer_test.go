package engine

import "github.com/atlas-inference/atlas/atlasrt/internal/sample"

// answer is all that a request gave.
type answer struct {
	tokens   []int32
	logProbs []sample.TokenLogProb
	prompt   []sample.TokenLogProb
	cached   int
	drafts   Drafts
	finish   Finish
	err      error
}

func read(events *Inbox) answer { return readAll(events, 1)[0] }

// readAll is read for so many requests of one Submit.
func readAll(events *Inbox, requests int) []answer {
	all := make([]answer, requests)
	for e := range events.All() {
		a := &all[e.Request]
		if e.Token >= 0 {
			a.tokens = append(a.tokens, e.Token)
		}
		if e.LogProb != nil {
			a.logProbs = append(a.logProbs, *e.LogProb)
		}
		if e.Prompt != nil {
			a.prompt = e.Prompt
		}
		a.cached += e.Cached
		a.finish, a.err = e.Finish, e.Err
		if e.Token >= 0 {
			a.drafts = e.Drafts
		}
	}
	return all
}
