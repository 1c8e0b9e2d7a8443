package server

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// asked is a request for a message.
const asked = `{"model":"tiny","max_tokens":100,"messages":[{"role":"user","content":"hi"}]`

// messageEvents are the documents of a stream of the Anthropic API, each under the name of its type.
func messageEvents(t testing.TB, stream string) (documents []map[string]any) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		if event == ": ping" {
			continue
		}
		name, data, ok := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		d := object(t, data)
		if !ok || at(d, "type") != name {
			t.Fatalf("event %q", event)
		}
		documents = append(documents, d)
	}
	return documents
}

// Whole answers and streams of the same script.
func TestMessages(t *testing.T) {
	const tools = `,"tools":[{"name":"f","input_schema":{}}]`
	const call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"ü\"}}\n</tool_call>"
	cases := []struct {
		script, more string
		content      string
		reason, stop string
	}{
		{"Hello 👋", ``, "[map[text:Hello 👋 type:text]]", "end_turn", "<nil>"},
		{"", ``, "[]", "end_turn", "<nil>"},
		{"abc", `,"stop_sequences":["c"]`, "[map[text:ab type:text]]", "stop_sequence", "c"},
		{"abcdef", `,"max_tokens":3`, "[map[text:abc type:text]]", "max_tokens", "<nil>"},
		{"abcdef", `,"max_tokens":0`, "[]", "max_tokens", "<nil>"},
		{"<think>hm</think>\n\nyes", ``, "[map[signature: thinking:hm type:thinking] map[text:yes type:text]]", "end_turn", "<nil>"},
		{"<think>hm</think>\n\nyes", `,"thinking":{"type":"adaptive","display":"omitted"}`, "[map[signature: thinking: type:thinking] map[text:yes type:text]]", "end_turn", "<nil>"},
		{"See. " + call, tools, "[map[text:See. type:text] map[id: input:map[a:ü] name:f type:tool_use]]", "tool_use", "<nil>"},
		{call + "\n" + call, tools, "[map[id: input:map[a:ü] name:f type:tool_use] map[id: input:map[a:ü] name:f type:tool_use]]", "tool_use", "<nil>"},
		{call + "\n" + call, tools + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, "[map[id: input:map[a:ü] name:f type:tool_use]]", "tool_use", "<nil>"},
		{call, tools + `,"max_tokens":44`, `[map[id: input:map[INVALID_JSON:{"a":] name:f type:tool_use]]`, "max_tokens", "<nil>"},
	}
	var script string
	r := newRig(t, func(engineRequest) reply { return reply{text: script} }, func(c *Config) {
		g := c.Model.Generator
		g.MaxContext, g.Formats.Reasoning, g.Formats.Tools = 1000, parse.FindReasoning("think"), parse.FindTools("hermes")
	})
	for _, c := range cases {
		script = c.script
		body := strings.Replace(asked, `"max_tokens":100,`, "", 1) + c.more
		if !strings.Contains(c.more, "max_tokens") {
			body += `,"max_tokens":500`
		}
		got := r.post("/v1/messages", body+`}`)
		d := object(t, got.body)
		content := withoutIDs(list(d, "content"))
		if got.status != 200 || content != c.content || at(d, "stop_reason") != c.reason || at(d, "stop_sequence") != c.stop {
			t.Errorf("%q %s: %d %s\n got %s\nwant %s", c.script, c.more, got.status, got.body, content, c.content)
		}
		if at(d, "type") != "message" || at(d, "role") != "assistant" || at(d, "model") != "tiny" || !strings.HasPrefix(at(d, "id"), "msg_") || got.header.Get("request-id") == "" || got.header.Get("request-id") != got.header.Get("x-request-id") {
			t.Errorf("%q: %v %s", c.script, got.header, got.body)
		}
		if at(d, "usage", "input_tokens") != "1" || at(d, "usage", "cache_read_input_tokens") != "3" || at(d, "usage", "cache_creation_input_tokens") != "0" {
			t.Errorf("T069 %q: %s, want 1 new token and 3 of a cache, of 4 in all", c.script, got.body)
		}
		stream := r.post("/messages?beta=true", body+`,"stream":true}`)
		documents := messageEvents(t, stream.body)
		first, delta := documents[0], documents[len(documents)-2]
		if at(first, "message", "usage", "cache_read_input_tokens") != "3" || at(delta, "delta", "stop_reason") != c.reason || at(delta, "delta", "stop_sequence") != c.stop || at(delta, "usage") != at(d, "usage") || at(documents[len(documents)-1], "type") != "message_stop" {
			t.Errorf("%q %s: streamed %s", c.script, c.more, stream.body)
		}
		if blocks := strings.Count(stream.body, "event: content_block_stop"); blocks != len(list(d, "content")) {
			t.Errorf("%q %s: %d blocks in the stream, want %d: %s", c.script, c.more, blocks, len(list(d, "content")), stream.body)
		}
	}
}

