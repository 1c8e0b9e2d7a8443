package openai

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// Every kind of error has a status, a type and a code, and its body has all four keys.
func TestProblems(t *testing.T) {
	for kind := range api.Kind(api.Kinds) {
		status, code, body := Chat{}.Problem(&api.Error{Kind: kind, Message: "why"})
		got := errorOf(t, body)
		if status < 400 || status > 599 || code == "" || got.Type == "" || got.Message == "" || got.Param != "" {
			t.Errorf("kind %d: %d %q %s", kind, status, code, body)
		}
	}
	cases := []struct {
		err          *api.Error
		status       int
		code, answer string
	}{
		{api.Invalid("", "Odd."), 400, "invalid_request_error", `{"error":{"message":"Odd.","type":"invalid_request_error","param":null,"code":null}}`},
		{api.Invalid("n", "n is odd."), 400, "invalid_value", `{"error":{"message":"n is odd.","type":"invalid_request_error","param":"n","code":"invalid_value"}}`},
		{&api.Error{Kind: api.KindTooLong, Field: "prompt", Count: api.Count{Tokens: 9, Limit: 8}}, 400, "context_length_exceeded",
			`{"error":{"message":"This model's maximum context length is 8 tokens, but the request has 9 tokens and needs room for at least one more. Shorten it.","type":"invalid_request_error","param":"prompt","code":"context_length_exceeded"}}`},
		{&api.Error{Kind: api.KindTooLong, Count: api.Count{Tokens: 17, AtLeast: true, Limit: 8}}, 400, "context_length_exceeded",
			`{"error":{"message":"This model's maximum context length is 8 tokens, but the request has at least 17 tokens and needs room for one more. Shorten it.","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}`},
		{api.UnknownModel("x"), 404, "model_not_found", `{"error":{"message":"The model \"x\" does not exist here; GET /v1/models lists those that do.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`},
	}
	for _, c := range cases {
		status, code, body := Text{}.Problem(c.err)
		if status != c.status || code != c.code || string(body) != c.answer {
			t.Errorf("%+v:\n got %d %s %s\nwant %d %s %s", c.err, status, code, body, c.status, c.code, c.answer)
		}
		if got, want := string(fail(nil, c.err)), "data: "+c.answer+"\n\n"; got != want {
			t.Errorf("%+v: the event is %q, want %q", c.err, got, want)
		}
	}
}
