package server

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/internal/await"
)

// turnsTemplate shows all that a conversation says.
const turnsTemplate = `{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content if m.content else '' }}` +
	`{% for c in m.tool_calls %}<tool_call>{{ c.function.name }} {{ c.function.arguments | tojson }}</tool_call>{% endfor %}<|end|>{% endfor %}` +
	`{% if tools %}{% for t in tools %}<tool>{{ t.function.name }}</tool>{% endfor %}{% endif %}{% if add_generation_prompt %}<|assistant|>{% endif %}`

// talking is a rig whose model thinks and calls tools. It says what asked gives for its prompt.
func talking(t *testing.T, script func(prompt string) reply, change func(*Config)) *rig {
	t.Helper()
	template, err := chat.ParseTemplate(turnsTemplate, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok := byteTokenizer(t)
	return newRig(t, func(r engineRequest) reply { return script(tok.Decode(r.Prompt, false)) }, func(c *Config) {
		g := c.Model.Generator
		c.Model.Template = textTemplate{template, tok}
		g.MaxContext = 4000
		g.Formats = completion.Formats{Reasoning: parse.FindReasoning("think"), Tools: parse.FindTools("hermes")}
		if change != nil {
			change(c)
		}
	})
}

// typed are the events of a stream of responses. Their numbers must rise by one.
func typed(t *testing.T, stream string) (documents []map[string]any) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		if strings.HasPrefix(event, ":") {
			continue
		}
		kind, data, ok := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		d := object(t, data)
		if !ok || at(d, "type") != kind || at(d, "sequence_number") != fmt.Sprint(len(documents)) {
			t.Fatalf("event %d is %q", len(documents), event)
		}
		documents = append(documents, d)
	}
	return documents
}

// ask is a request of /v1/responses with this input.
func ask(input, more string) string {
	return fmt.Sprintf(`{"model":"tiny","seed":1,"input":%s%s}`, input, more)
}

const weather = `,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}},{"type":"web_search"}]`

// A whole turn of an agent: thoughts and a call, its result by the id of the response, an answer. Streams say the same.
func TestResponsesTurn(t *testing.T) {
	prompts := make(chan string, 4)
	r := talking(t, func(prompt string) reply {
		prompts <- prompt
		if strings.Contains(prompt, "<|tool|>") {
			return reply{text: "It is 7."}
		}
		return reply{text: "<think>\nwhere?\n</think>\n\nOne moment.<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Köln\"}}\n</tool_call>"}
	}, nil)
	got := r.post("/v1/responses", ask(`"weather?"`, `,"instructions":"be brief"`+weather))
	d := object(t, got.body)
	if got.status != 200 || at(d, "status") != "completed" || len(list(d, "output")) != 3 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for i, want := range []string{"reasoning", "message", "function_call"} {
		if kind := at(d, "output", i, "type"); kind != want {
			t.Errorf("item %d is a %s, want a %s", i, kind, want)
		}
	}
	if thought, text, arguments := at(d, "output", 0, "content", 0, "text"), at(d, "output", 1, "content", 0, "text"), at(d, "output", 2, "arguments"); strings.TrimSpace(thought) != "where?" || strings.TrimSpace(text) != "One moment." ||
		arguments != `{"city": "Köln"}` || at(d, "usage", "output_tokens_details", "reasoning_tokens") == "0" {
		t.Errorf("got %s", got.body)
	}
	first := <-prompts
	documents := typed(t, r.post("/v1/responses", ask(`"weather?"`, `,"stream":true,"instructions":"be brief"`+weather)).body)
	<-prompts
	last := documents[len(documents)-1]
	for i := range 3 {
		for _, key := range []string{"type", "content", "arguments", "name", "summary"} {
			if stream, whole := at(last, "response", "output", i, key), at(d, "output", i, key); stream != whole {
				t.Errorf("the %s of item %d is %s in the stream, %s as a whole", key, i, stream, whole)
			}
		}
	}
	if at(last, "response", "usage") != at(d, "usage") {
		t.Errorf("usage is %s in the stream, %s as a whole", at(last, "response", "usage"), at(d, "usage"))
	}
	output := fmt.Sprintf(`[{"type":"function_call_output","call_id":%q,"output":"7"}]`, at(d, "output", 2, "call_id"))
	next := r.post("/v1/responses", ask(output, fmt.Sprintf(`,"previous_response_id":%q`, at(d, "id"))+weather))
	if text := at(object(t, next.body), "output", 0, "content", 0, "text"); next.status != 200 || text != "It is 7." {
		t.Errorf("%d %s", next.status, next.body)
	}
	thought := at(d, "output", 0, "content", 0, "text")
	text := at(d, "output", 1, "content", 0, "text")
	want := `<|user|>weather?<|end|><|assistant|><think>` + thought + `</think>` + text + `<tool_call>weather {"city": "Köln"}</tool_call><|end|><|tool|>7<|end|><tool>weather</tool><|assistant|>`
	if second := <-prompts; second != want || !strings.HasPrefix(first, "<|system|>be brief<|end|><|user|>weather?<|end|><tool>weather</tool>") {
		t.Errorf("the prompts were\n %q\n %q, want\n %q", first, second, want)
	}
}