// withoutIDs writes blocks without what differs each time.
func withoutIDs(blocks []any) string {
	for _, block := range blocks {
		b, _ := block.(map[string]any)
		for _, key := range []string{"id", "signature"} {
			if _, ok := b[key]; ok {
				b[key] = ""
			}
		}
	}
	return fmt.Sprint(blocks)
}

// Errors have the shape of the API, its statuses, and the id of their response.
func TestProblemsOfMessages(t *testing.T) {
	var script reply
	r := newRig(t, func(engineRequest) reply { return script }, func(c *Config) { c.Limits.BodyBytes = 2000 })
	large := asked + `,"x":"` + strings.Repeat("x", 3000) + `"}`
	cases := []struct {
		method, path, body string
		script             reply
		status             int
		kind, message      string
	}{
		{"POST", "/v1/messages", `{}`, reply{}, 400, "invalid_request_error", "max_tokens is required"},
		{"POST", "/v1/messages/count_tokens", `{}`, reply{}, 400, "invalid_request_error", "messages must be an array"},
		{"POST", "/v1/messages", strings.Replace(asked, "tiny", "big", 1) + `}`, reply{}, 404, "not_found_error", `model "big" does not exist`},
		{"POST", "/v1/messages", strings.Replace(asked, `"hi"`, `"raise"`, 1) + `}`, reply{}, 400, "invalid_request_error", "does not like this"},
		{"POST", "/v1/messages", strings.Replace(asked, `"hi"`, `"panic"`, 1) + `}`, reply{}, 500, "api_error", "failed to answer"},
		{"POST", "/v1/messages", large, reply{}, 413, "request_too_large", "larger than the 2000 bytes"},
		{"POST", "/v1/messages", asked + `}`, reply{refuse: &engine.QueueFull{Requests: 9, RequestLimit: 9, Tokens: 9, TokenLimit: 900}}, 529, "overloaded_error", ""},
		{"POST", "/v1/messages", asked + `}`, reply{refuse: engine.ErrDraining}, 503, "api_error", "shutting down"},
		{"POST", "/v1/messages", asked + `}`, reply{err: errors.New("secret")}, 500, "api_error", "engine failed"},
		{"GET", "/v1/messages", ``, reply{}, 405, "invalid_request_error", "does not take that method"},
		{"POST", "/v1/messages/batches", `{}`, reply{}, 404, "not_found_error", "no such path"},
	}
	for _, c := range cases {
		script = c.script
		got := r.do(c.method, c.path, c.body)
		d := object(t, got.body)
		if got.status != c.status || at(d, "type") != "error" || at(d, "error", "type") != c.kind || !strings.Contains(at(d, "error", "message"), c.message) || at(d, "request_id") != got.header.Get("request-id") || strings.Contains(got.body, "secret") {
			t.Errorf("%s %s %.100s: %d %s, want %d %s %q", c.method, c.path, c.body, got.status, got.body, c.status, c.kind, c.message)
		}
		if again := got.header.Get("Retry-After") != ""; again != (c.status == 529 || c.status == 503) {
			t.Errorf("%s: Retry-After %v", got.body, again)
		}
	}
	script = reply{text: "abc", err: errors.New("secret")}
	documents := messageEvents(t, r.post("/v1/messages", asked+`,"stream":true}`).body)
	last := documents[len(documents)-1]
	if at(documents[0], "type") != "message_start" || at(last, "error", "type") != "api_error" || !strings.HasPrefix(at(last, "request_id"), "req_") || strings.Contains(at(last), "secret") {
		t.Errorf("T062 the stream ends with %v", last)
	}
}

