package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

func TestChatAnswersAsAWhole(t *testing.T) {
	r := newRig(t, answering, nil)
	got := r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}]}`)
	if got.status != 200 || got.header.Get("Content-Type") != "application/json" || got.header.Get("x-request-id") == "" {
		t.Fatalf("status %d, headers %v, body %s", got.status, got.header, got.body)
	}
	d := object(t, got.body)
	cases := []struct {
		path []any
		want string
	}{
		{[]any{"object"}, "chat.completion"},
		{[]any{"model"}, "tiny"},
		{[]any{"choices", 0, "index"}, "0"},
		{[]any{"choices", 0, "finish_reason"}, "stop"},
		{[]any{"choices", 0, "logprobs"}, "<nil>"},
		{[]any{"choices", 0, "message", "role"}, "assistant"},
		{[]any{"choices", 0, "message", "content"}, "Hello 👩🏽‍💻 wörld"},
		{[]any{"choices", 0, "message", "refusal"}, "<nil>"},
		{[]any{"choices", 1}, "absent"},
		{[]any{"usage", "prompt_tokens"}, "4"},
		{[]any{"usage", "completion_tokens"}, "29"},
		{[]any{"usage", "total_tokens"}, "33"},
		{[]any{"usage", "prompt_tokens_details", "cached_tokens"}, "3"},
	}
	for _, c := range cases {
		if v := at(d, c.path...); v != c.want {
			t.Errorf("%v: got %q, want %q", c.path, v, c.want)
		}
	}
}

// The shape of a stream, with and without usage (T047).
func TestT047ChatStreams(t *testing.T) {
	r := newRig(t, answering, nil)
	for _, usage := range []bool{false, true} {
		options := ""
		if usage {
			options = `,"stream_options":{"include_usage":true}`
		}
		got := r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"stream":true`+options+`}`)
		if kind := got.header.Get("Content-Type"); kind != "text/event-stream" || got.header.Get("X-Accel-Buffering") != "no" || got.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("headers %v", got.header)
		}
		documents, done := events(t, got.body)
		if !done {
			t.Fatalf("no [DONE] in %s", got.body)
		}
		if usage {
			last := documents[len(documents)-1]
			if at(last, "choices") != "[]" || at(last, "usage", "total_tokens") != "33" {
				t.Errorf("last event %v, want usage and no choices", last)
			}
			documents = documents[:len(documents)-1]
		}
		first, last := documents[0], documents[len(documents)-1]
		if at(first, "choices", 0, "delta") != "map[content: role:assistant]" {
			t.Errorf("first event %v, want the role", first)
		}
		if at(last, "choices", 0, "delta") != "map[]" || at(last, "choices", 0, "finish_reason") != "stop" {
			t.Errorf("last event %v, want the reason and no text", last)
		}
		for i, d := range documents {
			want := "absent"
			if usage {
				want = "<nil>"
			}
			if at(d, "usage") != want || at(d, "id") != at(first, "id") || at(d, "created") != at(first, "created") || at(d, "object") != "chat.completion.chunk" {
				t.Errorf("event %d is %v; want usage %s and the id and time of the first", i, d, want)
			}
			if reason := at(d, "choices", 0, "finish_reason"); (reason != "<nil>") != (i == len(documents)-1) {
				t.Errorf("event %d of %d has finish_reason %s", i, len(documents), reason)
			}
		}
	}
}

