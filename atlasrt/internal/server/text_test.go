package server

import (
	"fmt"
	"strings"
	"testing"
)

func TestCompletions(t *testing.T) {
	r := newRig(t, func(engineRequest) reply { return reply{text: "xyz"} }, nil)
	cases := []struct {
		request string
		want    []string // text and reason of each choice
		usage   string
	}{
		{`"prompt":"ab"`, []string{"xyz stop"}, "2 4"},
		{`"prompt":"ab","echo":true`, []string{"abxyz stop"}, "2 4"},
		{`"prompt":"ab","max_tokens":2`, []string{"xy length"}, "2 2"},
		{`"prompt":["a","b"],"n":2,"echo":true`, []string{"axyz stop", "axyz stop", "bxyz stop", "bxyz stop"}, "2 16"},
		{`"prompt":[97,98,256],"echo":true`, []string{"abxyz stop"}, "3 4"},
		{`"prompt":[[97],[98]],"echo":true`, []string{"axyz stop", "bxyz stop"}, "2 8"},
		{`"prompt":"ab","max_tokens":0,"echo":true,"logprobs":1`, []string{"ab length"}, "2 0"},
		{`"prompt":"ab","max_tokens":0`, []string{" length"}, "2 0"},
		{`"prompt":"<|user|>","echo":true`, []string{"<|user|>xyz stop"}, "1 4"},
		{`"prompt":"ab","stop":"y"`, []string{"x stop"}, "2 2"},
	}
	for _, c := range cases {
		whole := object(t, r.post("/v1/completions", `{"model":"tiny",`+c.request+`}`).body)
		documents, done := events(t, r.post("/v1/completions", `{"model":"tiny","stream":true,"stream_options":{"include_usage":true},`+c.request+`}`).body)
		if at(whole, "object") != "text_completion" || !done || at(documents[0], "object") != "text_completion" {
			t.Errorf("%s: %v, streamed %v", c.request, whole, documents)
		}
		for i, want := range c.want {
			if got := at(whole, "choices", i, "text") + " " + at(whole, "choices", i, "finish_reason"); got != want || at(whole, "choices", i, "index") != fmt.Sprint(i) {
				t.Errorf("%s choice %d: got %q, want %q", c.request, i, got, want)
			}
			var text, reason string
			for _, d := range documents {
				if at(d, "choices", 0, "index") == fmt.Sprint(i) {
					text += at(d, "choices", 0, "text")
					if v := at(d, "choices", 0, "finish_reason"); v != "<nil>" {
						reason += v
					}
				}
			}
			if text+" "+reason != want {
				t.Errorf("%s choice %d: streamed %q, want %q", c.request, i, text+" "+reason, want)
			}
		}
		if got := at(whole, "usage", "prompt_tokens") + " " + at(whole, "usage", "completion_tokens"); got != c.usage || len(list(whole, "choices")) != len(c.want) {
			t.Errorf("%s: usage %s, want %s; %d choices", c.request, got, c.usage, len(list(whole, "choices")))
		}
	}
}