// While a stream waits it says so: with a comment before its first event, which no event may precede, and with pings behind it.
func TestPingsOfMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(engineRequest) reply {
			return reply{text: "ab", wait: 60 * time.Millisecond, step: 60 * time.Millisecond}
		}, func(c *Config) { c.Limits.PingTime = 15 * time.Millisecond })
		body := r.post("/v1/messages", asked+`,"stream":true}`).body
		before, after, ok := strings.Cut(body, "event: message_start")
		if !ok || strings.Trim(before, ": ping\n") != "" || before == "" || !strings.Contains(after, "event: ping\ndata: {\"type\":\"ping\"}\n\n") || strings.Contains(after, "\n: ping") {
			t.Errorf("got %s", body)
		}
	})
}

// Prompts that leave no room (T074).
func TestT074LongMessages(t *testing.T) {
	r := newRig(t, answering, nil)
	for tokens, want := range map[int]string{
		maxContext - 1:         "",
		maxContext:             "prompt is too long: 200 tokens > 199 maximum",
		maxContext + 1:         "prompt is too long: 201 tokens > 199 maximum",
		maxContext + 1_000_000: " tokens > 199 maximum (it has at least as many: they were not counted to the end)",
	} {
		body := strings.Replace(asked, "hi", strings.Repeat("x", tokens-2), 1) + `}`
		got := r.post("/v1/messages", body)
		if d := object(t, got.body); want == "" && got.status != 200 || want != "" && (got.status != 400 || at(d, "error", "type") != "invalid_request_error" || !strings.HasSuffix(at(d, "error", "message"), want) || !strings.HasPrefix(at(d, "error", "message"), "prompt is too long: ")) {
			t.Errorf("%d tokens: %d %s, want %s", tokens, got.status, got.body, want)
		}
		counted := r.post("/v1/messages/count_tokens", body)
		if few := tokens < countTokens; few && counted.body != fmt.Sprintf(`{"input_tokens":%d}`, tokens) || !few && (counted.status != 400 || !strings.Contains(counted.body, "counts up to 262144")) {
			t.Errorf("%d tokens: counted as %d %s", tokens, counted.status, counted.body)
		}
	}
}

// randomBody is a conversation of chance, up to the fields about its answer.
func randomBody(random *rand.Rand) string {
	words := []string{"", "a", "wörld 👋", "<|user|>", "two\nlines", "<think>", `\"quoted\"`}
	word := func() string { return strings.ReplaceAll(words[random.IntN(len(words))], "\n", `\n`) }
	text := func() string { return fmt.Sprintf(`{"type":"text","text":"%s","cache_control":null}`, word()) }
	maybe := func(s string) string { return s[:len(s)*random.IntN(2)] }
	turns := []string{`{"role":"user","content":"` + word() + `x"}`}
	for i := range random.IntN(6) {
		id := fmt.Sprint(i)
		turns = append(turns, []string{
			`{"role":"user","content":[` + text() + `,` + text() + `]}`,
			`{"role":"ctx","content":"` + word() + `"}`,
			`{"role":"assistant","content":"` + word() + `y"},{"role":"user","content":"` + word() + `"}`,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"` + word() + `","signature":"s"},` + text() + `]},` + maybe(`{"role":"system","content":"s"},`) + `{"role":"user","content":"u"}`,
			`{"role":"assistant","content":[` + text() + `,{"type":"tool_use","id":"` + id + `","name":"f","input":{"a":"` + word() + `"}}]},` + maybe(`{"role":"system","content":"s"},`) + `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":[` + text() + `]},` + text() + `]}`,
		}[random.IntN(5)])
	}
	return `"messages":[` + strings.Join(turns, ",") + maybe(`,{"role":"assistant","content":"Go on"}`) + `]` +
		maybe(`,"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1"},`+text()+`]`) +
		maybe(`,"tools":[{"name":"f","description":"d","input_schema":{"properties":{"a":{"type":"string"}}}},{"type":"bash_20250124","name":"bash"}]`) +
		maybe(`,"tool_choice":{"type":"none"}`) + maybe(`,"thinking":{"type":"disabled"}`)
}

