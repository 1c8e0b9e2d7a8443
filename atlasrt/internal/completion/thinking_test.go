package completion

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// writer is an engine whose model writes a text, but for the tokens that are forced upon it.
type writer struct {
	tokenizer *tokenizer.Tokenizer
	text      string
	requests  []engine.Request
}

func (w *writer) Submit(_ context.Context, requests ...engine.Request) (*engine.Inbox, error) {
	w.requests = requests
	inbox := engine.NewInbox(len(requests), func(int) {})
	for i, r := range requests {
		left := append(w.tokenizer.Encode(w.text, true), endToken)
		edits := sample.NewEdits(sample.Defaults(), 1000, r.Prompt, nil, r.Budget)
		for n := 1; ; n++ {
			token := left[0]
			if now := edits.Now(); now.Len() > 0 {
				token = now.Token[0]
			} else {
				left = left[1:]
			}
			edits.Append(token)
			e := engine.Event{Request: i, Token: token, LogProb: &sample.TokenLogProb{Token: token}}
			switch {
			case token == endToken:
				e.Finish = engine.FinishStop
			case n == r.MaxTokens:
				e.Finish = engine.FinishLength
			}
			if inbox.Put(e); e.Finish != "" {
				break
			}
		}
	}
	return inbox, nil
}

// conversed is an answer as text: thoughts are in brackets, and what comes last is why it ended.
func conversed(t *testing.T, g *Generator, p Prompt, o Options) (said string, usage chat.Usage, tokens int) {
	t.Helper()
	o.Chat, o.Choices, o.LogProbs = true, 1, 0
	s, err := g.Start(t.Context(), []Prompt{p}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	thinking := false
	for events, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			tokens += len(e.Tokens)
			switch e.Kind {
			case chat.EventReasoning, chat.EventText:
				if e.Text != "" && thinking != (e.Kind == chat.EventReasoning) {
					said += map[bool]string{true: "]", false: "["}[thinking]
					thinking = !thinking
				}
				said += e.Text
			case chat.EventFinish:
				said += " " + string(e.Finish)
			case chat.EventEnd:
				usage = e.Usage
			}
		}
	}
	return said, usage, tokens
}

// Thoughts end where their budget does, in whatever way they begin and are marked, and are counted.
func TestBudgets(t *testing.T) {
	at := func(n int) chat.Thinking { return chat.Thinking{Budget: &n} }
	off := chat.Thinking{On: new(false), Budget: new(0)}
	cases := []struct {
		name     string
		control  bool // marks are control tokens
		policy   chat.ThinkingPolicy
		prompt   string
		options  Options
		text     string
		want     string
		thoughts int // tokens
	}{
		{"T060 never closed", false, chat.ThinkingPolicy{}, "a<think>\n", Options{Thinking: at(16)}, strings.Repeat("hm, ", 9), "[hm, hm, hm, hm,]" + strings.Repeat("hm, ", 5) + " stop", 16 + 9},
		{"T060 never closed, control tokens", true, chat.ThinkingPolicy{}, "a<think>\n", Options{Thinking: at(16)}, strings.Repeat("hm, ", 9), "[hm, hm, hm, hm,]" + strings.Repeat("hm, ", 5) + " stop", 16 + 2},
		{"closed in time", false, chat.ThinkingPolicy{}, "a<think>\n", Options{Thinking: at(16)}, "hm\n</think>\n\nyes", "[hm]yes stop", 11},
		{"closed in time, control tokens", true, chat.ThinkingPolicy{}, "a<think>\n", Options{Thinking: at(16)}, "hm\n</think>\n\nyes", "[hm]yes stop", 4},
		{"opened by the model", false, chat.ThinkingPolicy{}, "a", Options{Thinking: at(3)}, "\n<think>hm, no", "[hm,] no stop", 3 + 9},
		{"opened by the model, control tokens", true, chat.ThinkingPolicy{}, "a", Options{Thinking: at(3)}, "\n<think>hm, no", "[hm,] no stop", 3 + 2},
		{"opened again", true, chat.ThinkingPolicy{}, "a", Options{Thinking: at(3)}, "<think>h</think>so<think>m, no", "[h]so[m], no stop", 2 + 1 + 2},
		{"never opened", false, chat.ThinkingPolicy{}, "a", Options{Thinking: at(3)}, "so <think>hm, no", "so <think>hm, no stop", 0},
		{"opened in the question", false, chat.ThinkingPolicy{}, "{<think>}", Options{Thinking: at(3)}, "hm, no", "hm, no stop", 0},
		{"closed by the template", false, chat.ThinkingPolicy{}, "<think>\n\n</think>\n\n", Options{Thinking: at(3)}, "hm, no", "hm, no stop", 0},
		{"off", false, chat.ThinkingPolicy{}, "<think>\n\n</think>\n\n", Options{Thinking: off}, "yes", "yes stop", 0},
		{"off, where the model always thinks", false, chat.ThinkingPolicy{}, "<think>\n", Options{Thinking: off}, "yes", "yes stop", 9},
		{"off, where the model opens thoughts", true, chat.ThinkingPolicy{}, "a", Options{Thinking: off}, "<think>yes", "yes stop", 2},
		{"no budget", false, chat.ThinkingPolicy{}, "<think>\n", Options{MaxTokens: 9}, "hm, hm, hm", "[hm, hm, h length", 9},
		{"floor", true, chat.ThinkingPolicy{Floor: 4}, "<think>", Options{MaxTokens: 12, Thinking: at(8)}, "hm, hm, hm", "[hm,]hm,  length", 4 + 2},
		{"floor over all", true, chat.ThinkingPolicy{Floor: 40}, "<think>", Options{MaxTokens: 5, Thinking: at(8)}, "hm", "h length", 2},
		{"closing text", true, chat.ThinkingPolicy{Close: " Enough.</think>"}, "<think>", Options{Thinking: at(2)}, "hm!", "[hm Enough.]! stop", 2 + 9},
		{"closing text without a mark", true, chat.ThinkingPolicy{Close: " Enough."}, "<think>", Options{Thinking: at(2)}, "hm!", "[hm Enough.]! stop", 2 + 9},
		{"T051 stop in thoughts", true, chat.ThinkingPolicy{}, "<think>", Options{Stop: []string{", "}}, "hm, hm</think>yes", "[hm stop", 4},
		{"T051 stop at once", true, chat.ThinkingPolicy{}, "a", Options{Stop: []string{"y"}}, "yes", " stop", 0},
		{"end within thoughts", true, chat.ThinkingPolicy{}, "<think>", Options{Thinking: at(9)}, "hm<|end|>", "[hm stop", 3},
	}
	for _, c := range cases {
		tok := thoughtfulTokenizer(t, c.control)
		w := &writer{tokenizer: tok, text: c.text}
		g := &Generator{Engine: w, Tokenizer: tok, End: []int32{endToken}, MaxContext: 200, Vocab: 259, Defaults: sample.Greedy(), Thinking: c.policy, Formats: Formats{Reasoning: parse.FindReasoning("think")}}
		said, usage, tokens := conversed(t, g, promptOf(c.prompt), c.options)
		if said != c.want || usage.Reasoning != c.thoughts {
			t.Errorf("%s: %q goes on with %q: got %q with %d tokens of thoughts, want %q with %d", c.name, c.prompt, c.text, said, usage.Reasoning, c.want, c.thoughts)
		}
		if tokens != usage.Output {
			t.Errorf("%s: %d tokens have log-probabilities, and %d were generated", c.name, tokens, usage.Output)
		}
	}
}