// A prompt that is too long is blamed by its field's name here.
func TestT074CompletionTooLong(t *testing.T) {
	r := newRig(t, answering, nil)
	got := r.post("/v1/completions", fmt.Sprintf(`{"model":"tiny","prompt":%q}`, strings.Repeat("x", maxContext)))
	if d := object(t, got.body); got.status != 400 || at(d, "error", "code") != "context_length_exceeded" || at(d, "error", "param") != "prompt" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A text that the tokenizer's pattern cannot be searched for in is the client's, and costs nothing but its own request.
func TestIntractablePrompt(t *testing.T) {
	r := newRig(t, answering, func(c *Config) {
		tok := cutting(t, map[string]any{"type": "Split", "pattern": map[string]any{"Regex": "(a+)+(?!a)c"}, "behavior": "Isolated"})
		c.Model.Generator.Tokenizer, c.Model.Template = tok, fakeTemplate{tok}
	})
	text := strings.Repeat("a", 64) + "b"
	for _, c := range []struct{ path, body, param string }{
		{"/v1/completions", `{"model":"tiny","prompt":"` + text + `"}`, "prompt"},
		{"/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"` + text + `"}]}`, "messages"},
		{"/tokenize", `{"model":"tiny","prompt":"` + text + `"}`, "prompt"},
		{"/v1/completions", `{"model":"tiny","prompt":"x","bad_words":["` + text + `"]}`, "bad_words"},
	} {
		got := r.post(c.path, c.body)
		d := object(t, got.body)
		if got.status != 400 || at(d, "error", "param") != c.param || !strings.Contains(at(d, "error", "message"), "takes too long on a text of 65 bytes") {
			t.Errorf("%s: %d %s", c.path, got.status, got.body)
		}
	}
}

// Log-probabilities of a completion: parallel arrays, the prompt's first token without any, offsets in code points.
func TestCompletionLogProbs(t *testing.T) {
	r := newRig(t, func(engineRequest) reply { return reply{text: "é!"} }, nil)
	const request = `{"model":"tiny","prompt":"äb","echo":true,"logprobs":1,"max_tokens":3`
	want := `[bytes:\xc3 bytes:\xa4 b bytes:\xc3 bytes:\xa9 !] [<nil> -0.25 -0.25 -0.25 -0.25 -0.25] [0 1 1 2 3 3]`
	show := func(l any) string {
		return strings.Join([]string{at(l, "tokens"), at(l, "token_logprobs"), at(l, "text_offset")}, " ")
	}
	whole := object(t, r.post("/v1/completions", request+`}`).body)
	l, _ := find(whole, "choices", 0, "logprobs")
	if got := show(l); got != want || at(l, "top_logprobs", 0) != "<nil>" || at(l, "top_logprobs", 2) != "map[b:-0.25]" {
		t.Errorf("got  %s\nwant %s\n%v", got, want, l)
	}
	documents, _ := events(t, r.post("/v1/completions", request+`,"stream":true}`).body)
	joined := map[string]any{}
	for _, d := range documents {
		for _, key := range []string{"tokens", "token_logprobs", "text_offset"} {
			before, _ := joined[key].([]any)
			joined[key] = append(before, list(d, "choices", 0, "logprobs", key)...)
		}
	}
	if got := show(joined); got != want {
		t.Errorf("streamed %s\n    want %s", got, want)
	}
}

func TestTokenize(t *testing.T) {
	r := newRig(t, answering, nil)
	cases := []struct {
		path, request, want string
		status              int
	}{
		{"/tokenize", `{"prompt":"aé"}`, `{"count":3,"max_model_len":200,"tokens":[97,195,169]}`, 200},
		{"/tokenize", `{"content":"a","with_pieces":true,"model":"tiny"}`, `{"count":1,"max_model_len":200,"tokens":[{"id":97,"piece":"a"}]}`, 200},
		{"/tokenize", `{"content":"é","with_pieces":true}`, `{"count":2,"max_model_len":200,"tokens":[{"id":195,"piece":[195]},{"id":169,"piece":[169]}]}`, 200},
		{"/tokenize", `{"prompt":"","return_token_strs":true}`, `{"count":0,"max_model_len":200,"tokens":[],"token_strs":[]}`, 200},
		{"/tokenize", `{"messages":[{"role":"user","content":"a"}]}`, `{"count":3,"max_model_len":200,"tokens":[257,97,258]}`, 200},
		{"/tokenize", `{}`, `"param":"prompt"`, 400}, {"/tokenize", `{"prompt":1}`, `"param":"prompt"`, 400}, {"/tokenize", `{"prompt":"a","model":"x"}`, `model_not_found`, 404},
		{"/tokenize", `{"messages":[]}`, `"param":"messages"`, 400},
		{"/detokenize", `{"tokens":[97,195,169,257]}`, `{"prompt":"aé<|user|>","content":"aé<|user|>"}`, 200},
		{"/detokenize", `{"tokens":[259]}`, `"param":"tokens"`, 400}, {"/detokenize", `{"tokens":[-1]}`, `"param":"tokens"`, 400}, {"/detokenize", `{}`, `"param":"tokens"`, 400},
	}
	for _, c := range cases {
		if got := r.post(c.path, c.request); got.status != c.status || !strings.Contains(got.body, c.want) {
			t.Errorf("%s %s: %d %s\nwant %d %s", c.path, c.request, got.status, got.body, c.status, c.want)
		}
	}
}