// Streams say what whole answers say, whatever spans tokens: texts, reasons, log-probabilities and usage,
// and each of several answers ends once (T046, T048–T052).
func TestT049StreamsEqualWholeAnswers(t *testing.T) {
	texts := []string{"", "a", "plain text", "wörld 👩🏽‍💻 漢字 \u00e9e\u0301", "\xf0\x9f half", "stop here STOP and more", "aaaab", "quote \" back \\ line\nbreak \u2028 \x01"}
	options := []string{``, `,"stop":"STOP"`, `,"stop":["aab","STOPX"]`, `,"max_tokens":3`, `,"n":3`, `,"logprobs":true,"top_logprobs":2`, `,"n":2,"stop":["e"],"logprobs":true`}
	var text string
	r := newRig(t, func(engine.Request) reply { return reply{text: text} }, nil)
	for _, text = range texts {
		for _, option := range options {
			request := `{"model":"tiny","seed":1,"messages":[{"role":"user","content":"hi"}]` + option
			whole := object(t, r.post("/v1/chat/completions", request+`}`).body)
			documents, done := events(t, r.post("/v1/chat/completions", request+`,"stream":true,"stream_options":{"include_usage":true}}`).body)
			if !done {
				t.Fatalf("%q%s: the stream did not end", text, option)
			}
			for i := range 3 {
				var content, finish string
				var tokens []any
				for _, d := range documents {
					if at(d, "choices", 0, "index") != fmt.Sprint(i) {
						continue
					}
					if v := at(d, "choices", 0, "delta", "content"); v != "absent" {
						content += v
					}
					tokens = append(tokens, list(d, "choices", 0, "logprobs", "content")...)
					if v := at(d, "choices", 0, "finish_reason"); v != "<nil>" {
						finish += v
					}
				}
				if at(whole, "choices", i) == "absent" {
					if finish != "" {
						t.Errorf("%q%s: the stream has choice %d", text, option, i)
					}
					continue
				}
				wholeTokens := list(whole, "choices", i, "logprobs", "content")
				if want := at(whole, "choices", i, "message", "content"); content != want || finish != at(whole, "choices", i, "finish_reason") ||
					fmt.Sprint(tokens) != fmt.Sprint(wholeTokens) {
					t.Errorf("%q%s choice %d:\nstreamed %q, %s, %.200v\n   whole %q, %s, %.200v", text, option, i, content, finish, tokens, want, at(whole, "choices", i, "finish_reason"), wholeTokens)
				}
			}
			last := documents[len(documents)-1]
			if at(last, "usage", "prompt_tokens") != at(whole, "usage", "prompt_tokens") {
				t.Errorf("%q%s: usage %v, whole %v", text, option, at(last, "usage"), at(whole, "usage"))
			}
		}
	}
}

// A stop string never shows, in part or whole, and what merely began like one does (T050, T051).
func TestT050StopStrings(t *testing.T) {
	cases := []struct{ text, stop, want, finish string }{
		{"one two", `"two"`, "one ", "stop"},
		{"one tw", `"two"`, "one tw", "stop"},
		{"STOP", `"STOP"`, "", "stop"},
		{"aaab", `["aab"]`, "a", "stop"},
		{"x👋y", `["👋"]`, "x", "stop"},
	}
	var text string
	r := newRig(t, func(engine.Request) reply { return reply{text: text} }, nil)
	for _, c := range cases {
		text = c.text
		d := object(t, r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"stop":`+c.stop+`}`).body)
		if got, finish := at(d, "choices", 0, "message", "content"), at(d, "choices", 0, "finish_reason"); got != c.want || finish != c.finish {
			t.Errorf("%q stopped by %s: got %q, %s, want %q, %s", c.text, c.stop, got, finish, c.want, c.finish)
		}
	}
}

// What the client wrote reaches the engine, and what it left out is the checkpoint's (T028, T032, T033).
func TestT032SamplingReachesTheEngine(t *testing.T) {
	r := newRig(t, answering, func(c *Config) {
		d := &c.Model.Generator.Defaults
		*d = sample.Defaults()
		d.TopP, d.Temperature, d.TopK = 0.9, 0.6, 20
	})
	r.engine.seen = make(chan engine.Request, 8)
	ask := func(options string) engine.Request {
		got := r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}]`+options+`}`)
		if got.status != 200 {
			t.Fatalf("%s: %d %s", options, got.status, got.body)
		}
		return <-r.engine.seen
	}
	a, b := ask(""), ask(`,"temperature":null,"top_k":null`)
	if p := a.Sampling; p.TopP != 0.9 || p.Temperature != 0.6 || p.TopK != 20 || b.Sampling.TopK != 20 {
		t.Errorf("without options: %+v", p)
	}
	if a.Sampling.Seed == b.Sampling.Seed {
		t.Errorf("two requests without a seed have the same, %d", a.Sampling.Seed)
	}
	p := ask(`,"temperature":0,"top_p":0.5,"top_k":-1,"min_p":0.1,"seed":-1,"presence_penalty":-2,"frequency_penalty":2,"repetition_penalty":1.1,
		"logit_bias":{"7":-100,"258":1.5},"max_tokens":9,"max_completion_tokens":5,"min_tokens":2,"stop_token_ids":[3],"cache_salt":"s","foo":1`)
	s := p.Sampling
	if s.Temperature != 0 || s.TopP != 0.5 || s.TopK != 0 || s.MinP != 0.1 || s.Seed != -1 || s.PresencePenalty != -2 || s.FrequencyPenalty != 2 ||
		s.LogitBias[7] != -100 || s.LogitBias[258] != 1.5 || p.MaxTokens != 5 || p.MinTokens != 2 || fmt.Sprint(p.End) != "[256 3]" || p.CacheSalt != "s" {
		t.Errorf("got %+v", p)
	}
	p = ask(`,"top_n_sigma":1,"xtc_probability":0.5,"xtc_threshold":0.2,"adaptive_sampling":true,"dry_multiplier":0.8,"dry_sequence_breakers":["x"],"lz_penalty":0.1,"repeat_last_n":64,
		"bad_words":["u"],"banned_tokens":[5],"allowed_token_ids":[3,4]`)
	s = p.Sampling
	if s.TopNSigma != 1 || s.XTCProbability != 0.5 || s.XTCThreshold != 0.2 || s.MinEntropy != sample.AdaptiveEntropy || s.DRY.Multiplier != 0.8 || s.DRY.Breakers == nil || s.LZPenalty != 0.1 ||
		s.Window != 64 || fmt.Sprint(s.BadWords) != "[[5] [117] [32 117]]" || fmt.Sprint(s.Allowed) != "[3 4]" {
		t.Errorf("got %+v", p)
	}
	if p := ask(`,"max_tokens":1000000000000`); p.MaxTokens != maxContext-4 {
		t.Errorf("max_tokens beyond the context: %d, want %d", p.MaxTokens, maxContext-4)
	}
	if p := ask(`,"ignore_eos":true`); len(p.End) != 0 {
		t.Errorf("ignore_eos: ends at %v", p.End)
	}
	if got := r.metric("atlasrt_unknown_fields_total"); got != "1" {
		t.Errorf("%s unknown fields counted, want 1", got)
	}
}