// Every stream ends with an event that says so, whatever happens (T070).
func TestT070ResponsesEnd(t *testing.T) {
	cases := []struct {
		name, fields string
		reply        reply
		change       func(*Config)
		last, detail string // the type of the last event, and the code of its error or why it is incomplete
	}{
		{"stop", "", reply{text: "hi"}, nil, "response.completed", ""},
		{"length", `,"max_output_tokens":1`, reply{text: "hi"}, nil, "response.incomplete", "max_output_tokens"},
		{"empty", "", reply{}, nil, "response.completed", ""},
		{"engine", "", reply{text: "hi", err: errors.New("/secret")}, nil, "response.failed", "server_error"},
		{"engine at once", "", reply{err: errors.New("/secret")}, nil, "response.failed", "server_error"},
		{"deadline", "", reply{text: "slow answer", step: 30 * time.Millisecond}, func(c *Config) { c.Limits.RequestTime = 70 * time.Millisecond }, "response.failed", "server_error"},
	}
	for _, c := range cases {
		synctest.Test(t, func(t *testing.T) {
			r := talking(t, func(string) reply { return c.reply }, c.change)
			got := r.post("/v1/responses", ask(`"u"`, `,"stream":true`+c.fields))
			documents := typed(t, got.body)
			last := documents[len(documents)-1]
			detail := at(last, "response", "error", "code") + at(last, "response", "incomplete_details", "reason")
			if at(documents[0], "type") != "response.created" || at(documents[1], "type") != "response.in_progress" || at(last, "type") != c.last || strings.ReplaceAll(detail, "absent", "") != c.detail || strings.Contains(got.body, "secret") {
				t.Errorf("%s: got %s", c.name, got.body)
			}
			kept := r.do(http.MethodGet, "/v1/responses/"+at(last, "response", "id"), "")
			if at(object(t, kept.body)) != at(last, "response") {
				t.Errorf("%s: kept is %s, the stream ended with %v", c.name, kept.body, last)
			}
		})
	}
}

// Tools that only OpenAI has are left out and counted (T071).
func TestT071ForeignTools(t *testing.T) {
	r := talking(t, answers("hi"), nil)
	got := r.post("/v1/responses", ask(`"u"`, `,"tools":[{"type":"web_search"},{"type":"namespace","name":"n","tools":[]},{"type":"mcp","server_label":"s","server_url":"u"},{"type":"custom","name":"c"}]`))
	if d := object(t, got.body); got.status != 200 || at(d, "tools") != "[]" || r.metric("atlasrt_unknown_fields_total") != "4" {
		t.Errorf("%d %s, %s counted", got.status, got.body, r.metric("atlasrt_unknown_fields_total"))
	}
}