// A count is what the same conversation is charged, through a template of a model.
func TestT068CountsEqualUsage(t *testing.T) {
	source, err := os.ReadFile(testdata.Shared(t, "templates/Qwen-Qwen3-0.6B.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.ParseTemplate(string(source), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, answering, func(c *Config) {
		c.Model.Generator.MaxContext, c.Model.Template = 100_000, textTemplate{template, byteTokenizer(t)}
	})
	random := rand.New(rand.NewPCG(6, 8))
	for range 500 {
		body := randomBody(random)
		counted, got := r.post("/v1/messages/count_tokens", `{"model":"tiny",`+body+`}`), r.post("/v1/messages", `{"max_tokens":1,`+body+`}`)
		u := object(t, got.body)["usage"]
		if counted.status != 200 || got.status != 200 {
			t.Fatalf("%s: counted %d %s, answered %d %s", body, counted.status, counted.body, got.status, got.body)
		}
		total := tokensOf(u, "input_tokens") + tokensOf(u, "cache_read_input_tokens") + tokensOf(u, "cache_creation_input_tokens")
		if want := fmt.Sprintf(`{"input_tokens":%d}`, total); counted.body != want {
			t.Fatalf("%s: counted %s, charged %s", body, counted.body, want)
		}
	}
}

// tokensOf is a count of tokens in a usage.
func tokensOf(u any, field string) int {
	v, _ := find(u, field)
	n, _ := v.(float64)
	return int(n)
}

// What the model gets to see of the conversations of agents, through templates of models (T067).
func TestT067ConversationsOfAgents(t *testing.T) {
	const plain = `{% for m in messages %}{{ '[' + m.role + ']' + m.content }}{% for c in m.tool_calls or [] %}{{ '<' + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}`
	const strict = `{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning.') }}{% endif %}{% if not loop.first and m.role == 'user' and messages[loop.index0 - 1].role == 'user' %}{{ raise_exception('roles must alternate') }}{% endif %}{{ '[' + m.role + ']' + m.content }}{% for c in m.tool_calls or [] %}{{ '<' + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}`
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}`
	const result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"}]}`
	cases := []struct{ name, body, plain, strict string }{
		{"users in a row", `[{"role":"user","content":"a"},{"role":"user","content":"b"}]`, "[user]a[user]b[assistant]", "[user]a\n\nb[assistant]"},
		{"prefill", `[{"role":"user","content":"a"},{"role":"assistant","content":"Go"}]`, "[user]a[assistant]Go", "[user]a[assistant]Go"},
		{"late system", `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"system","content":"s"},{"role":"user","content":"c"}],"system":"top"`, "[system]top[user]a[assistant]b[system]s[user]c[assistant]", "[system]top[user]a[assistant]b[user]s\n\nc[assistant]"},
		{"notes", `[{"role":"ctx","content":"c"},{"role":"msg","content":"m"}]`, "[user]c[user]m[assistant]", "[user]c\n\nm[assistant]"},
		{"system behind a call", `[{"role":"user","content":"a"},` + call + `,{"role":"system","content":"s"},` + result + `]`, "[user]a[assistant]<f{}>[tool]r[system]s[assistant]", "[user]a[assistant]<f{}>[tool]r[user]s[assistant]"},
	}
	for _, source := range []string{plain, strict} {
		template, err := chat.ParseTemplate(source, nil)
		if err != nil {
			t.Fatal(err)
		}
		tok := byteTokenizer(t)
		prompts := make(chan string, 1)
		r := newRig(t, func(request engineRequest) reply {
			prompts <- tok.Decode(request.Prompt, false)
			return reply{text: "ok"}
		}, func(c *Config) { c.Model.Template = textTemplate{template, tok} })
		for _, c := range cases {
			want := c.plain
			if source == strict {
				want = c.strict
			}
			if got := r.post("/v1/messages", `{"max_tokens":9,"messages":`+c.body+`}`); got.status != 200 {
				t.Errorf("%s: %d %s", c.name, got.status, got.body)
			} else if prompt := <-prompts; prompt != want {
				t.Errorf("%s:\n got %q\nwant %q", c.name, prompt, want)
			}
		}
	}
}

