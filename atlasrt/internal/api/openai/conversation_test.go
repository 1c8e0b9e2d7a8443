package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// Conversations that a template renders as they are pass through decoder and layer and give the same bytes.
func TestGoldenConversations(t *testing.T) {
	read := func(name string) []byte {
		data, err := os.ReadFile(testdata.Shared(t, "templates/"+name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	document, err := jsontree.Decode(read("cases.json"), jsontree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string]struct{ OK *string }
	if err := json.Unmarshal(read("expected.json"), &want); err != nil {
		t.Fatal(err)
	}
	special := []chat.SpecialToken{{Variable: "bos_token", Text: "<s>"}, {Variable: "eos_token", Text: "</s>"}, {Variable: "pad_token", Text: "<pad>"}, {Variable: "unk_token", Text: "<unk>"}}
	now := time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC)
	total := 0
	for id, results := range want {
		template, err := chat.ParseTemplate(string(read(id+".jinja")), special)
		if err != nil {
			t.Fatal(err)
		}
		for conversation, expected := range results {
			can := template.Capabilities()
			text := can.ArgumentsAsText
			switch {
			case expected.OK == nil, conversation == "parts": // parts become one text
				continue
			case conversation == "toolcall_str" && !text: // arguments as a string become an object
				continue
			case strings.HasPrefix(conversation, "toolcall") && !can.ToolCalls, conversation == "toolcall_last" && !can.CallText, conversation == "toolcall_par" && !can.ParallelCalls:
				continue // the template drops them; the layer does not
			case conversation == "reason" && can.Thoughts == chat.ThoughtParts: // thoughts go where the template looks for them
				continue
			case conversation == "nogen" && id == "mistralai-Mistral-Nemo-Instruct-2407": // it drops the system's text there
				continue
			case text && strings.HasPrefix(conversation, "toolcall") && conversation != "toolcall_str": // and an object a string
				continue
			}
			v, _ := document.(*jsontree.Object).Get(conversation)
			p, err := template.Prompt(t.Context(), goldenRequest(t, v.(*jsontree.Object)), now)
			if _, refused := errors.AsType[*chat.NoTools](err); refused && !strings.Contains(*expected.OK, "No arguments") {
				continue // no description of a tool is in it
			}
			total++
			if err != nil || p.Text != *expected.OK {
				t.Errorf("%s × %s: error %v\n got %q\nwant %q", id, conversation, err, p.Text, *expected.OK)
			}
		}
	}
	if total < 500 {
		t.Errorf("only %d conversations were compared", total)
	}
}

// goldenRequest decodes the messages of a conversation and takes the rest as it is.
func goldenRequest(t *testing.T, v *jsontree.Object) *chat.Request {
	t.Helper()
	r := &chat.Request{Variables: jsontree.NewObject()}
	for key, value := range v.All() {
		switch key {
		case "messages":
			f, err := readObject(jsontree.Append(nil, v), chatRanges)
			if err != nil {
				t.Fatal(err)
			}
			if r.Messages = f.messages(api.DefaultLimits()); f.Err() != nil {
				t.Fatal(f.Err())
			}
		case "tools":
			if list, ok := value.(jsontree.Array); ok {
				for _, item := range list {
					r.Tools = append(r.Tools, chat.Tool{Definition: item.(*jsontree.Object)})
				}
			}
		case "add_generation_prompt":
			r.AddGenerationPrompt = bool(value.(jsontree.Bool))
		case "documents", "bos_token", "eos_token", "pad_token", "unk_token":
		default:
			r.Variables.Set(key, value)
		}
	}
	return r
}

// What messages become; parts, refusals, calls of both forms.
func TestMessages(t *testing.T) {
	cases := []struct{ message, want string }{
		{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_text","text":"b"}]}`, `{user {a\nb [] false}  []   <nil>}`},
		{`{"role":"user","content":[]}`, `{user { [] false}  []   <nil>}`},
		{`{"role":"assistant","content":null,"refusal":"I won't."}`, `{assistant {I won't. [] false}  []   <nil>}`},
		{`{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, `{assistant {no [] false}  []   <nil>}`},
		{`{"role":"assistant","reasoning_content":"hm"}`, `{assistant { [] true}  []  hm <nil>}`},
		{`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`, `{assistant { [] true}  [{1 f {"a":1}}]   <nil>}`},
		{`{"role":"assistant","content":"","tool_calls":[{"id":"1","function":{"name":"f","arguments":{"a":1.0}}}]}`, `{assistant { [] false}  [{1 f {"a": 1.0}}]   <nil>}`},
		{`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `{assistant { [] true}  [{call_f f {}}]   <nil>}`},
		{`{"role":"function","name":"f","content":"7"}`, `{function {7 [] false} f [] call_f  <nil>}`},
		{`{"role":"tool","tool_call_id":"1","content":"7","name":"f"}`, `{tool {7 [] false} f [] 1  <nil>}`},
		{`{"role":"ipython","content":"7"}`, `{ipython {7 [] false}  []   <nil>}`},
		{`{"role":"user","content":"x","name":null,"tool_calls":null}`, `{user {x [] false}  []   <nil>}`},
	}
	for _, c := range cases {
		r := decode(Chat{}, `{"messages":[`+c.message+`]}`)
		if r.err != nil {
			t.Errorf("%s: %v", c.message, r.err)
			continue
		}
		if got := strings.ReplaceAll(fmt.Sprint(r.Chat.Messages[0]), "\n", `\n`); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.message, got, c.want)
		}
	}
	r := decode(Chat{}, `{"messages":[{"role":"user","content":"x","cache":{"b":1,"a":2.0}}]}`)
	if r.err != nil || string(jsontree.Append(nil, r.Chat.Messages[0].Extra)) != `{"cache": {"b": 1, "a": 2.0}}` {
		t.Errorf("got %+v, %v", r.Request, r.err)
	}
}