// What Codex sends: no ids, no status, encrypted thoughts, and a probe without an input (T072).
func TestT072Codex(t *testing.T) {
	prompts := make(chan string, 1)
	r := talking(t, func(prompt string) reply { prompts <- prompt; return reply{text: "ok"} }, nil)
	items := `[{"type":"message","role":"developer","content":[{"type":"input_text","text":"d"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"u"}]},
		{"type":"reasoning","summary":[],"encrypted_content":"gAAA"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},
		{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"},{"type":"function_call_output","call_id":"call_1","output":"files"}]`
	more := `,"instructions":"i","stream":true,"store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"medium","summary":"auto"},"tool_choice":"auto","parallel_tool_calls":true,"prompt_cache_key":"k",
		"tools":[{"type":"function","name":"shell","description":"","strict":false,"parameters":{"type":"object"}},{"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"lark","definition":"x"}},{"type":"web_search"}]`
	got := r.post("/v1/responses", ask(items, more))
	want := `<|system|>i` + "<|end|><|system|>d<|end|><|user|>u<|end|><|assistant|>a<tool_call>shell {\"command\": [\"ls\"]}</tool_call><|end|><|tool|>files<|end|><tool>shell</tool><|assistant|>"
	if documents := typed(t, got.body); at(documents[len(documents)-1], "type") != "response.completed" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if prompt := <-prompts; prompt != want {
		t.Errorf("the prompt is\n %q, want\n %q", prompt, want)
	}
	probe := r.post("/v1/responses", ask(`[]`, `,"max_output_tokens":1`))
	if d := object(t, probe.body); probe.status != 400 || at(d, "error", "param") != "input" {
		t.Errorf("probe: %d %s", probe.status, probe.body)
	}
	probe = r.post("/v1/responses", ask(`""`, `,"max_output_tokens":1`))
	if <-prompts; probe.status != 200 {
		t.Errorf("probe with a text: %d %s", probe.status, probe.body)
	}
}

// Responses belong to the key that made them; what is unknown, another key's, deleted, not stored or too old does not exist
// (T073, T115).
func TestT073T115Owners(t *testing.T) {
	keys := func(c *Config) { c.Keys = []string{"alice", "bob"} }
	r := talking(t, answers("secret"), keys)
	as := func(key, method, path, body string) response {
		return r.do(method, path, body, "Authorization", "Bearer "+key)
	}
	made := object(t, as("alice", http.MethodPost, "/v1/responses", ask(`"mine"`, "")).body)
	gone := object(t, as("alice", http.MethodPost, "/v1/responses", ask(`"mine"`, "")).body)
	unkept := object(t, as("alice", http.MethodPost, "/v1/responses", ask(`"mine"`, `,"store":false`)).body)
	if got := as("alice", http.MethodDelete, "/v1/responses/"+at(gone, "id"), ""); got.status != 200 || at(object(t, got.body), "deleted") != "true" {
		t.Errorf("delete: %d %s", got.status, got.body)
	}
	cases := []struct {
		key, id, item string
		status        int
	}{
		{"alice", at(made, "id"), at(made, "output", 0, "id"), 200},
		{"bob", at(made, "id"), at(made, "output", 0, "id"), 404},
		{"alice", at(gone, "id"), at(gone, "output", 0, "id"), 404},
		{"alice", at(unkept, "id"), at(unkept, "output", 0, "id"), 404},
		{"alice", "resp_unknown", "msg_unknown", 404},
	}
	for _, c := range cases {
		for _, request := range [][3]string{
			{http.MethodGet, "/v1/responses/" + c.id, ""}, {http.MethodGet, "/v1/responses/" + c.id + "/input_items", ""}, {http.MethodPost, "/v1/responses/" + c.id + "/cancel", ""},
			{http.MethodPost, "/v1/responses", ask(`"x"`, fmt.Sprintf(`,"previous_response_id":%q`, c.id))}, {http.MethodPost, "/v1/responses", ask(fmt.Sprintf(`[{"role":"user","content":"x"},{"type":"item_reference","id":%q}]`, c.item), "")},
			{http.MethodPost, "/v1/responses/input_tokens", ask(`"x"`, fmt.Sprintf(`,"previous_response_id":%q`, c.id))},
		} {
			got, want := as(c.key, request[0], request[1], request[2]), c.status
			if want == 200 && strings.HasSuffix(request[1], "/cancel") { // it is not of the background
				want = 400
			}
			if got.status != want || c.status == 404 && (at(object(t, got.body), "error", "type") != "invalid_request_error" || strings.Contains(got.body, "secret")) {
				t.Errorf("%s of %s: %s %s: %d %s, want %d", c.id, c.key, request[0], request[1], got.status, got.body, want)
			}
		}
	}
	if got := as("bob", http.MethodDelete, "/v1/responses/"+at(made, "id"), ""); got.status != 404 {
		t.Errorf("bob deletes: %d %s", got.status, got.body)
	}
	old := talking(t, answers("old"), func(c *Config) { c.Limits.StoredTime = 1 })
	made = object(t, old.post("/v1/responses", ask(`"u"`, "")).body)
	if got := old.post("/v1/responses", ask(`"v"`, fmt.Sprintf(`,"previous_response_id":%q`, at(made, "id")))); got.status != 404 || at(object(t, got.body), "error", "param") != "previous_response_id" {
		t.Errorf("an old one: %d %s", got.status, got.body)
	}
}

