package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// decode decodes a request that refers to items of one stored answer.
func decode(body string, stored ...string) (*Request, error) {
	r, err := Decode([]byte(body), api.DefaultLimits())
	if err != nil {
		return nil, err
	}
	items := map[string]store.Item{}
	for _, text := range stored {
		items[textOf(kept(store.Item{JSON: []byte(text)}), "id")] = store.Item{JSON: []byte(text)}
	}
	find := func(id string) (store.Item, bool) { item, ok := items[id]; return item, ok }
	return r, r.Converse(nil, find, api.DefaultLimits())
}

// show writes messages in short.
func show(messages []chat.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s", m.Role)
		if m.ToolCallID != "" {
			fmt.Fprintf(&b, " to %s", m.ToolCallID)
		}
		if m.Reasoning != "" {
			fmt.Fprintf(&b, " thinks %q", m.Reasoning)
		}
		if !m.Content.Null {
			fmt.Fprintf(&b, " says %q", m.Content.Text)
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " calls %s %s %s", c.ID, c.Name, c.Arguments)
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// What items become, also as Codex sends them back: without ids and status (T072).
func TestT072Items(t *testing.T) {
	cases := []struct{ input, want, places string }{
		{`"hi"`, `user says "hi"`, "input"},
		{`""`, `user says ""`, "input"},
		{`[{"role":"user","content":"a"},{"type":"message","role":"developer","content":[{"type":"input_text","text":"b"},{"type":"input_text","text":"c"}]}]`,
			`user says "a"; developer says "b\nc"`, "input[0] input[1]"},
		{`[{"type":"message","role":"user","content":[{"type":"input_text","text":"u"}]},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":null},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","name":"f","arguments":"{}","call_id":"c1"},{"type":"function_call","name":"g","arguments":"{\"x\":1}","call_id":"c2"},
			{"type":"function_call_output","call_id":"c1","output":"1"},{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"2"}]},{"role":"user","content":"v"}]`,
			`user says "u"; assistant thinks "hm" says "a" calls c1 f {} calls c2 g {"x":1}; tool to c1 says "1"; tool to c2 says "2"; user says "v"`, "input[0] input[1] input[5] input[6] input[7]"},
		{`[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}]},{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"no"}]}]`,
			`assistant thinks "s" says "a\nno"`, "input[0]"},
		{`[{"type":"reasoning","summary":[],"encrypted_content":"gAAA"},{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]`, `assistant says "a\n\nb"`, "input[1]"},
		{`[{"role":"assistant","content":"a"},{"type":"custom_tool_call","call_id":"c","name":"patch","input":"*** \"x\""},{"type":"custom_tool_call_output","call_id":"c","output":"ok"},{"type":"reasoning","content":[{"type":"reasoning_text","text":"t"}]},{"role":"user","content":"u"}]`,
			`assistant says "a" calls c patch {"input": "*** \"x\""}; tool to c says "ok"; assistant thinks "t"; user says "u"`, "input[0] input[2] input[3] input[4]"},
		{`[{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"x"},{"type":"input_text","text":"a"}]}]`, `tool to c says "[input_image left out: this model reads text only]\na"`, "input[0]"},
		{`[{"type":"web_search_call","id":"ws_1","status":"completed"},{"role":"user","content":"u"}]`, `user says "u"`, "input[1]"},
		{`[{"type":"item_reference","id":"msg_k"},{"id":"fc_k"},{"role":"user","content":"u","type":null}]`, `assistant says "kept" calls c f {}; user says "u"`, "input[0] input[2]"},
	}
	for _, c := range cases {
		r, err := decode(`{"input":`+c.input+`}`, `{"id":"msg_k","type":"message","role":"assistant","content":"kept"}`, `{"id":"fc_k","type":"function_call","call_id":"c","name":"f","arguments":"{}"}`)
		if err != nil {
			t.Errorf("%s: %v", c.input, err)
			continue
		}
		if got, places := show(r.Chat.Messages), strings.Join(r.Chat.Names, " "); got != c.want || places != c.places {
			t.Errorf("%s:\n got %s from %s\nwant %s from %s", c.input, got, places, c.want, c.places)
		}
		again, err := replay(r)
		if err != nil || show(again) != show(r.Chat.Messages) {
			t.Errorf("%s: kept, it is %s, error %v, want %s", c.input, show(again), err, c.want)
		}
	}
}

// replay is the conversation that goes on from what was kept of a request.
func replay(r *Request) ([]chat.Message, error) {
	items := r.Release("0123")
	for _, item := range items {
		if textOf(kept(item), "id") != item.ID || item.ID == "" || textOf(kept(item), "type") == "" {
			return nil, fmt.Errorf("%s is kept under %q", item.JSON, item.ID)
		}
	}
	next, err := Decode([]byte(`{"previous_response_id":"resp_1"}`), api.DefaultLimits())
	if err == nil {
		err = next.Converse(items, nil, api.DefaultLimits())
	}
	return next.Chat.Messages, err
}

// Bodies that are refused, and the field that is blamed (T019–T023, T025, T028, T032, T034, T040, T041, T044).
func TestRefusals(t *testing.T) {
	const valid, unsupported = "invalid_value", "unsupported_parameter"
	hi := func(more string) string { return `{"input":"hi",` + more + `}` }
	in := func(item string) string { return `{"input":[{"role":"user","content":"u"},` + item + `]}` }
	tool := `{"type":"function","name":"f"}`
	cases := []struct{ body, param, code string }{
		{``, "", ""}, {`null`, "", ""}, {`[]`, "", ""}, {`{"input":"a"`, "", ""}, {`{"input":"a","input":"b"}`, "", ""}, {strings.Repeat("[", 100_000), "", ""},
		{`{}`, "input", valid}, {`{"input":null}`, "input", valid}, {`{"input":[]}`, "input", valid}, {`{"input":{}}`, "input", valid}, {`{"input":[1]}`, "input[0]", valid}, {`{"input":[null]}`, "input[0]", valid},
		{in(`{}`), "input[1].type", valid}, {in(`{"type":""}`), "input[1].type", valid}, {in(`{"type":"computer_call"}`), "input[1].type", unsupported}, {in(`{"type":"local_shell_call","call_id":"x"}`), "input[1].type", unsupported},
		{in(`{"role":"tool","content":"x"}`), "input[1].role", valid}, {in(`{"type":"message","content":"x"}`), "input[1].role", valid}, {in(`{"role":"user"}`), "input[1].content", valid}, {in(`{"role":"user","content":1}`), "input[1].content", valid},
		{in(`{"role":"user","content":[1]}`), "input[1].content[0]", valid}, {in(`{"role":"user","content":[{"type":"input_image","image_url":"x"}]}`), "input[1].content[0].type", unsupported},
		{in(`{"role":"user","content":[{"type":"input_file","file_id":"x"}]}`), "input[1].content[0].type", unsupported}, {in(`{"role":"user","content":[{"type":"input_audio"}]}`), "input[1].content[0].type", unsupported},
		{in(`{"role":"user","content":[{"type":"input_text"}]}`), "input[1].content[0].text", valid}, {in(`{"role":"user","content":[{"text":"x"}]}`), "input[1].content[0].type", valid},
		{in(`{"type":"function_call","name":"f","arguments":"{}"}`), "input[1].call_id", valid}, {in(`{"type":"function_call","call_id":"c","arguments":"{}"}`), "input[1].name", valid},
		{in(`{"type":"function_call","call_id":"c","name":"f","arguments":{}}`), "input[1].arguments", valid}, {in(`{"type":"function_call_output","output":"x"}`), "input[1].call_id", valid},
		{hi(`"tools":[` + tool + `],"tool_choice":{"type":"allowed_tools","tools":[]}`), "tool_choice.tools", valid},
		{in(`{"type":"function_call_output","call_id":"c"}`), "input[1].output", valid}, {in(`{"type":"function_call_output","call_id":"c","output":[{"type":"new"}]}`), "input[1].output[0].type", unsupported},
		{in(`{"type":"item_reference","id":"msg_none"}`), "input[1].id", "not_found"}, {in(`{"type":"item_reference"}`), "input[1].id", valid},
		{`{"input":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, 10_001), ",") + `]}`, "input", valid},

		{hi(`"model":1`), "model", valid}, {hi(`"instructions":[]`), "instructions", valid}, {hi(`"temperature":2.01`), "temperature", valid}, {hi(`"temperature":-1`), "temperature", valid}, {hi(`"top_p":1.1`), "top_p", valid},
		{hi(`"max_output_tokens":0`), "max_output_tokens", valid}, {hi(`"max_output_tokens":"5"`), "max_output_tokens", valid}, {hi(`"top_logprobs":21`), "top_logprobs", valid}, {hi(`"include":"x"`), "include", valid}, {hi(`"include":[1]`), "include[0]", valid},
		{hi(`"stream":1`), "stream", valid}, {hi(`"stream_options":{}`), "stream_options", valid}, {hi(`"stream":true,"stream_options":{"include_obfuscation":true}`), "stream_options.include_obfuscation", unsupported},
		{hi(`"store":"yes"`), "store", valid}, {hi(`"background":true,"store":false`), "background", valid}, {hi(`"background":true,"stream":true`), "stream", unsupported},
		{hi(`"conversation":"conv_1"`), "conversation", unsupported}, {hi(`"prompt":{"id":"p"}`), "prompt", unsupported}, {hi(`"truncation":"auto"`), "truncation", unsupported}, {hi(`"truncation":1`), "truncation", unsupported},
		{hi(`"context_management":[{"type":"compaction"}]`), "context_management", unsupported}, {hi(`"messages":[{}]`), "messages", unsupported}, {hi(`"max_tokens":1`), "max_tokens", unsupported}, {hi(`"stop":"x"`), "stop", unsupported}, {hi(`"n":2`), "n", unsupported},
		{hi(`"stop_token_ids":[5]`), "stop_token_ids", unsupported}, {hi(`"min_tokens":5`), "min_tokens", unsupported}, {hi(`"ignore_eos":true`), "ignore_eos", unsupported}, {hi(`"skip_special_tokens":false`), "skip_special_tokens", unsupported},
		{hi(`"stop_sequences":["x"]`), "stop_sequences", unsupported}, {hi(`"max_new_tokens":5`), "max_new_tokens", unsupported}, {hi(`"n_predict":5`), "n_predict", unsupported}, {hi(`"rep_pen":1.2`), "rep_pen", unsupported},
		{hi(`"system":"x"`), "system", unsupported}, {hi(`"output_config":{"format":{}}`), "output_config", unsupported},
		{hi(`"continue_final_message":true`), "continue_final_message", unsupported}, {hi(`"best_of":2`), "best_of", unsupported}, {hi(`"echo":true`), "echo", unsupported}, {hi(`"cache_salt":""`), "cache_salt", valid},
		{hi(`"metadata":{"k":1}`), "metadata", valid}, {hi(`"metadata":[]`), "metadata", valid}, {hi(`"user":1`), "user", valid},
		{hi(`"reasoning":{"effort":"huge"}`), "reasoning.effort", valid}, {hi(`"reasoning":1`), "reasoning", valid}, {hi(`"reasoning":{"max_tokens":-1}`), "reasoning.max_tokens", valid},
		{hi(`"text":{"format":{"type":"json_schema","name":"n"}}`), "text.format.schema", valid}, {hi(`"text":{"format":{"type":"json_schema","name":"n","schema":true}}`), "text.format.schema", valid}, {hi(`"text":{"format":{"type":"json_schema","schema":{}}}`), "text.format.name", valid},
		{hi(`"text":{"format":{"type":"json_schema","name":"a b","schema":{}}}`), "text.format.name", valid}, {hi(`"text":{"format":{"type":"json_schema","name":"n","schema":{},"strict":1}}`), "text.format.strict", valid}, {hi(`"text":{"format":{"type":"json_schema","name":"n","schema":{},"description":1}}`), "text.format.description", valid}, {hi(`"text":{"format":"json"}`), "text.format", valid},
		{hi(`"text":{"format":{"type":"x"}}`), "text.format.type", valid}, {hi(`"text":{"verbosity":"x"}`), "text.verbosity", valid},
		{hi(`"tools":{}`), "tools", valid}, {hi(`"tools":[1]`), "tools[0]", valid}, {hi(`"tools":[{}]`), "tools[0].type", valid}, {hi(`"tools":[{"type":"function"}]`), "tools[0].name", valid}, {hi(`"tools":[{"type":"function","name":"a b"}]`), "tools[0].name", valid},
		{hi(`"tools":[` + tool + `,` + tool + `]`), "tools[1].name", valid}, {hi(`"tools":[{"type":"function","name":"f","strict":1}]`), "tools[0].strict", valid}, {hi(`"tools":[{"type":"function","name":"f","parameters":"x"}]`), "tools[0].parameters", valid},
		{hi(`"tool_choice":"required"`), "tool_choice", valid}, {hi(`"tools":[{"type":"web_search"}],"tool_choice":"required"`), "tool_choice", valid}, {hi(`"tools":[` + tool + `],"tool_choice":{"type":"function"}`), "tool_choice.name", valid}, {hi(`"tool_choice":{"type":"web_search_preview"}`), "tool_choice.type", unsupported},
		{hi(`"tools":[` + tool + `],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}]}`), "tool_choice", valid}, {hi(`"tools":[` + tool + `],"tool_choice":{"type":"allowed_tools","mode":"must","tools":[` + tool + `]}`), "tool_choice.mode", valid},
		{hi(`"tool_choice":"f"`), "tool_choice", valid}, {hi(`"tool_choice":{}`), "tool_choice.type", valid}, {hi(`"tool_choice":{"type":"function","name":"f"}`), "tool_choice.name", valid}, {hi(`"tool_choice":1`), "tool_choice", valid},
		{hi(`"tools":[` + tool + `],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}`), "tool_choice.tools[0].name", valid},
	}
	for _, c := range cases {
		_, err := decode(c.body)
		e, ok := errors.AsType[*api.Error](err)
		if !ok {
			t.Errorf("%.200s: got %v, want %s of %q", c.body, err, c.code, c.param)
			continue
		}
		_, _, body := Errors{}.Problem(e)
		var got struct {
			Error struct{ Message, Param, Code string }
		}
		if err := json.Unmarshal(body, &got); err != nil || got.Error.Param != c.param || got.Error.Code != c.code || got.Error.Message == "" {
			t.Errorf("%.200s: got %s, want %s of %q", c.body, body, c.code, c.param)
		}
	}
}

// Tools that the model may call, and those that are left out (T071).
func TestT071Tools(t *testing.T) {
	const f, g, h = `{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false}`, `{"type":"function","name":"g","strict":null}`, `{"type":"function","name":"h","strict":true}`
	cases := []struct {
		fields, names string
		skipped       int
		calls         parse.Choice
	}{
		{`"tools":[` + f + `,{"type":"web_search"},{"type":"namespace","name":"n","tools":[` + f + `]},{"type":"mcp","server_label":"s"},{"type":"image_generation"},{"type":"custom","name":"c","format":{"type":"grammar"}},{"type":"local_shell"},{"type":"new"},` + g + `]`, "f g", 7, parse.Choice{}},
		{`"tools":[` + f + `],"parallel_tool_calls":false,"tool_choice":"auto"`, "f", 0, parse.Choice{Single: true}},
		{`"tools":[` + f + `],"tool_choice":"none","parallel_tool_calls":true`, "", 0, parse.Choice{}},
		{`"tools":[` + f + `,` + g + `],"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"g"},{"type":"web_search"}]}`, "g", 0, parse.Choice{}},
		{`"tools":[` + f + `,` + h + `],"tool_choice":"required"`, "f h!", 0, parse.Choice{Required: true}},
		{`"tools":[` + f + `,` + h + `],"tool_choice":{"type":"function","name":"h"}`, "f h!", 0, parse.Choice{Name: "h"}},
		{`"tools":[` + f + `,` + h + `],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"h"}]},"parallel_tool_calls":false`, "h!", 0, parse.Choice{Required: true, Single: true}},
		{`"tools":null`, "", 0, parse.Choice{}},
	}
	for _, c := range cases {
		r, err := decode(`{"input":"hi",` + c.fields + `}`)
		if err != nil {
			t.Errorf("%s: %v", c.fields, err)
			continue
		}
		var names []string
		for _, tool := range r.Chat.Tools {
			if tool.Strict {
				tool.Name += "!"
			}
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != c.names || r.Skipped != c.skipped || r.Options.Calls != c.calls || r.Options.OneCall != c.calls.Single {
			t.Errorf("%s: got %q, %d left out, calls %+v, one call %v, want %+v", c.fields, got, r.Skipped, r.Options.Calls, r.Options.OneCall, c)
		}
	}
}

