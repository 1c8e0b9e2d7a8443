package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// body is a request with more fields.
func body(more string) string {
	return `{"model":"m","max_tokens":2000,"messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// said is a request with these messages.
func said(messages string) string { return `{"model":"m","max_tokens":9,"messages":` + messages + `}` }

// tool is a request with a tool of these fields beside its name.
func tool(fields string) string {
	return body(`,"tools":[{"name":"f"` + fields + `}]`)
}

// What is refused, and which words say why. Each is refused by a count of tokens as well, unless it is about max_tokens.
func TestRefusedRequests(t *testing.T) {
	cases := []struct {
		row, body string
		want      string // in the message
	}{
		{"T019", ``, "cannot be read"}, {"T019", `null`, "must be a JSON object"}, {"T019", `[]`, "must be a JSON object"}, {"T019", `"x"`, "must be a JSON object"},
		{"T019", body("")[:40], "cannot be read"}, {"T019", body("") + "x", "cannot be read"},
		{"T020", strings.Repeat("[", 100_000), "cannot be read"},
		{"T021", body(`,"model":"n"`), "cannot be read"},
		{"T022", body(",\"x\":\"\xff\""), "cannot be read"},
		{"T023", body(`,"temperature":1e999`), "temperature is 1e999"}, {"T023", body(`,"top_k":1.5`), "top_k must be an integer"}, {"T023", body(`,"top_k":"5"`), "top_k must be an integer"},
		{"T023", body(`,"top_k":9223372036854775808`), "top_k is 9223372036854775808"}, {"T023", body(`,"temperature":NaN`), "cannot be read"},
		{"T025", `{"max_tokens":1}`, "messages must be an array of at least one message"}, {"T025", said(`[]`), "messages must be an array of at least one"}, {"T025", said(`{}`), "messages must be an array"},
		{"T025", said(`[null]`), "messages[0] must be an object"}, {"T025", said(`[{"role":"tool","content":"x"}]`), "messages[0].role must be one of user, assistant, system"},
		{"T025", said(`[{"content":"x"}]`), "messages[0].role must be"}, {"T025", said(`[{"role":"user"}]`), "messages[0].content is required"}, {"T043", said(`[{"role":"assistant","content":null}]`), "messages[0].content is required"},
		{"T025", said(`[{"role":"user","content":7}]`), "messages[0].content must be a string or an array of blocks"}, {"T025", said(`[{"role":"user","content":["x"]}]`), "messages[0].content[0] must be an object"},
		{"T027", said(`[` + strings.Repeat(`{"role":"user","content":"x"},`, 10_000) + `{"role":"user","content":"x"}]`), "messages has 10001 entries, at most 10000"},
		{"T028", body(`,"temperature":-1`), "temperature is -1"}, {"T028", body(`,"temperature":1.01`), "temperature is 1.01, must be from 0 to 1"}, {"T028", body(`,"top_p":1.1`), "top_p is 1.1"},
		{"T033", body(`,"top_k":-1`), "top_k is -1"},
		{"T039", body(`,"stop_sequences":["1","2","3","4","5"]`), "stop_sequences has 5 entries, at most 4"}, {"T039", body(`,"stop_sequences":[""]`), "must not hold an empty string"},
		{"T039", body(`,"stop_sequences":["` + strings.Repeat("x", 257) + `"]`), "257 bytes"}, {"T039", body(`,"stop_sequences":"x"`), "must be an array"}, {"T039", body(`,"stop_sequences":[1]`), "must hold strings"},
		{"T040", body(`,"tools":[` + strings.Repeat(`{"name":"f%","input_schema":{}},`, 1) + `{}]`), "tools[0].name must have from 1 to 128"}, {"T040", tool(``), "tools[0].input_schema is required"},
		{"T040", tool(`,"input_schema":{}},{"name":"f","input_schema":{}`), "tools[1].name is \"f\", which another tool"}, {"T040", tool(`,"input_schema":[]`), "tools[0].input_schema must be an object"},
		{"T040", tool(`,"input_schema":{},"description":"` + strings.Repeat("x", 1<<20) + `"`), "bytes of description and schema"}, {"T040", body(`,"tools":[` + manyTools(513) + `]`), "more than 512 tools"},
		{"T040", tool(`,"input_schema":{"type":"array"}`), "must be of type object"}, {"T040", body(`,"tools":{}`), "tools must be an array"}, {"T040", body(`,"tools":[7]`), "tools[0] must be an object"},
		{"T041", body(`,"tool_choice":{"type":"tool","name":"g"}`), `tool_choice.name is "g", which none`}, {"T041", body(`,"tool_choice":{"type":"any"}`), "tool_choice.type is any, but there is no tool"},
		{"T041", body(`,"tools":[{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"any"}`), "tool_choice.type is any, but there is no tool"}, {"T041", tool(`,"input_schema":{}}],"tool_choice":{"type":"tool"},"x":[{`), "tool_choice.name is required"}, {"T041", body(`,"tool_choice":"auto"`), "tool_choice must be an object"},
		{"T041", body(`,"tool_choice":{}`), "tool_choice.type is required"}, {"T041", body(`,"tool_choice":{"type":"x"}`), "tool_choice.type must be one of"},
		{"", tool(`,"input_schema":{},"strict":"yes"`), "tools[0].strict must be true or false"},
		{"T042", said(`[{"role":"user","content":[{"type":"tool_result","content":"x"}]}]`), "messages[0].content[0].tool_use_id is required"},
		{"T042", said(`[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}]`), "messages[0] has calls of tools; a user message with their results must follow"},
		{"T042", said(`[{"role":"user","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}]`), `messages[0].content[0].type is "tool_use"; the blocks that this server reads here are of type text, tool_result, search_result`},
		{"", said(`[{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}]`), "messages[0].content[0].id is required"},
		{"", said(`[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":"{}"}]}]`), "messages[0].content[0].input must be an object"},
		{"T091", said(`[{"role":"user","content":[{"type":"image","source":{}}]}]`), `messages[0].content[0].type is "image"`}, {"", said(`[{"role":"user","content":[{"type":"document","source":{}}]}]`), `is "document"`},
		{"T091", said(`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"video"}]}]}]`), `messages[0].content[0].content[0].type is "video"`},
		{"", said(`[{"role":"user","content":[{"text":"x"}]}]`), "messages[0].content[0].type is required"}, {"", said(`[{"role":"user","content":[{"type":"text"}]}]`), "messages[0].content[0].text is required"},
		{"", body(`,"system":[{"type":"image"}]`), `system[0].type is "image"`}, {"", body(`,"system":7`), "system must be a string or an array of blocks"},
		{"", body(`,"thinking":{"type":"enabled"}`), "thinking.budget_tokens is required"}, {"", body(`,"thinking":{"type":"enabled","budget_tokens":1023}`), "thinking.budget_tokens is 1023"},
		{"", body(`,"thinking":{}`), "thinking.type is required"}, {"", body(`,"thinking":{"type":"x"}`), "thinking.type must be one of"}, {"", body(`,"thinking":{"type":"adaptive","display":"x"}`), "thinking.display must be"},
		{"", body(`,"output_config":{"effort":"huge"}`), "output_config.effort must be one of"}, {"T076", body(`,"output_config":{"format":{"type":"json_schema"}}`), "output_config.format.schema is required"}, {"T076", body(`,"output_format":{}`), "output_format.type is required"},
		{"T076", body(`,"output_format":{"type":"json_object","schema":{}}`), "output_format.type must be one of json_schema"}, {"T076", body(`,"output_config":{"format":{"type":"json_schema","schema":"{}"}}`), "output_config.format.schema must be an object"},
		{"T076", body(`,"output_config":{"format":{"type":"json_schema","schema":{}}},"output_format":{"type":"json_schema","schema":{}}`), "output_config.format and output_format are both given"}, {"T076", body(`,"output_format":"json"`), "output_format must be an object"},
		{"", `{"max_tokens":9,"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"{"}],"output_config":{"format":{"type":"json_schema","schema":{}}}}`, "output_config.format holds for whole answers"},
		{"", body(`,"mcp_servers":[{}]`), "mcp_servers is not supported"}, {"", body(`,"container":"x"`), "container is not supported"},
		{"", body(`,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`), "context_management is not supported"}, {"", body(`,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":1}}]}`), "context_management is not"},
		{"", body(`,"stop_token_ids":[5]`), "stop_token_ids is a field of /v1/chat/completions"}, {"", body(`,"min_tokens":5`), "min_tokens is a field of"}, {"", body(`,"ignore_eos":true`), "ignore_eos is a field of"},
		{"", body(`,"skip_special_tokens":false`), "skip_special_tokens is a field of"}, {"", body(`,"stopping_strings":["x"]`), "stopping_strings is called stop_sequences here"}, {"", body(`,"max_new_tokens":5`), "max_new_tokens is called max_tokens here"},
		{"", body(`,"instructions":"x"`), "instructions is a field of /v1/responses"}, {"", body(`,"prompt":"x"`), "prompt is a field of /v1/completions"},
		{"", body(`,"rep_pen":1.2`), "rep_pen is called repetition_penalty here"}, {"", body(`,"sampler_seed":1`), "sampler_seed is called seed here"}, {"", body(`,"repeat_penalty":0`), "repeat_penalty is 0"},
		{"", body(`,"parallel_tool_calls":false`), "parallel_tool_calls is not supported"}, {"", body(`,"repetition_context_size":"all"`), "repetition_context_size is not supported"}, {"", body(`,"cache_salt":""`), "cache_salt must have"},
		{"", body(`,"stream":"yes"`), "stream must be true or false"},
	}
	for _, c := range cases {
		t.Run(strings.TrimSpace(c.row+" "+c.want), func(t *testing.T) {
			for what, decode := range map[string]func([]byte, api.Limits) (*api.Request, error){"messages": Messages{}.Decode, "count": Count{}.Decode} {
				_, err := decode([]byte(c.body), api.DefaultLimits())
				if e, ok := errors.AsType[*api.Error](err); !ok || !strings.Contains(e.Error(), c.want) {
					t.Errorf("%s %.200s: got %v, want %q", what, c.body, err, c.want)
				}
			}
		})
	}
	answers := []struct{ row, body, want string }{
		{"T032", `{"messages":[{"role":"user","content":"x"}]}`, "max_tokens is required"}, {"T032", `{"max_tokens":-1}`, "max_tokens is -1"}, {"T032", `{"max_tokens":null}`, "max_tokens is required"},
		{"", body(`,"thinking":{"type":"enabled","budget_tokens":2000}`), "thinking.budget_tokens is 2000, must be less than max_tokens, which is 2000"},
	}
	for _, c := range answers {
		if _, err := (Messages{}).Decode([]byte(c.body), api.DefaultLimits()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: got %v, want %q", c.row, c.body, err, c.want)
		}
	}
}

func manyTools(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"f%d","input_schema":{}}`, i)
	}
	return strings.Join(list, ",")
}

// asked is what a request asks for beside its conversation, for comparing.
func asked(r *api.Request) string {
	o, t := &r.Options, &r.Chat.Thinking
	var parts []string
	add := func(format string, values ...any) { parts = append(parts, fmt.Sprintf(format, values...)) }
	add("max %d", o.MaxTokens)
	if o.Score {
		add("score")
	}
	if p := o.Sampling; p.Temperature != nil {
		add("temperature %g", *p.Temperature)
	}
	if p := o.Sampling; p.TopP != nil {
		add("top_p %g", *p.TopP)
	}
	if p := o.Sampling; p.TopK != nil {
		add("top_k %d", *p.TopK)
	}
	if p := o.Sampling; p.Seed != nil && p.MinP != nil && p.PresencePenalty != nil && p.FrequencyPenalty != nil && p.RepetitionPenalty != nil {
		add("seed %d, min_p %g, penalties %g %g %g", *p.Seed, *p.MinP, *p.PresencePenalty, *p.FrequencyPenalty, *p.RepetitionPenalty)
	}
	if o.CacheSalt != "" {
		add("salt %s", o.CacheSalt)
	}
	if o.Stop != nil {
		add("stop %q", o.Stop)
	}
	if o.OneCall {
		add("one call")
	}
	if o.Calls.Single != o.OneCall {
		add("a grammar with single calls %v", o.Calls.Single)
	}
	if o.Calls.Required {
		add("a call")
	}
	if o.Calls.Name != "" {
		add("a call of %s", o.Calls.Name)
	}
	if s := o.Form; s != nil {
		add("%s %s %s loose %v", s.Kind, s.Name, s.Text, s.Loose)
	}
	if t.On != nil {
		add("thinking %v", *t.On)
	}
	if t.Budget != nil {
		add("budget %d", *t.Budget)
	}
	if t.Effort != "" {
		add("effort %s", t.Effort)
	}
	if r.HideReasoning {
		add("hidden")
	}
	for _, tool := range r.Chat.Tools {
		kind := "tool"
		if tool.Strict {
			kind = "strict tool"
		}
		add("%s %s %q %s", kind, tool.Name, tool.Description, jsontree.Append(nil, tool.Parameters))
	}
	if r.Unknown > 0 {
		add("unknown %d", r.Unknown)
	}
	return strings.Join(parts, ", ")
}

// What fields that are taken ask for (T021, T023, T024, T028, T032, T040, T044).
func TestRequests(t *testing.T) {
	cases := []struct{ more, want string }{
		{``, "max 2000"},
		{`,"seed":-1,"min_p":0.5,"presence_penalty":-2,"frequency_penalty":1,"repetition_penalty":1.5,"n":1,"stop":[]`, "max 2000, seed -1, min_p 0.5, penalties -2 1 1.5"},
		{`,"seed":1,"min_p":0,"presence_penalty":0,"frequency_penalty":0,"repeat_penalty":1.5,"cache_salt":"s"`, "max 2000, seed 1, min_p 0, penalties 0 0 1.5, salt s"},
		{`,"parallel_tool_calls":true,"skip_special_tokens":true,"min_tokens":0,"rep_pen":1.1,"repetition_penalty":1.1`, "max 2000"},
		{`,"Model":"n","MAX_TOKENS":1,"foo":{"a":1}`, "max 2000, unknown 3"},
		{`,"temperature":null,"top_p":null,"top_k":null,"stop_sequences":null,"tools":null,"tool_choice":null,"thinking":null,"output_config":null,"system":null,"stream":null,"container":null,"mcp_servers":null`, "max 2000"},
		{`,"temperature":-0.0,"top_p":1,"top_k":0,"stop_sequences":["a","👋"]`, `max 2000, temperature -0, top_p 1, top_k 0, stop ["a" "👋"]`},
		{`,"metadata":{"user_id":"u"},"service_tier":"auto","betas":["x-2026"],"cache_control":{"type":"ephemeral"},"speed":"standard","mcp_servers":[],"inference_geo":"eu"`, "max 2000"},
		{`,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}`, "max 2000"}, {`,"context_management":{}`, "max 2000"},
		{`,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"all"}}]}`, "max 2000"},
		{`,"thinking":{"type":"enabled","budget_tokens":1999}`, "max 2000, thinking true, budget 1999"}, {`,"thinking":{"type":"disabled"}`, "max 2000, thinking false"},
		{`,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"xhigh","format":null}`, "max 2000, thinking true, effort xhigh, hidden"},
		{`,"thinking":{"type":"adaptive","display":"summarized"}`, "max 2000, thinking true"},
		{`,"tools":[]`, "max 2000"},
		{`,"tools":[{"name":"f","description":"d","input_schema":{"properties":{"a":{"type":"string"}}},"cache_control":{"type":"ephemeral"},"strict":false,"eager_input_streaming":true}]`,
			`max 2000, tool f "d" {"type": "object", "properties": {"a": {"type": "string"}}}`},
		{`,"tools":[{"type":"custom","name":"f","input_schema":{"properties":{},"type":"object"}},{"type":null,"name":"g","input_schema":{"type":null}}]`, `max 2000, tool f "" {"properties": {}, "type": "object"}, tool g "" {"type": "object"}`},
		{`,"tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"},{"type":"computer_20250124"}]`, "max 2000, unknown 4"},
		{`,"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"none"}`, "max 2000"},
		{`,"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, `max 2000, one call, tool f "" {"type": "object"}`},
		{`,"tools":[{"name":"f","input_schema":{},"strict":true}],"tool_choice":{"type":"any"}`, `max 2000, a call, strict tool f "" {"type": "object"}`},
		{`,"tools":[{"name":"f","input_schema":{}},{"name":"g","input_schema":{}}],"tool_choice":{"type":"any","disable_parallel_tool_use":true}`, `max 2000, one call, a call, tool f "" {"type": "object"}, tool g "" {"type": "object"}`},
		{`,"tools":[{"name":"f","input_schema":{}},{"name":"g","input_schema":{}}],"tool_choice":{"type":"tool","name":"g"}`, `max 2000, a call of g, tool f "" {"type": "object"}, tool g "" {"type": "object"}`},
		{`,"output_config":{"format":{"type":"json_schema","schema":{"type":"array"}}}`, `max 2000, schema output_config.format.schema {"type": "array"} loose false`},
		{`,"output_format":{"type":"json_schema","schema":{"const":1.0}}`, `max 2000, schema output_format.schema {"const": 1.0} loose false`},
	}
	for _, c := range cases {
		r, err := Messages{}.Decode([]byte(body(c.more)), api.DefaultLimits())
		if err != nil || asked(r) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.more, err, asked(r), c.want)
			continue
		}
		counted, err := (Count{}).Decode([]byte(body(c.more)), api.DefaultLimits())
		if err != nil || asked(counted) != c.want {
			t.Errorf("%s as a count: %v\n got %s\nwant %s", c.more, err, asked(counted), c.want)
		}
	}
	for given, want := range map[string]string{"0": "max 1, score", `0,"thinking":{"type":"enabled","budget_tokens":1024}`: "max 1, score, thinking true, budget 1024", "1": "max 1", "1e12": "max 1000000000000"} {
		r, err := Messages{}.Decode([]byte(`{"max_tokens":`+given+`,"messages":[{"role":"user","content":"hi"}]}`), api.DefaultLimits())
		if err != nil || asked(r) != want {
			t.Errorf("T032 max_tokens %s: %v, got %s, want %s", given, err, asked(r), want)
		}
	}
}

// No body makes the decoders panic, and what they accept keeps its promises.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "null", "[]", body(""), body(`,"system":[{"type":"text","text":"x-anthropic-billing-header: a"}],"stop_sequences":["a"],"thinking":{"type":"enabled","budget_tokens":1024}`),
		said(`[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"1","name":"f","input":{"a":1}}]},{"role":"system","content":"s"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":""}],"is_error":true},{"type":"text","text":"u"}]}]`),
		tool(`,"input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"},"x":[{`), tool(`,"input_schema":{},"strict":true}],"tool_choice":{"type":"tool","name":"f"},"output_format":{"type":"json_schema","schema":{}},"x":[{`), said(`[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"assistant","content":[]}]`),
	} {
		f.Add([]byte(seed))
	}
	limits := api.DefaultLimits()
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Messages{}.Decode(body, limits)
		if err != nil {
			e, ok := errors.AsType[*api.Error](err)
			if !ok {
				t.Fatalf("%q: %v", body, err)
			}
			if status, _, text := (Messages{}).Problem(e); status != 400 || !json.Valid(text) {
				t.Errorf("%q: %d %s", body, status, text)
			}
			return
		}
		if o := r.Options; len(r.Chat.Messages) == 0 || len(r.Chat.Messages) != len(r.Chat.Names) || o.Choices != 1 || o.MaxTokens < 1 || len(o.Stop) > limits.Stops || r.Chat.Continue == r.Chat.AddGenerationPrompt {
			t.Errorf("%q: accepted as %+v", body, r)
		}
		for i := range r.Chat.Messages {
			for _, call := range r.Chat.Messages[i].ToolCalls {
				if !json.Valid([]byte(call.Arguments)) {
					t.Errorf("%q: a call has the arguments %q", body, call.Arguments)
				}
			}
		}
		if counted, err := (Count{}).Decode(body, limits); err != nil || conversationOf(counted.Chat) != conversationOf(r.Chat) {
			t.Errorf("%q: counted as %+v, %v, answered as %+v", body, counted, err, r)
		}
	})
}

// conversationOf writes a conversation for comparing.
func conversationOf(r *chat.Request) string {
	var b strings.Builder
	for i := range r.Messages {
		m := &r.Messages[i]
		fmt.Fprintf(&b, "%s:%s", m.Role, m.Content.Text)
		if m.Content.Null {
			b.WriteString("null")
		}
		if m.Reasoning != "" {
			fmt.Fprintf(&b, " (%s)", m.Reasoning)
		}
		for _, call := range m.ToolCalls {
			fmt.Fprintf(&b, " %s=%s%s", call.ID, call.Name, call.Arguments)
		}
		if m.ToolCallID != "" {
			fmt.Fprintf(&b, " for %s", m.ToolCallID)
		}
		b.WriteString(" | ")
	}
	if r.Continue {
		return b.String() + "goes on"
	}
	return strings.TrimSuffix(b.String(), " | ")
}
