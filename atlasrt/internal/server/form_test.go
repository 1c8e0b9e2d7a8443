package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
)

// What clients are told where an answer cannot be held: what is theirs to change, and nothing of a panic (T081).
func TestHeldErrors(t *testing.T) {
	unsupported := &schema.Unsupported{Path: "#/a", Keyword: "k", Reason: "no"}
	cases := []struct {
		err     error
		kind    api.Kind
		field   string
		message string
	}{
		{&grammar.Error{Kind: grammar.Schema, Name: "guided_json", Err: unsupported}, api.KindUnsupported, "guided_json", `guided_json (schema): this JSON schema cannot be held to: at #/a: "k": no.`},
		{fmt.Errorf("wrapped: %w", &grammar.Error{Kind: grammar.Regex, Name: "regex", Err: errors.New(strings.Repeat("é\xff", 1000))}), api.KindInvalid, "regex", "regex (regex): é"},
		{&grammar.Fault{Kind: grammar.Schema, Value: "index out of range", Stack: []byte("goroutine 1")}, api.KindInternal, "", "The server failed at what the answer must be: schema: an internal error while it was compiled."},
		{&engine.GrammarError{Tokens: 3, Reason: "no token fits"}, api.KindInvalid, "", "The answer cannot go on as the request asks: behind 3 tokens of the answer no token fits."},
		{&engine.GrammarError{Tokens: 3, Reason: "the grammar panics", Err: errors.New("index out of range"), Fault: true}, api.KindInternal, "", "The server failed at what the answer must be; other requests go on."},
	}
	for _, c := range cases {
		e := problem(c.err, openai.Chat{})
		if e.Kind != c.kind || e.Field != c.field || !strings.HasPrefix(e.Message, c.message) || len(e.Message) > 700 || leak.MatchString(e.Message) {
			t.Errorf("%v:\n got %+v\nwant %d of %q, %s", c.err, e, c.kind, c.field, c.message)
		}
	}
}

// What an answer may be reaches the engine, for each choice of each prompt, and what ends it there reaches the client.
func TestFormsReachTheEngine(t *testing.T) {
	r := newRig(t, func(q engineRequest) reply {
		for _, text := range []string{`{"a":1}`, "yes", "no"} {
			if q.Grammar != nil && fits(q.Grammar, text) {
				return reply{text: text}
			}
		}
		return reply{err: &engine.GrammarError{Reason: "no token fits"}}
	}, nil)
	r.engine.seen = make(chan engine.Request, 10)
	cases := []struct {
		fields string
		want   string
		asked  int
	}{
		{`"n":3,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"properties":{"a":{"type":"integer"}},"type":"object","required":["a"]}}}`, `{"a":1}`, 3},
		{`"guided_choice":["no","maybe"]`, "no", 1},
		{`"structured_outputs":{"regex":"[a-z]{3}"}`, "yes", 1},
		{`"grammar":"root ::= \"x\""`, "absent", 1}, // the engine fails
	}
	for _, c := range cases {
		d := object(t, r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],`+c.fields+`}`).body)
		if got := at(d, "choices", 0, "message", "content"); got != c.want || len(r.engine.seen) != c.asked {
			t.Errorf("%s: got %v, %d requests", c.fields, d, len(r.engine.seen))
		}
		for range len(r.engine.seen) {
			<-r.engine.seen
		}
	}
	failed := r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"grammar":"root ::= \"x\""}`)
	if problem := refusedBy(t, inChat, failed, 400, ""); problem != "" || !strings.Contains(failed.body, "no token fits") {
		t.Errorf("%d %s: %s", failed.status, failed.body, problem)
	}
}
