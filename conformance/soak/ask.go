package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"

	"github.com/tidwall/gjson"
)

// asker makes questions of chance whose answers are known.
type asker interface {
	ask(r *rand.Rand, dialect, word string) *question
}

// script is what a server that follows scripts writes.
type script struct {
	Answers []string `json:"answers"`
	Finish  string   `json:"finish"`
}

// scripts are those of a server, by name.
type scripts map[string]script

func readScripts(path string) (s scripts, err error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(file, &s)
}

// most is the tokens that no answer of the scripts needs.
const most = 500

// ask picks a script, and the word that its answer repeats.
func (s scripts) ask(r *rand.Rand, dialect, word string) *question {
	names := []string{"quick", "late", "text", "loop", "think", "call"}
	if dialect == "completions" { // has texts alone
		names = names[:4]
	}
	name := names[r.IntN(len(names))]
	q := &question{choices: 1 + r.IntN(5)/4, tokens: most, stream: r.IntN(4) > 0, think: true, tools: true, keep: r.IntN(2) == 0}
	if s[name].Finish != "" || q.stream && r.IntN(3) == 0 {
		q.tokens = 1 + r.IntN(120)
	}
	if dialect == "messages" || dialect == "responses" {
		q.choices = 1
	}
	for i := range 1 + r.IntN(5)/4 {
		word := fmt.Sprint(word, string(rune('a'+i)))
		q.texts = append(q.texts, fmt.Sprintf("%sscript: %s %s", filler(r), name, word))
		for range q.choices {
			q.want = append(q.want, s[name].says(word))
		}
		if dialect != "completions" {
			break
		}
	}
	return q
}

// filler makes prompts of all sizes.
func filler(r *rand.Rand) string {
	return strings.Repeat(fmt.Sprint("topic ", r.IntN(1000), " "), r.IntN(80)) + "\n"
}

// says takes an answer apart, which is written as the server's script has it: thoughts and calls are lines of their own.
func (s script) says(word string) (w wanted) {
	answer := strings.ReplaceAll(s.Answers[0], "{word}", word)
	if s.Finish == "loop" {
		answer = strings.Repeat(answer, most)
	}
	if before, rest, ok := strings.Cut(answer, "\n</think>\n\n"); ok {
		w.thoughts, answer = strings.TrimPrefix(before, "<think>\n"), rest
	}
	const mark = "\n<tool_call>\n"
	pieces := strings.Split(answer, mark)
	w.text = pieces[0]
	for i, c := range pieces[1:] {
		w.raw = append(w.raw, mark[min(i, 1):]+c) // a line break between calls is of no text
		_, arguments, _ := strings.Cut(c, `"arguments": `)
		w.calls = append(w.calls, strings.TrimSuffix(arguments, "}\n</tool_call>"))
	}
	w.raw = append(w.raw, "")
	return w
}

// server is whom clients ask.
type server struct {
	url, key, model string
	client          *http.Client
}

// post sends a question in a dialect.
func (s *server) post(ctx context.Context, path string, body map[string]any) (*http.Response, error) {
	sent, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(string(sent)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Content-Type", "application/json")
	got, err := s.client.Do(request)
	if err == nil && got.StatusCode != http.StatusOK {
		defer got.Body.Close()
		why, _ := io.ReadAll(got.Body)
		return nil, fmt.Errorf("%s: %s", got.Status, why)
	}
	return got, err
}

// listen hears an answer to its end, or to the moment at which the client leaves.
func (d *dialect) listen(h *hearing, q *question, from io.Reader) error {
	if !q.stream {
		body, err := io.ReadAll(from)
		if err == nil && !gjson.ValidBytes(body) {
			err = fmt.Errorf("no JSON: %s", body)
		}
		return first(err, d.whole(h, gjson.ParseBytes(body)))
	}
	g, s := d.events(h), newStream(from)
	for {
		e, err := s.next()
		switch {
		case err == io.EOF && !g.more():
			return nil
		case err != nil:
			return fmt.Errorf("within a stream: %w", err)
		case e.data == "[DONE]":
			err = g.event(e.kind, gjson.Result{Raw: e.data})
		case !gjson.Valid(e.data):
			err = fmt.Errorf("no JSON: %s", e.data)
		default:
			err = g.event(e.kind, gjson.Parse(e.data))
		}
		if err != nil {
			return fmt.Errorf("event %q: %w", e, err)
		}
		h.events++
	}
}