// Forms of the text: what answers must be, and what they repeat of it (T076).
func TestT076Format(t *testing.T) {
	const schema = `{"type": "object", "properties": {"b": {"const": 1.50}, "a": {}}}`
	cases := []struct {
		format string
		form   *grammar.Spec
		echo   string
	}{
		{`{"type":"text"}`, nil, `{"type": "text"}`}, {`{}`, nil, `{"type": "text"}`}, {`null`, nil, `{"type": "text"}`},
		{`{"type":"json_object"}`, &grammar.Spec{Kind: grammar.Schema, Name: "text.format", Text: `{"type":"object"}`}, `{"type": "json_object"}`},
		{`{"type":"json_schema","name":"n-1","schema":` + schema + `}`, &grammar.Spec{Kind: grammar.Schema, Name: "text.format.schema", Text: schema, Loose: true}, `{"type": "json_schema", "name": "n-1", "strict": false, "schema": ` + schema + `}`},
		{`{"type":"json_schema","name":"n","description":"d","strict":true,"schema":` + schema + `}`, &grammar.Spec{Kind: grammar.Schema, Name: "text.format.schema", Text: schema}, `{"type": "json_schema", "name": "n", "description": "d", "strict": true, "schema": ` + schema + `}`},
	}
	for _, c := range cases {
		r, err := decode(`{"input":"hi","text":{"format":` + c.format + `}}`)
		if err != nil {
			t.Errorf("%s: %v", c.format, err)
			continue
		}
		if !reflect.DeepEqual(r.Options.Form, c.form) {
			t.Errorf("%s: the form is %+v, want %+v", c.format, r.Options.Form, c.form)
		}
		if want := `"text": {"format": ` + c.echo + `, "verbosity": "medium"}`; !strings.Contains(string(r.Echo), want) {
			t.Errorf("%s: the answer repeats %s, want %s", c.format, r.Echo, want)
		}
	}
}

