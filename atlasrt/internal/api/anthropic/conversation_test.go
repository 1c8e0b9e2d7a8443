package anthropic

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// What conversations become.
func TestConversations(t *testing.T) {
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"a":1}}]}`
	const calls = `{"role":"assistant","content":[{"type":"text","text":"see"},{"type":"tool_use","id":"1","name":"f","input":{}},{"type":"tool_use","id":"2","name":"g"}]}`
	result := func(id, rest string) string { return `{"type":"tool_result","tool_use_id":"` + id + `"` + rest + `}` }
	user := func(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }
	cases := []struct{ name, system, messages, want string }{
		{"text", ``, `{"role":"user","content":"u"}`, "user:u"},
		{"blocks", ``, user(`{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":""},{"type":"text","text":"b","citations":null}`), "user:a\nb"},
		{"nothing", ``, user(``), "user:"}, {"empty text", ``, `{"role":"user","content":""}`, "user:"}, {"empty block", ``, user(`{"type":"text","text":""}`), "user:"},
		{"system", `"s"`, `{"role":"user","content":"u"}`, "system:s | user:u"},
		{"system blocks", `[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]`, `{"role":"user","content":"u"}`, "system:a\nb | user:u"},
		{"no system", `[]`, `{"role":"user","content":"u"}`, "user:u"}, {"empty system", `""`, `{"role":"user","content":"u"}`, "user:u"},
		{"billing", `[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cch=12ab;"},{"type":"text","text":"b"}]`, `{"role":"user","content":"u"}`, "system:b | user:u"},
		{"billing in a text", `"x-anthropic-billing-header: cch=1;\nb"`, `{"role":"user","content":"u"}`, "system:b | user:u"},
		{"billing later", `[{"type":"text","text":"a"},{"type":"text","text":"x-anthropic-billing-header: 1"}]`, `{"role":"user","content":"u"}`, "system:a\nx-anthropic-billing-header: 1 | user:u"},
		{"T022 odd text", ``, `{"role":"user","content":"\ud800\u0000"}`, "user:\ufffd\x00"},

		{"T067 users in a row", ``, `{"role":"user","content":"a"},{"role":"user","content":"b"}`, "user:a | user:b"},
		{"T067 prefill", ``, `{"role":"user","content":"u"},{"role":"assistant","content":"a "}`, "user:u | assistant:a  | goes on"},
		{"T067 prefill in a row", ``, `{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"}]}`, "user:u | assistant:a\nb | goes on"},
		{"T067 late system", ``, `{"role":"user","content":"u"},{"role":"system","content":[{"type":"text","text":"s"}]},{"role":"assistant","content":"a"},{"role":"user","content":"v"}`, "user:u | system:s | assistant:a | user:v"},
		{"T067 system at the end", ``, `{"role":"user","content":"u"},{"role":"system","content":"s"}`, "user:u | system:s"},
		{"T067 ctx and msg", ``, `{"role":"ctx","content":"c"},{"role":"msg","content":"m"},{"role":"user","content":"u"}`, "user:c | user:m | user:u"},
		{"T067 system before a result", ``, call + `,{"role":"system","content":"s"},` + user(result("1", `,"content":"r"`)), `assistant:null 1=f{"a": 1} | tool:r for 1 | system:s`},
		{"T067 system before a result and a text", ``, call + `,{"role":"system","content":"s"},` + user(result("1", `,"content":"r"`)+`,{"type":"text","text":"t"}`), `assistant:null 1=f{"a": 1} | tool:r for 1 | system:s | user:t`},
		{"T067 system between results", ``, calls + `,` + user(result("2", ``)) + `,{"role":"system","content":"s"},` + user(result("1", ``)), `assistant:see 1=f{} 2=g{} | tool: for 2 | tool: for 1 | system:s`},
		{"T067 system behind calls that nobody answers", ``, call + `,{"role":"system","content":"s"},{"role":"user","content":"u"}`, `assistant:null 1=f{"a": 1} | system:s | user:u`},
		{"T067 system behind calls at the end", ``, call + `,{"role":"system","content":"s"}`, `assistant:null 1=f{"a": 1} | system:s`},

		{"results before texts", ``, calls + `,` + user(`{"type":"text","text":"t"},`+result("1", `,"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]`)+`,`+result("2", `,"content":[]`)), `assistant:see 1=f{} 2=g{} | tool:x` + "\n" + `y for 1 | tool: for 2 | user:t`},
		{"failed results", ``, calls + `,` + user(result("1", `,"content":"no","is_error":true`)+`,`+result("2", `,"is_error":true`)), "assistant:see 1=f{} 2=g{} | tool:Error: no for 1 | tool:Error: for 2"},
		{"result with empty text", ``, call + `,` + user(result("1", `,"content":"","is_error":false,"cache_control":{"type":"ephemeral"}`)+`,{"type":"text","text":""}`), `assistant:null 1=f{"a": 1} | tool: for 1`},
		{"T042 result of no call", ``, user(result("9", `,"content":"r"`)), "tool:r for 9"},
		{"references", ``, user(result("9", `,"content":[{"type":"tool_reference","tool_name":"f"},{"type":"search_result","title":"T","source":"S","content":[{"type":"text","text":"x"}]}]`)), "tool:f\nT\nS\nx for 9"},
		{"search result", ``, user(`{"type":"search_result","title":"T","source":"S","content":[{"type":"text","text":"x"}],"citations":{"enabled":true}}`), "user:T\nS\nx"},

		{"T061 thoughts with any signature", ``, `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"someone else's"},{"type":"redacted_thinking","data":"zz"},{"type":"text","text":"a"}]},{"role":"user","content":"u"}`, "assistant:a (t) | user:u"},
		{"T061 thoughts without one", ``, `{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":""},{"type":"tool_use","id":"1","name":"f","input":{}}]},` + user(result("1", ``)), "assistant:null 1=f{} | tool: for 1"},
		{"T061 only what nobody can read", ``, `{"role":"assistant","content":[{"type":"redacted_thinking","data":"zz"}]},{"role":"user","content":"u"}`, "assistant: | user:u"},
	}
	for _, c := range cases {
		more := ""
		if c.system != "" {
			more = `"system":` + c.system + `,`
		}
		t.Run(c.name, func(t *testing.T) {
			r, err := Messages{}.Decode([]byte(`{`+more+`"max_tokens":9,"messages":[`+c.messages+`]}`), api.DefaultLimits())
			if err != nil {
				t.Error(err)
			} else if got := conversationOf(r.Chat); got != c.want {
				t.Errorf("%s\n got %q\nwant %q", c.messages, got, c.want)
			}
		})
	}
}

// Errors of the template name messages as the client counts them.
func TestNamesOfMessages(t *testing.T) {
	r, err := Messages{}.Decode([]byte(`{"max_tokens":9,"system":"s","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f"},{"type":"tool_use","id":"2","name":"f"}]},{"role":"system","content":"x"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"},{"type":"tool_result","tool_use_id":"2"},{"type":"text","text":"t"}]},{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]}`), api.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := "system messages[0] messages[2] messages[2] messages[1] messages[2] messages[3]"
	if got := strings.Join(r.Chat.Names, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
