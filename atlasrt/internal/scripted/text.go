package main

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// files is a checkpoint that is nothing but a tokenizer and a template.
type files struct {
	weights.Checkpoint
	config *weights.Config
	assets weights.Assets
}

// Config implements weights.Checkpoint.
func (f files) Config() *weights.Config { return f.config.Fresh() }

// Assets implements weights.Checkpoint.
func (f files) Assets() (weights.Assets, error) { return f.assets, nil }

// answer is what an engine is to write for a prompt.
type answer struct {
	script script
	text   string
}

// book knows the answer to each prompt that was rendered: engines see tokens alone.
type book struct {
	text      *instance.Text
	scripts   map[string]script
	reasoning string // what closes thoughts; "": the model has none
	seed      maphash.Seed

	mutex   sync.Mutex
	answers map[uint64]answer // to the last prompts
	older   map[uint64]answer // to those before
}

// mostAnswers bounds each half of what a book remembers.
const mostAnswers = 1 << 12

// Prompt implements server.Template: it renders a conversation, and notes which answer is written for it.
func (b *book) Prompt(ctx context.Context, r *chat.Request, now time.Time, limit int) (completion.Prompt, error) {
	p, err := b.text.Prompt(ctx, r, now, limit)
	if err != nil {
		return p, err
	}
	c, turn := pick(r.Messages)
	a := answer{script: b.scripts[c.name]}
	text := echo(r.Messages)
	if len(a.script.Answers) > 0 {
		text = a.script.turn(turn, c.word)
	}
	a.text = b.think(text, p.Thinking, r.Thinking.On)
	b.note(b.key(p.Tokens), a)
	return p, nil
}

// note remembers an answer.
func (b *book) note(key uint64, a answer) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.answers) == mostAnswers {
		b.older, b.answers = b.answers, map[uint64]answer{}
	}
	b.answers[key] = a
}

// noted is an answer that is remembered.
func (b *book) noted(key uint64) (a answer, ok bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if a, ok = b.answers[key]; !ok {
		a, ok = b.older[key]
	}
	return a, ok
}

// think fits the thoughts of a script to a prompt: a model that was asked for none writes none, and one whose prompt ends within
// thoughts does not begin them.
func (b *book) think(text string, begun bool, on *bool) string {
	thoughts, rest, thinks := strings.Cut(text, b.reasoning)
	switch {
	case b.reasoning == "":
		return text
	case begun && thinks:
		_, thoughts, _ = strings.Cut(thoughts, "\n")
		return thoughts + b.reasoning + rest
	case begun:
		return b.reasoning + "\n\n" + text
	case thinks && on != nil && !*on:
		return strings.TrimLeft(rest, "\n")
	}
	return text
}

// find is the answer to a prompt: of a text that is no conversation, that of the script which its own line picks.
func (b *book) find(tokens []int32) answer {
	a, ok := b.noted(b.key(tokens))
	if ok {
		return a
	}
	c := chosen(b.text.Tokenizer.Decode(tokens, false))
	a.script = b.scripts[c.name]
	if a.text = " and so on."; len(a.script.Answers) > 0 {
		a.text = a.script.turn(0, c.word)
	}
	return a
}

// key tells prompts apart.
func (b *book) key(tokens []int32) uint64 {
	bytes := make([]byte, 0, 4*len(tokens))
	for _, token := range tokens {
		bytes = binary.LittleEndian.AppendUint32(bytes, uint32(token))
	}
	return maphash.Bytes(b.seed, bytes)
}

// write is the tokens of an answer, with the token that ends a turn where the script says nothing else.
func (b *book) write(tok *tokenizer.Tokenizer, a answer) []int32 {
	tokens := tok.Encode(a.text, true)
	if a.script.Finish != "" {
		return tokens
	}
	return append(tokens, b.turnEnd())
}

// turnEnd is a token that ends a turn.
func (b *book) turnEnd() int32 { return b.text.End[0] }