// What else of a request matters, and what is accepted and changes nothing (T024).
func TestOptions(t *testing.T) {
	r, err := decode(`{"model":"m","input":"hi","instructions":"sys","temperature":0,"top_p":0.5,"top_k":-1,"seed":7,"max_output_tokens":9,"include":["reasoning.encrypted_content","message.output_text.logprobs"],"stream":true,
		"stream_options":{"include_obfuscation":false},"store":false,"reasoning":{"effort":"none","summary":"auto","max_tokens":64},"text":{"format":{"type":"text"},"verbosity":"low"},"truncation":"disabled","service_tier":"auto","user":"u",
		"metadata":{"a":"b"},"prompt_cache_key":"k","safety_identifier":"s","max_tool_calls":3,"background":false,"n":1,"stop":[],"logprobs":false,"messages":null,"cache_salt":"x","min_tokens":0,"skip_special_tokens":true,"echo":false,"foo":1,"bar":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	o, thinking := r.Options, r.Chat.Thinking
	got := fmt.Sprintln(r.Model, r.Stream, r.Store, o.MaxTokens, o.LogProbs, *o.Sampling.Temperature, *o.Sampling.TopP, *o.Sampling.TopK, *o.Sampling.Seed, *thinking.On, thinking.Effort, *thinking.Budget, o.CacheSalt, r.Unknown, r.Skipped, show(r.Chat.Messages))
	if want := `m true false 9 0 0 0.5 0 7 false none 64 x 2 0 system says "sys"; user says "hi"` + "\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var echo map[string]any
	if err := json.Unmarshal([]byte("{"+string(r.Echo)+"}"), &echo); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"instructions": "sys", "temperature": "0", "max_output_tokens": "9", "metadata": "map[a:b]", "reasoning": "map[effort:none summary:auto]", "text": "map[format:map[type:text] verbosity:low]",
		"store": "false", "user": "u", "max_tool_calls": "3", "tools": "[]", "tool_choice": "auto", "parallel_tool_calls": "true"} {
		if got := fmt.Sprint(echo[key]); got != want {
			t.Errorf("the answer repeats %s as %s, want %s", key, got, want)
		}
	}
	plain, err := decode(`{"input":"hi"}`)
	if err != nil || !plain.Store || plain.Options.LogProbs != -1 || plain.Options.MaxTokens != 0 {
		t.Errorf("%+v, %v", plain, err)
	}
}

// Pages of a list.
func TestPages(t *testing.T) {
	var items []store.Item
	for _, id := range strings.Fields("a b c d") {
		items = append(items, store.Item{ID: id, JSON: []byte(`{"id":"` + id + `"}`)})
	}
	cases := []struct {
		page Page
		want string // ids, and whether there are more; or the field that is blamed
	}{
		{Page{}, "d c b a false"}, {Page{Order: "asc"}, "a b c d false"}, {Page{Order: "asc", Limit: "2"}, "a b true"}, {Page{Order: "asc", Limit: "2", After: "b"}, "c d false"},
		{Page{Limit: "1", After: "d"}, "c true"}, {Page{After: "a"}, "false"}, {Page{Order: "up"}, "order"}, {Page{Limit: "0"}, "limit"}, {Page{Limit: "101"}, "limit"}, {Page{Limit: "x"}, "limit"}, {Page{After: "z"}, "after"},
	}
	for _, c := range cases {
		body, err := PageBody(items, c.page)
		var list struct {
			Data    []struct{ ID string }
			FirstID *string `json:"first_id"`
			LastID  *string `json:"last_id"`
			HasMore bool    `json:"has_more"`
		}
		got := ""
		if e, ok := errors.AsType[*api.Error](err); ok {
			got = e.Field
		} else if err := json.Unmarshal(body, &list); err != nil {
			t.Fatalf("%s: %v", body, err)
		} else {
			for _, d := range list.Data {
				got += d.ID + " "
			}
			got += fmt.Sprint(list.HasMore)
			if n := len(list.Data); n > 0 && (*list.FirstID != list.Data[0].ID || *list.LastID != list.Data[n-1].ID) || n == 0 && list.FirstID != nil {
				t.Errorf("%+v: the ends of %s are others", c.page, body)
			}
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.page, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "null", `{"input":"x"}`, `{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"c","name":"f","arguments":"{"},{"type":"function_call_output","call_id":"c","output":"x"},{"id":"r"}]}`,
		`{"input":[],"instructions":"i","tools":[{"type":"function","name":"f","parameters":{}},{"type":"mcp"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]},"include":["a"],"top_logprobs":3}`,
		`{"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":"\u0000"},{"type":"item_reference","id":"k"}],"metadata":{"a":"b"},"text":{"format":{"type":"text"}},"reasoning":{"effort":"low"},"stream":true,"temperature":1e-400}`,
		`{"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"},"strict":true}},"tools":[{"type":"function","name":"f","strict":true}],"tool_choice":"required"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decode(string(body), `{"id":"k","type":"message","role":"user","content":"kept"}`)
		if err != nil {
			e, ok := errors.AsType[*api.Error](err)
			if !ok {
				t.Fatalf("%q: %v", body, err)
			}
			if status, _, text := (Errors{}).Problem(e); status != 400 && status != 404 || !json.Valid(text) {
				t.Errorf("%q: %d %s", body, status, text)
			}
			return
		}
		a := NewAnswer(&r.Request, head)
		a.Add(ended(chat.FinishStop, textEvent("x")))
		if !json.Valid(a.Body()) {
			t.Errorf("%q is answered with %s", body, a.Body())
		}
		messages := show(r.Chat.Messages)
		if r.instructions == "" { // they are not kept
			if again, err := replay(r); err != nil || show(again) != messages {
				t.Errorf("%q: kept, it is %s, error %v, want %s", body, show(again), err, messages)
			}
		}
	})
}
