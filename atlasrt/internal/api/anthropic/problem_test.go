package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// Every kind of error has a status and a type, and its body has the shape of the API.
func TestProblems(t *testing.T) {
	for kind := range api.Kind(api.Kinds) {
		status, code, body := Messages{}.Problem(&api.Error{Kind: kind, Message: "why", RequestID: "req_1"})
		var got struct {
			Type  string
			Error struct{ Type, Message string }
			ID    string `json:"request_id"`
		}
		if err := json.Unmarshal(body, &got); err != nil || status < 400 || status > 599 || got.Type != "error" || got.Error.Type != code || code == "" || got.Error.Message == "" || got.ID != "req_1" {
			t.Errorf("kind %d: %d %q %s", kind, status, code, body)
		}
	}
	cases := []struct {
		err    *api.Error
		status int
		answer string
	}{
		{api.Invalid("top_k", "top_k is odd."), 400, `{"type":"error","error":{"type":"invalid_request_error","message":"top_k is odd."},"request_id":null}`},
		{&api.Error{Kind: api.KindTooLong, Count: api.Count{Tokens: 8, Limit: 8}}, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 8 tokens > 7 maximum"},"request_id":null}`},
		{&api.Error{Kind: api.KindTooLong, Count: api.Count{Tokens: 17, AtLeast: true, Limit: 8}}, 400,
			`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 17 tokens > 7 maximum (it has at least as many: they were not counted to the end)"},"request_id":null}`},
		{&api.Error{Kind: api.KindQueueFull, Message: "Full."}, 529, `{"type":"error","error":{"type":"overloaded_error","message":"Full."},"request_id":null}`},
		{&api.Error{Kind: api.KindLargeBody, Message: "Large."}, 413, `{"type":"error","error":{"type":"request_too_large","message":"Large."},"request_id":null}`},
		{api.UnknownModel("x"), 404, `{"type":"error","error":{"type":"not_found_error","message":"The model \"x\" does not exist here; GET /v1/models lists those that do."},"request_id":null}`},
	}
	for _, c := range cases {
		if status, _, body := (Messages{}).Problem(c.err); status != c.status || string(body) != c.answer {
			t.Errorf("%+v:\n got %d %s\nwant %d %s", c.err, status, body, c.status, c.answer)
		}
	}
}
