package server

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
)

// Prompts are shown as the engine would get them, and errors as the dialect's.
func TestRender(t *testing.T) {
	var asked []int32
	r := newRig(t, func(request engineRequest) reply {
		asked = request.Prompt
		return reply{text: "ok"}
	}, func(c *Config) { c.Keys = []string{"key"} })
	const chat = `{"messages":[{"role":"user","content":"aé"}],"tools":[{"type":"function","function":{"name":"f"}}]`
	cases := []struct {
		path, request string
		status        int
		want          string
	}{
		{"/v1/chat/completions/render", chat + `}`, 200, `{"prompt":"<|user|>aé<|assistant|>","tokens":[257,97,195,169,258],"count":5,"max_model_len":200,"thinking":false}`},
		{"/chat/completions/render", chat + `,"stream":true}`, 200, `"count":5`}, {"/render", chat + `,"temperature":0}`, 200, `"count":5`},
		{"/v1/completions/render", `{"prompt":"ab"}`, 200, `{"prompt":"ab","tokens":[97,98],"count":2,"max_model_len":200,"thinking":false}`},
		{"/v1/completions/render", `{"prompt":[[97],[98,257]]}`, 200, `[{"prompt":"a","tokens":[97],"count":1,"max_model_len":200,"thinking":false},{"prompt":"b<|user|>",`},
		{"/v1/render", chat + `}`, 200, `"count":5`}, {"/v1/apply-template", chat + `}`, 200, `{"prompt":`}, {"/v1/tokenize", `{"prompt":"a"}`, 200, `"count":1`}, {"/v1/detokenize", `{"tokens":[97]}`, 200, `{"prompt":"a"`},
		{"/apply-template", chat + `}`, 200, `{"prompt":"<|user|>aé<|assistant|>"}`},
		{"/render", `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 300) + `"}]}`, 200, `"count":302`}, // no room for an answer, but shown
		{"/render", `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 500) + `"}]}`, 400, "context_length_exceeded"},
		{"/v1/chat/completions/render", chat + `,"tool_choice":"required"}`, 400, `"param":"tools"`}, {"/render", `{}`, 400, `"param":"messages"`}, {"/apply-template", `{"messages":[{"role":"user","content":"raise"}]}`, 400, `"param":"messages"`},
		{"/v1/completions/render", `{"prompt":"ab","guided_json":{"type":"string","format":"phone"}}`, 200, `"thinking":false,"not_held":["guided_json: at #: nothing is known of the format \"phone\": it asks nothing"]}`},
		{"/v1/completions/render", `{"prompt":[300]}`, 400, `"param":"prompt"`},
	}
	for _, c := range cases {
		got := r.do("POST", c.path, c.request, "Authorization", "Bearer key")
		if got.status != c.status || !strings.Contains(got.body, c.want) {
			t.Errorf("%s %.100s: %d %s\nwant %d %s", c.path, c.request, got.status, got.body, c.status, c.want)
		}
		if asked != nil {
			t.Errorf("%s %.100s: the engine was asked", c.path, c.request)
		}
	}
	for path, request := range map[string]string{"/v1/chat/completions": chat + `}`, "/v1/completions": `{"prompt":"ab"}`} {
		count := at(object(t, r.do("POST", path+"/render", request, "Authorization", "Bearer key").body), "count")
		d := object(t, r.do("POST", path, request, "Authorization", "Bearer key").body)
		if at(d, "usage", "prompt_tokens") != count {
			t.Errorf("%s: %s tokens shown, %v", path, count, d)
		}
	}
}

// A conversation is counted with all that its template sees.
func TestTokenizeReadsChats(t *testing.T) {
	r := newRig(t, answering, nil)
	cases := []struct {
		request string
		status  int
		want    string
	}{
		{`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","reasoning_effort":"low","thinking_budget":5,"chat_template_kwargs":{"enable_thinking":true}}`, 200, `"count":3`},
		{`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function"}]}`, 400, `"param":"tools[0].function"`},
		{`{"messages":[{"role":"user","content":"a"}],"thinking_budget":-2}`, 400, `"param":"thinking_budget"`},
	}
	for _, c := range cases {
		if got := r.post("/tokenize", c.request); got.status != c.status || !strings.Contains(got.body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.request, got.status, got.body, c.status, c.want)
		}
	}
}

// A prompt that ends within thoughts is shown as such.
func TestRenderShowsThinking(t *testing.T) {
	template, err := chat.ParseTemplate(`{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking %}<think>{% endif %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, answering, func(c *Config) {
		c.Model.Template = textTemplate{template, byteTokenizer(t)}
		c.Model.Generator.Formats.Reasoning = parse.FindReasoning("think")
	})
	for _, on := range []string{"true", "false"} {
		got := object(t, r.post("/render", `{"messages":[{"role":"user","content":"<think>"}],"enable_thinking":`+on+`}`).body)
		if at(got, "thinking") != on {
			t.Errorf("enable_thinking %s: %v", on, got)
		}
	}
}
