package soak

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/tidwall/gjson"
)

// references are questions to a real model with the greedy answers that it gave while it had nothing else to do.
type references []reference

type reference struct{ text, prompt, answer string }

// longest is the tokens of a reference.
const longest = 24

// refer asks a model alone. Every dialect must give the same text.
func refer(ctx context.Context, s *server) (all references, err error) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, ask := range []string{"Name three colours of the rainbow.", "What is the capital of France?", "Write a line about rain.", "Count to ten.", "Why is the sky blue?", "Say hello in German."} {
		one := reference{text: filler(r) + ask}
		q := &question{model: s.model, texts: []string{one.text}, choices: 1, tokens: longest}
		rendered, err := s.read(ctx, "/v1/chat/completions/render", chatBody(q))
		if err != nil {
			return nil, err
		}
		one.prompt = rendered.Get("prompt").String()
		q.prompts = []string{one.prompt}
		for name, path := range map[string]string{"chat": "choices.0.message.content", "completions": "choices.0.text", "messages": "content.0.text", "responses": "output.0.content.0.text"} {
			d := dialects[name]
			body, err := s.read(ctx, d.path, d.body(q))
			if err != nil {
				return nil, err
			}
			got := body.Get(path).String()
			if one.answer == "" {
				one.answer = got
			}
			if got == "" || got != one.answer {
				return nil, fmt.Errorf("question %d alone: %s says %q, another dialect %q", i, name, got, one.answer)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// read asks for a whole answer.
func (s *server) read(ctx context.Context, path string, body map[string]any) (gjson.Result, error) {
	got, err := s.post(ctx, path, body)
	if err != nil {
		return gjson.Result{}, err
	}
	defer got.Body.Close()
	answer, err := io.ReadAll(got.Body)
	return gjson.ParseBytes(answer), err
}

// ask picks a reference, and asks for a part of it or all.
func (all references) ask(r *rand.Rand, dialect, _ string) *question {
	q := &question{choices: 1, tokens: 1 + r.IntN(longest), stream: r.IntN(4) > 0, keep: r.IntN(2) == 0}
	if dialect == "chat" || dialect == "completions" {
		q.choices += r.IntN(5) / 4
	}
	for range 1 + r.IntN(5)/4 {
		one := all[r.IntN(len(all))]
		q.texts, q.prompts = append(q.texts, one.text), append(q.prompts, one.prompt)
		for range q.choices {
			q.want = append(q.want, wanted{said: said{text: one.answer}, raw: []string{""}})
		}
		if dialect != "completions" {
			break
		}
	}
	return q
}