// Prompts around the context (T074).
func TestT074Responses(t *testing.T) {
	r := newRig(t, answering, nil)
	for _, c := range []struct {
		length, status int
		count          string
	}{{maxContext - 3, 200, ""}, {maxContext - 2, 400, "has 200 tokens"}, {maxContext - 1, 400, "has 201 tokens"}, {1 << 20, 400, "has at least"}} {
		got := r.post("/v1/responses", ask(fmt.Sprintf("%q", strings.Repeat("x", c.length)), ""))
		d := object(t, got.body)
		if got.status != c.status || c.status == 400 && (at(d, "error", "code") != "context_length_exceeded" || at(d, "error", "param") != "input" || !strings.Contains(got.body, c.count)) {
			t.Errorf("%d characters: %d %s", c.length, got.status, got.body)
		}
	}
}

// What is kept of a request, page by page, and how many tokens it has.
func TestInputItems(t *testing.T) {
	r := talking(t, answers("ok"), nil)
	body := ask(`[{"role":"user","content":"a"},{"role":"assistant","content":"b","id":"msg_mine"},{"role":"user","content":[{"type":"input_text","text":"c"}]}]`, "")
	d := object(t, r.post("/v1/responses", body).body)
	path := "/v1/responses/" + at(d, "id") + "/input_items"
	page := object(t, r.do(http.MethodGet, path+"?order=asc&limit=2", "").body)
	if at(page, "object") != "list" || at(page, "has_more") != "true" || at(page, "last_id") != "msg_mine" || at(page, "data", 0, "content", 0) != "map[text:a type:input_text]" || at(page, "data", 1, "content", 0, "type") != "output_text" {
		t.Errorf("got %v", page)
	}
	page = object(t, r.do(http.MethodGet, path+"?order=asc&after=msg_mine", "").body)
	if len(list(page, "data")) != 1 || at(page, "has_more") != "false" || at(page, "data", 0, "content", 0, "text") != "c" {
		t.Errorf("got %v", page)
	}
	if got := r.do(http.MethodGet, path+"?limit=0", ""); got.status != 400 || at(object(t, got.body), "error", "param") != "limit" {
		t.Errorf("limit 0: %d %s", got.status, got.body)
	}
	count := object(t, r.post("/v1/responses/input_tokens", body).body)
	if at(count, "object") != "response.input_tokens" || at(count, "input_tokens") != at(d, "usage", "input_tokens") {
		t.Errorf("counted %v, used %s", count, at(d, "usage"))
	}
	if got := r.do(http.MethodGet, "/v1/responses/"+at(d, "id")+"?stream=true", ""); got.status != 400 || at(object(t, got.body), "error", "param") != "stream" {
		t.Errorf("streamed again: %d %s", got.status, got.body)
	}
}

// answers is a script of one text.
func answers(text string) func(string) reply { return func(string) reply { return reply{text: text} } }

// A stream whose client goes away leaves a cancelled response.
func TestDiedStream(t *testing.T) {
	r := talking(t, func(string) reply { return reply{text: strings.Repeat("x", 100), hangs: true} }, nil)
	got, err := r.client.Post(r.url+"/v1/responses", "application/json", strings.NewReader(ask(`"u"`, `,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(got.Body)
	id := ""
	for range 10 { // lines
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && id == "" {
			id = at(object(t, data), "response", "id")
		}
	}
	if now := object(t, r.do(http.MethodGet, "/v1/responses/"+id, "").body); at(now, "status") != "in_progress" {
		t.Errorf("while it runs: %v", now)
	}
	got.Body.Close()
	if d := settled(t, r, id); at(d, "status") != "cancelled" || at(d, "output", 0, "status") != "incomplete" {
		t.Errorf("got %v", d)
	}
}

// settled waits until a response is over.
func settled(t *testing.T, r *rig, id string) map[string]any {
	t.Helper()
	var d map[string]any
	await.Until(t, id+" ends", func() bool {
		d = object(t, r.do(http.MethodGet, "/v1/responses/"+id, "").body)
		return at(d, "status") != "queued" && at(d, "status") != "in_progress"
	})
	return d
}