// promptOf is a prompt whose data is in braces.
func promptOf(text string) (p Prompt) {
	before, rest, _ := strings.Cut(text, "{")
	data, after, found := strings.Cut(rest, "}")
	p.Text = before + data + after
	if found {
		p.Data = []chat.Range{{Start: len(before), End: len(before) + len(data)}}
	}
	p.Tokens = tokensOf(p.Text)
	return p
}

// Defaults of their own hold where a conversation is answered without thoughts.
func TestPlainDefaults(t *testing.T) {
	plain := sample.Defaults()
	plain.TopK = 7
	g := &Generator{Defaults: sample.Greedy(), Plain: &plain}
	off, on := chat.Thinking{On: new(false)}, chat.Thinking{On: new(true)}
	cases := []struct {
		options Options
		want    int32
	}{
		{Options{}, 0}, {Options{Chat: true}, 0}, {Options{Chat: true, Thinking: on}, 0}, {Options{Chat: true, Thinking: off}, 7}, {Options{Thinking: off}, 0},
		{Options{Chat: true, Thinking: off, Sampling: sample.Given{TopK: new(int32(3))}}, 3},
	}
	for _, c := range cases {
		if got := g.Params(&c.options).TopK; got != c.want {
			t.Errorf("%+v: got top-k %d, want %d", c.options, got, c.want)
		}
	}
}

// The engine counts the tokens of thoughts as the parser does, whatever a model writes: the budget is used up to the last one.
func FuzzThoughtsAreCounted(f *testing.F) {
	for _, seed := range []string{"hm", "<think>hm</think>yes", " \n<think>a</thi</think>b<think>c", "</think>", "<|end|><think>", "<<think>a", "<think></think>", "\xff<think>\xc3</think>"} {
		f.Add(seed, true, true, 3)
		f.Add(seed, false, false, 0)
	}
	toks := map[bool]*tokenizer.Tokenizer{true: thoughtfulTokenizer(f, true), false: thoughtfulTokenizer(f, false)}
	f.Fuzz(func(t *testing.T, text string, control, within bool, budget int) {
		if len(text) > 150 || budget < 0 || budget > 200 {
			return
		}
		tok := toks[control]
		generate := func(thinking chat.Thinking) chat.Usage {
			g := &Generator{Engine: &writer{tokenizer: tok, text: text}, Tokenizer: tok, End: []int32{endToken}, MaxContext: 400, Vocab: 259, Defaults: sample.Greedy(),
				Formats: Formats{Reasoning: parse.FindReasoning("think")}}
			_, usage, _ := conversed(t, g, Prompt{Tokens: []int32{1}, Thinking: within}, Options{Thinking: thinking})
			return usage
		}
		free, bounded := generate(chat.Thinking{}), generate(chat.Thinking{Budget: &budget})
		over := bounded.Reasoning - budget // "\n</think>", which counts
		if free.Reasoning > budget && over != 9 && !(control && over > 0 && over%2 == 0) {
			t.Errorf("%q (control %t, within %t) with a budget of %d: %d tokens of thoughts, and %d without one", text, control, within, budget, bounded.Reasoning, free.Reasoning)
		}
		if free.Reasoning < budget && fmt.Sprint(free) != fmt.Sprint(bounded) {
			t.Errorf("%q (control %t, within %t) with a budget of %d: got %+v, want %+v as without one", text, control, within, budget, bounded, free)
		}
	})
}
