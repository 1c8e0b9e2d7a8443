package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// refusedAs decodes a chat request and says which field is blamed, and how.
func refusedAs(t *testing.T, text, field string, kind api.Kind) {
	t.Helper()
	err := decode(Chat{}, text).err
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Field != field || e.Kind != kind || e.Message == "" || len(e.Message) > 600 {
		t.Errorf("%.200s:\n got %+v\nwant blame of kind %d for %q", text, err, kind, field)
	}
}

const twoTools = `,"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}},"strict":false}},{"type":"function","function":{"name":"g"}}]`

func TestT040Tools(t *testing.T) {
	function := func(fields string) string { return body(`,"tools":[{"type":"function","function":{` + fields + `}}]`) }
	cases := []struct {
		text, field string
		kind        api.Kind
	}{
		{body(`,"tools":7`), "tools", api.KindInvalid}, {body(`,"tools":[7]`), "tools[0]", api.KindInvalid},
		{body(`,"tools":7,"tool_choice":"none"`), "tools", api.KindInvalid},
		{body(`,"tools":[{"type":"function"}]`), "tools[0].function", api.KindInvalid}, {body(`,"tools":[{"type":"function","name":"f"}]`), "tools[0].function", api.KindInvalid},
		{body(`,"tools":[{"type":"custom","custom":{"name":"f"}}]`), "tools[0].type", api.KindUnsupported}, {body(`,"tools":[{"type":"web_search"}]`), "tools[0].type", api.KindUnsupported},
		{function(``), "tools[0].function.name", api.KindInvalid}, {function(`"name":""`), "tools[0].function.name", api.KindInvalid}, {function(`"name":"a b"`), "tools[0].function.name", api.KindInvalid},
		{function(`"name":"` + strings.Repeat("n", 129) + `"`), "tools[0].function.name", api.KindInvalid}, {function(`"name":7`), "tools[0].function.name", api.KindInvalid},
		{function(`"name":"f","description":7`), "tools[0].function.description", api.KindInvalid}, {function(`"name":"f","parameters":"x"`), "tools[0].function.parameters", api.KindInvalid},
		{function(`"name":"f","strict":1`), "tools[0].function.strict", api.KindInvalid},
		{function(`"name":"f","description":"` + strings.Repeat("d", 1<<20) + `"`), "tools[0].function.name", api.KindInvalid},
		{body(`,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`), "tools[1].function.name", api.KindInvalid},
		{body(`,"functions":[{}]`), "functions[0].name", api.KindInvalid}, {body(`,"functions":[7]`), "functions[0]", api.KindInvalid}, {body(`,"functions":{}`), "functions", api.KindInvalid},
		{body(twoTools + `,"functions":[{"name":"h"}]`), "functions", api.KindInvalid},
	}
	for _, c := range cases {
		refusedAs(t, c.text, c.field, c.kind)
	}
	tools := make([]string, 10_000)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"type":"function","function":{"name":"f%d"}}`, i)
	}
	refusedAs(t, body(`,"tools":[`+strings.Join(tools, ",")+`]`), "tools[512].function.name", api.KindInvalid)
}

func TestT041ToolChoice(t *testing.T) {
	const f, none = `{"type":"function","function":{"name":"f"}}`, `{"type":"function","function":{"name":"h"}}`
	refusals := []struct {
		text, field string
		kind        api.Kind
	}{
		{`,"tool_choice":"required"`, "tool_choice", api.KindInvalid},
		{`,"tool_choice":` + f, "tool_choice.function.name", api.KindInvalid}, {twoTools + `,"tool_choice":` + none, "tool_choice.function.name", api.KindInvalid},
		{twoTools + `,"tool_choice":{"type":"function"}`, "tool_choice.function", api.KindInvalid},
		{twoTools + `,"tool_choice":{"type":"custom","custom":{"name":"f"}}`, "tool_choice", api.KindInvalid},
		{twoTools + `,"tool_choice":"f"`, "tool_choice", api.KindInvalid}, {twoTools + `,"tool_choice":7`, "tool_choice", api.KindInvalid}, {twoTools + `,"tool_choice":{}`, "tool_choice", api.KindInvalid},
		{twoTools + `,"tool_choice":{"type":"allowed_tools"}`, "tool_choice.allowed_tools", api.KindInvalid},
		{twoTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`, "tool_choice.allowed_tools.tools", api.KindInvalid},
		{twoTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[` + none + `]}}`, "tool_choice.allowed_tools.tools[0].function.name", api.KindInvalid},
		{twoTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"all","tools":[` + f + `]}}`, "tool_choice.allowed_tools.mode", api.KindInvalid},
		{`,"functions":[{"name":"f"}],"function_call":{"name":"h"}`, "function_call.name", api.KindInvalid},
	}
	for _, c := range refusals {
		refusedAs(t, body(c.text), c.field, c.kind)
	}
	cases := []struct {
		text, tools string
		one, older  bool
	}{
		{twoTools + `,"tool_choice":"required"`, "[f g] required", false, false}, {twoTools + `,"tool_choice":{"type":"required"},"parallel_tool_calls":false`, "[f g] required", true, false},
		{twoTools + `,"tool_choice":` + f, "[f g] f", false, false}, {twoTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[` + f + `]}}`, "[f] required", false, false},
		{`,"functions":[{"name":"f"}],"function_call":{"name":"f"}`, "[f] f", true, true}, {`,"tools":[{"type":"function","function":{"name":"f","strict":true}}]`, "[f strictly]", false, false},
		{``, "[]", false, false}, {`,"tools":[],"tool_choice":"none","parallel_tool_calls":true`, "[]", false, false}, {`,"tool_choice":"auto"`, "[]", false, false},
		{twoTools, "[f g]", false, false}, {twoTools + `,"tool_choice":"auto","parallel_tool_calls":true`, "[f g]", false, false}, {twoTools + `,"tool_choice":{"type":"auto"}`, "[f g]", false, false},
		{twoTools + `,"tool_choice":"none"`, "[]", false, false}, {twoTools + `,"parallel_tool_calls":false`, "[f g]", true, false},
		{twoTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"g"}}]}}`, "[g]", false, false},
		{twoTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","name":"f"}]}}`, "[f]", false, false},
		{`,"functions":[{"name":"f"},{"name":"g"}]`, "[f g]", true, true}, {`,"functions":[{"name":"f"}],"function_call":"none"`, "[]", true, true}, {`,"functions":[],"function_call":"auto"`, "[]", false, false},
	}
	for _, c := range cases {
		r := decode(Chat{}, body(c.text))
		if r.err != nil {
			t.Errorf("%s: %v", c.text, r.err)
			continue
		}
		names := []string{}
		for _, tool := range r.Chat.Tools {
			if names = append(names, tool.Name); tool.Strict {
				names = append(names, "strictly")
			}
		}
		got := fmt.Sprint(names)
		if r.Options.Calls.Required {
			got += " required"
		}
		if name := r.Options.Calls.Name; name != "" {
			got += " " + name
		}
		if got != c.tools || r.Options.Calls.Single != c.one || r.Options.OneCall != c.one || r.FunctionCall != c.older || r.Unknown != 0 {
			t.Errorf("%s:\n got %v, one call %v, older %v, %d unknown\nwant %+v", c.text, got, r.Options.OneCall, r.FunctionCall, r.Unknown, c)
		}
	}
}