func TestT074ContextLength(t *testing.T) {
	r := newRig(t, answering, nil)
	cases := []struct {
		length, status int
		count          string // of the request's tokens; far beyond the context, they are not counted to the end
	}{
		{maxContext - 3, 200, ""}, {maxContext - 2, 400, "has 200 tokens"}, {maxContext, 400, "has 202 tokens"},
		{2*maxContext + 1, 400, "has at least 401 tokens"}, {1 << 20, 400, "has at least 80660 tokens"}, // of 13 bytes at most
	}
	for _, c := range cases {
		got := r.post("/v1/chat/completions", fmt.Sprintf(`{"model":"tiny","messages":[{"role":"user","content":%q}]}`, strings.Repeat("x", c.length)))
		if got.status != c.status {
			t.Errorf("%d characters: %d %s", c.length, got.status, got.body)
		}
		if c.status == 400 {
			d := object(t, got.body)
			if at(d, "error", "code") != "context_length_exceeded" || at(d, "error", "param") != "messages" || !strings.Contains(got.body, fmt.Sprintf("maximum context length is %d tokens", maxContext)) ||
				!strings.Contains(got.body, c.count) {
				t.Errorf("%d characters: %s", c.length, got.body)
			}
		}
	}
}

// A request that no queue has room for is refused for good: clients would try again for ever.
func TestNeverEnoughRoom(t *testing.T) {
	r := newRig(t, func(engine.Request) reply {
		return reply{refuse: &engine.QueueFull{Requests: 9, RequestLimit: 8, Tokens: 9, TokenLimit: 100}}
	}, nil)
	cases := []struct {
		fields string
		status int
		param  string
	}{
		{`"prompt":"a"`, 429, "<nil>"}, {`"prompt":["a","b"],"n":4`, 429, "<nil>"}, {`"prompt":["a","b","c"],"n":3`, 400, "prompt"},
		{`"prompt":"` + strings.Repeat("x", 100) + `"`, 429, "<nil>"}, {`"prompt":["` + strings.Repeat("x", 51) + `","` + strings.Repeat("x", 50) + `"]`, 400, "prompt"},
	}
	for _, c := range cases {
		got := r.post("/v1/completions", `{"add_special_tokens":false,`+c.fields+`}`)
		if param := at(object(t, got.body), "error", "param"); got.status != c.status || param != c.param || (got.header.Get("Retry-After") != "") != (c.status == 429) {
			t.Errorf("%.60s: %d %v %s, want %d for %s", c.fields, got.status, got.header, got.body, c.status, c.param)
		}
	}
}