// A refusal of the template names the message as the client counts them, not the messages that it became.
func TestRefusedMessages(t *testing.T) {
	template, err := chat.ParseTemplate(`{% for m in messages %}{% if m.role != 'assistant' %}{{ '[' + m.role + ']' + m.content }}{% endif %}{% endfor %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, answering, func(c *Config) { c.Model.Template = textTemplate{template, byteTokenizer(t)} })
	got := r.post("/v1/messages", `{"max_tokens":9,"system":"s","messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"text","text":"t"},{"type":"tool_result","tool_use_id":"1","content":"r"}]},{"role":"assistant","content":"lost"},{"role":"user","content":"u"}]}`)
	if got.status != 400 || !strings.Contains(got.body, "messages[2] does not reach the model") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Models are listed in the shape of who asks, and one header says who does.
func TestModelsInBothShapes(t *testing.T) {
	r := newRig(t, answering, nil)
	cases := []struct{ path, version, want string }{
		{"/v1/models", "", `"object":"list"`}, {"/v1/models", "2023-06-01", `"has_more":false,"first_id":"tiny","last_id":"org/alias"`}, {"/models?limit=1", "2023-06-01", `"has_more":true,"first_id":"tiny","last_id":"tiny"`},
		{"/v1/models?after_id=tiny", "x", `"first_id":"org/alias"`}, {"/v1/models?limit=0", "x", `"type":"invalid_request_error"`}, {"/v1/models?limit=0", "", `"object":"list"`},
		{"/v1/models/org/alias", "", `"object":"model"`}, {"/v1/models/org/alias", "x", `{"type":"model","id":"org/alias","display_name":"org/alias"`},
		{"/v1/models/none", "", `"code":"model_not_found"`}, {"/v1/models/none", "x", `"type":"not_found_error"`}, {"/nowhere", "x", `"type":"not_found_error"`}, {"/nowhere", "", `"code":"not_found"`},
	}
	for _, c := range cases {
		if got := r.do("GET", c.path, "", "anthropic-version", c.version); !strings.Contains(got.body, c.want) || (got.header.Get("request-id") != "") != (c.version != "") {
			t.Errorf("%s as %q: %v %s, want %s", c.path, c.version, got.header, got.body, c.want)
		}
	}
}

// Where a key may be: in two headers, which must agree, and nowhere else.
func TestT111Keys(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Keys = []string{"first", "second"} })
	cases := []struct {
		name   string
		header http.Header
		ok     bool
	}{
		{"bearer", http.Header{"Authorization": {"Bearer first"}}, true}, {"lower case", http.Header{"Authorization": {"bearer first"}}, true},
		{"x-api-key", http.Header{"X-Api-Key": {"second"}}, true}, {"wrong x-api-key", http.Header{"X-Api-Key": {"third"}}, false}, {"empty x-api-key", http.Header{"X-Api-Key": {""}}, false},
		{"both", http.Header{"Authorization": {"Bearer first"}, "X-Api-Key": {"first"}}, true},
		{"both, different", http.Header{"Authorization": {"Bearer first"}, "X-Api-Key": {"second"}}, false}, {"both, one wrong", http.Header{"Authorization": {"Bearer first"}, "X-Api-Key": {"x"}}, false}, {"both, one basic", http.Header{"Authorization": {"Basic first"}, "X-Api-Key": {"first"}}, false},
		{"two bearers", http.Header{"Authorization": {"Bearer first", "Bearer first"}}, false}, {"two x-api-keys", http.Header{"X-Api-Key": {"first", "first"}}, false},
		{"cookie", http.Header{"Cookie": {"x-api-key=first; api_key=first"}}, false}, {"none", http.Header{}, false},
	}
	for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
		for _, c := range cases {
			request, err := http.NewRequest("POST", r.url+path+"?api_key=first&x-api-key=first", strings.NewReader(asked+`}`))
			if err != nil {
				t.Fatal(err)
			}
			request.Header = c.header.Clone()
			request.Header.Set("Content-Type", "application/json")
			got, err := r.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			got.Body.Close()
			if want := map[bool]int{true: 200, false: 401}[c.ok]; got.StatusCode != want {
				t.Errorf("%s %s: %d, want %d", path, c.name, got.StatusCode, want)
			}
		}
	}
}