// Templates see a tool as its client wrote it, and a function as the tool that it is.
func TestToolDefinitions(t *testing.T) {
	cases := []struct{ text, want string }{
		{`,"tools":[{"type":"function","x":[1.0],"function":{"parameters":{"b":1,"a":2},"name":"f"}}]`, `{"type": "function", "x": [1.0], "function": {"parameters": {"b": 1, "a": 2}, "name": "f"}}`},
		{`,"functions":[{"parameters":{"b":1},"name":"f"}]`, `{"type": "function", "function": {"parameters": {"b": 1}, "name": "f"}}`},
	}
	for _, c := range cases {
		r := decode(Chat{}, body(c.text))
		if r.err != nil || len(r.Chat.Tools) != 1 {
			t.Errorf("%s: %v", c.text, r.err)
		} else if got := string(jsontree.Append(nil, r.Chat.Tools[0].Definition)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// A result needs the id of its call. Whether that call is there is not asked: agents cut the beginnings of long conversations
// off. The template shows the result where it stands, or package chat refuses it.
func TestT042ToolResults(t *testing.T) {
	conversation := func(messages string) string { return `{"messages":[` + messages + `]}` }
	const user, call, result = `{"role":"user","content":"u"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"1","content":"r"}`
	refusedAs(t, conversation(user+`,{"role":"tool","content":"r"}`), "messages[1].tool_call_id", api.KindInvalid)
	refusedAs(t, conversation(user+`,{"role":"tool","tool_call_id":"","content":"r"}`), "messages[1].tool_call_id", api.KindInvalid)
	for _, messages := range []string{user + "," + call + "," + result, user + "," + result, result + "," + user, user + "," + result + "," + call + "," + user} {
		if r := decode(Chat{}, conversation(messages)); r.err != nil {
			t.Errorf("%s: %v", messages, r.err)
		}
	}
}

// Null is the content of an assistant that calls or thinks, and of nobody else.
func TestT043NullContent(t *testing.T) {
	for _, message := range []string{`{"role":"assistant","content":null}`, `{"role":"assistant"}`, `{"role":"assistant","content":null,"tool_calls":[]}`, `{"role":"user","content":null}`} {
		refusedAs(t, `{"messages":[`+message+`]}`, "messages[0].content", api.KindInvalid)
	}
	for _, message := range []string{`{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f"}}]}`, `{"role":"assistant","content":null,"reasoning":"hm"}`} {
		if r := decode(Chat{}, `{"messages":[`+message+`]}`); r.err != nil || !r.Chat.Messages[0].Content.Null {
			t.Errorf("%s: %+v, %v", message, r.Request, r.err)
		}
	}
}

// Media are refused by the path of their part, but what a tool gave is left out; nothing is fetched or opened.
func TestT091Media(t *testing.T) {
	parts := []string{
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`,
		`{"type":"image_url","image_url":{"url":"http://127.0.0.1:1/x.png"}}`, // T101
		`{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}`,       // T107
		`{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}`,
		`{"type":"file","file":{"file_data":"AA=="}}`,
	}
	for _, part := range parts {
		refusedAs(t, `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},`+part+`]}]}`, "messages[0].content[1].type", api.KindUnsupported)
		r := decode(Chat{}, `{"messages":[{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"a"},`+part+`]}]}`)
		if r.err != nil || !strings.HasSuffix(r.Chat.Messages[0].Content.Text, " left out: this model reads text only]") {
			t.Errorf("%s, given by a tool: %+v, %v", part, r.Request, r.err)
		}
	}
}
