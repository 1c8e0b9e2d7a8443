package completion

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// Stream is the answers to one request, in pieces, as they come.
type Stream struct {
	generator *Generator
	options   Options
	prompt    int
	generated atomic.Int64
	cached    atomic.Int64
	chunks    chan Chunk
	running   sync.WaitGroup
	cancel    context.CancelFunc

	mu            sync.Mutex
	promptLogProb []sample.TokenLogProb
}

// Chunks gives the pieces; it is closed after the last one.
func (s *Stream) Chunks() <-chan Chunk { return s.chunks }

// Close ends the answers that still run.
func (s *Stream) Close() { s.cancel() }

// Usage counts the tokens so far; a stream that has ended counts no more.
func (s *Stream) Usage() Usage {
	return Usage{Prompt: s.prompt, Completion: int(s.generated.Load()), Cached: int(s.cached.Load())}
}

// PromptTokens are the prompt's log-probabilities, where asked for, once the first chunk has come: entry i is of prompt
// token i+1.
func (s *Stream) PromptTokens() []Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	tokens := make([]Token, len(s.promptLogProb))
	for i, p := range s.promptLogProb {
		tokens[i] = s.token(p)
	}
	return tokens
}

// answer is one choice on its way.
type answer struct {
	choice      int
	stop        context.CancelFunc
	ends        []int32
	detokenizer *tokenizer.Detokenizer
	matcher     matcher
}

// errCut says that the engine ended a request that nobody cancelled.
var errCut = errors.New("the request was cut short")

// follow turns one choice's events into chunks until it ends.
func (s *Stream) follow(ctx context.Context, a *answer, events <-chan engine.Event) {
	defer s.running.Done()
	defer a.stop()
	for e := range events {
		chunk, over := s.advance(a, e)
		if chunk.Text != "" || chunk.Tokens != nil || over {
			select {
			case s.chunks <- chunk:
			case <-ctx.Done():
				return
			}
		}
		if over {
			return
		}
	}
}

// advance takes one event and says whether the choice is over.
func (s *Stream) advance(a *answer, e engine.Event) (c Chunk, over bool) {
	c.Choice = a.choice
	if e.Cached > 0 && a.choice == 0 {
		s.cached.Store(int64(e.Cached))
	}
	if e.Prompt != nil {
		s.mu.Lock()
		s.promptLogProb = e.Prompt
		s.mu.Unlock()
	}
	switch e.Finish {
	case engine.FinishError:
		c.Err = e.Err
		return c, true
	case engine.FinishCancelled:
		c.Err = errCut
		return c, true
	}
	s.generated.Add(1)
	if e.LogProb != nil {
		c.Tokens = []Token{s.token(*e.LogProb)}
	}
	if e.Finish != engine.FinishStop || !slices.Contains(a.ends, e.Token) {
		c.Text = a.matcher.push(a.detokenizer.Push(e.Token))
	}
	if a.matcher.found == "" && e.Finish != "" {
		c.Text += a.matcher.push(a.detokenizer.Flush())
		if a.matcher.found == "" {
			c.Text += a.matcher.flush()
		}
		c.Finish = Finish(e.Finish)
	}
	if a.matcher.found != "" {
		c.Finish, c.Match = FinishStop, a.matcher.found
	}
	return c, c.Finish != ""
}

func (s *Stream) token(p sample.TokenLogProb) Token {
	g := s.generator
	t := Token{Bytes: g.Tokenizer.TokenBytes(p.Token), Hidden: !s.options.KeepSpecial && g.Tokenizer.IsSpecial(p.Token), LogProb: p.LogProb}
	for _, top := range p.Top {
		t.Top = append(t.Top, TopToken{top.Token, g.Tokenizer.TokenBytes(top.Token), top.LogProb})
	}
	return t
}