// Of max_tokens the metrics count what a context could hold: clients write huge numbers for all there is.
func TestMaxTokensAreCountedWithinTheContext(t *testing.T) {
	r := newRig(t, answering, nil)
	r.post("/v1/chat/completions", strings.Replace(hello, "}]", `}],"max_tokens":1000000000000000`, 1))
	if got := r.metric("vllm:request_params_max_tokens_sum"); got != fmt.Sprint(maxContext) {
		t.Errorf("got a sum of %s, want %d", got, maxContext)
	}
}

// An engine's errors, before and after the first byte (T062).
func TestT062EngineErrors(t *testing.T) {
	var answer reply
	r := newRig(t, func(engine.Request) reply { return answer }, nil)
	cases := []struct {
		err          error
		status       int
		code, header string
	}{
		{&engine.QueueFull{RequestLimit: 8, TokenLimit: 100}, 429, "rate_limit_exceeded", "2"},
		{&engine.QueueFull{RequestLimit: 8, TokenLimit: 3}, 400, "invalid_value", ""}, // never would there be room
		{engine.ErrDraining, 503, "model_not_ready", "5"},
		{&engine.TooLong{Tokens: 9, Limit: 8}, 400, "context_length_exceeded", ""},
		{option.Invalid(option.TopK, "is odd"), 400, "invalid_value", ""},
		{errors.New("/secret/path 0xdeadbeef"), 500, "engine_error", ""},
	}
	for _, c := range cases {
		for _, stream := range []bool{false, true} {
			answer = reply{refuse: c.err}
			got := r.post("/v1/chat/completions", fmt.Sprintf(`{"model":"tiny","messages":[{"role":"user","content":"hi"}],"stream":%v}`, stream))
			if at(object(t, got.body), "error", "code") != c.code || got.status != c.status || got.header.Get("Retry-After") != c.header || strings.Contains(got.body, "secret") {
				t.Errorf("%v: %d %v %s", c.err, got.status, got.header, got.body)
			}
		}
	}
	answer = reply{text: "ten tokens", err: errors.New("/secret/path")}
	if got := r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}]}`); got.status != 500 || strings.Contains(got.body, "secret") {
		t.Errorf("whole: %d %s", got.status, got.body)
	}
	got := r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"stream":true}`)
	documents, done := events(t, got.body)
	if last := documents[len(documents)-1]; done || at(last, "error", "code") != "engine_error" || strings.Contains(got.body, "secret") || strings.Contains(got.body, `"stop"`) {
		t.Errorf("stream: done %v, %s", done, got.body)
	}
}

// A stream that has nothing to say yet keeps its connection open (T063).
func TestT063StreamsPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(engine.Request) reply { return reply{text: "late", wait: 100 * time.Millisecond} }, func(c *Config) { c.Limits.PingTime = 10 * time.Millisecond })
		got := r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"stream":true}`)
		if n := strings.Count(got.body, ": ping\n\n"); n < 9 || n > 10 || !strings.HasPrefix(got.body, ": ping") {
			t.Errorf("%d pings in %q", n, got.body)
		}
	})
}

// A request that takes too long ends with 504, or with an event (the total time of a request).
func TestRequestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(engine.Request) reply { return reply{text: "slow answer", step: 20 * time.Millisecond} }, func(c *Config) { c.Limits.RequestTime = 70 * time.Millisecond })
		got := r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}]}`)
		if got.status != 504 || got.header.Get("x-should-retry") != "false" {
			t.Errorf("whole: %d %v %s", got.status, got.header, got.body)
		}
		stream := r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"stream":true}`)
		if documents, done := events(t, stream.body); done || at(documents[len(documents)-1], "error", "type") != "timeout_error" {
			t.Errorf("stream: %s", stream.body)
		}
		if got := r.metric(`atlasrt_cancelled_total{cause="deadline"`); got != "2" {
			t.Errorf("%s deadlines counted, want 2", got)
		}
	})
}

func TestPanicsFailOneRequest(t *testing.T) {
	r := newRig(t, answering, nil)
	got := r.post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"panic"}]}`)
	if got.status != 500 || at(object(t, got.body), "error", "code") != "internal_error" || strings.Contains(got.body, "broke") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.do(http.MethodGet, "/health", ""); got.status != 200 {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}
