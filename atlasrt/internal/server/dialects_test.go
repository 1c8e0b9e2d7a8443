package server

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api/anthropic"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/responses"
)

// spoken is one of the dialects that requests come in.
type spoken struct {
	name  string
	path  string   // that answers its requests
	usual string   // a request, up to further fields and its end
	paths []string // all that take its requests
}

// Dialects, as each case spells them.
const (
	inChat = iota
	inText
	inResponses
	inMessages
)

// dialects are all, with every path that takes their requests.
func dialects(t testing.TB) []spoken {
	t.Helper()
	all := []spoken{
		{"chat", "/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}]`, nil},
		{"text", "/v1/completions", `{"model":"tiny","prompt":"hi"`, nil},
		{"responses", "/v1/responses", `{"model":"tiny","input":[{"role":"user","content":"hi"}]`, nil},
		{"messages", "/v1/messages", `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":100`, nil},
	}
	for _, r := range table(&Config{}) {
		at := -1
		switch r.errors.(type) {
		case nil:
			continue
		case openai.Chat:
			at = inChat
		case openai.Text:
			at = inText
		case responses.Errors:
			at = inResponses
		case anthropic.Messages, anthropic.Count:
			at = inMessages
		default:
			t.Fatalf("%s has a dialect that is not in this test", r.path)
		}
		all[at].paths = append(all[at].paths, r.path)
	}
	return all
}

// answersAt tells whether a path gives answers: others show prompts or count them.
func answersAt(path string) bool {
	return slices.ContainsFunc([]string{"/completions", "/responses", "/messages"}, func(end string) bool { return strings.HasSuffix(path, end) })
}

// says is what a dialect sends: further fields where it begins with a comma, else a whole body; empty: it cannot say that. Field is
// the one that is blamed.
type says struct{ body, field string }

// everywhere says the same in all dialects.
func everywhere(body, field string) [4]says {
	s := says{body, field}
	return [4]says{s, s, s, s}
}

// talks says the same in all dialects with conversations.
func talks(body, field string) [4]says {
	s := everywhere(body, field)
	s[inText] = says{}
	return s
}

// chats has one list of turns for each dialect with conversations; the path of what is blamed goes on from the list.
func chats(chat, responses, messages, path string) [4]says {
	of := func(field, turns, more string) says {
		return says{`{"model":"tiny","` + field + `":` + turns + more + `}`, field + path}
	}
	return [4]says{of("messages", chat, ""), {}, of("input", responses, ""), of("messages", messages, `,"max_tokens":100`)}
}

// turns are the same in all dialects.
func turns(list, path string) [4]says { return chats(list, list, list, path) }

// tools has the fields of a function, as chats write them, and a further field of the request.
func tools(name, description, more, field string) [4]says {
	chat := fmt.Sprintf(`,"tools":[{"type":"function","function":{"name":%s,"description":%s%s}}]`, name, description, more)
	flat := fmt.Sprintf(`,"tools":[{"type":"function","name":%s,"description":%s%s}]`, name, description, more)
	own := fmt.Sprintf(`,"tools":[{"name":%s,"description":%s,"input_schema":{}%s}]`, name, description, more)
	return [4]says{{chat, "tools[0].function." + field}, {}, {flat, "tools[0]." + field}, {own, "tools[0]." + field}}
}

// chosen has a tool f and a choice.
func chosen(chat, chatField, responses, responsesField, messages, messagesField string) [4]says {
	return [4]says{
		{`,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":` + chat, chatField}, {},
		{`,"tools":[{"type":"function","name":"f"}],"tool_choice":` + responses, responsesField},
		{`,"tools":[{"name":"f","input_schema":{}}],"tool_choice":` + messages, messagesField},
	}
}

// part has a part of a content that is no text.
func part(chat, responses, messages string) [4]says {
	turn := func(part string) string {
		return `[{"role":"user","content":[` + part + `]}]`
	}
	return chats(turn(chat), turn(responses), turn(messages), "[0].content[0].type")
}

// image is a part with an image at a place.
func image(place string) [4]says {
	base64 := `{"type":"base64","media_type":"image/png","data":"` + strings.TrimPrefix(place, "data:image/png;base64,") + `"}`
	return part(`{"type":"image_url","image_url":{"url":"`+place+`"}}`, `{"type":"input_image","image_url":"`+place+`"}`, `{"type":"image","source":`+base64+`}`)
}

// repeat is a list of items.
func repeat(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// manyFunctions are the entries of a list of tools, in one form.
func manyFunctions(n int, form string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(form, fmt.Sprintf("f%d", i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// leak is what no error shows: paths of files, addresses, stacks.
var leak = regexp.MustCompile(`0x[0-9a-f]|goroutine|\.go\b|panic|runtime|/(etc|dev|proc|tmp|home|root|usr|var|work)\b|shm|BUG`)

// refusedBy says what is wrong with an error's status, shape, or blame; nothing where all is well.
func refusedBy(t testing.TB, dialect int, got response, status int, field string) string {
	t.Helper()
	d := object(t, got.body)
	e, _ := d["error"].(map[string]any)
	message, kind := at(e, "message"), at(e, "type")
	switch {
	case got.status != status:
		return fmt.Sprintf("status %d, want %d", got.status, status)
	case leak.MatchString(got.body) || len(got.body) > 1000:
		return "it shows what it must not, or is long"
	case message == "" || kind == "" || kind == "absent":
		return "it says nothing"
	case dialect == inMessages:
		if len(d) != 3 || len(e) != 2 || at(d, "type") != "error" || at(d, "request_id") != got.header.Get("request-id") {
			return "it is not of the Anthropic API"
		}
		if !strings.Contains(message, field) {
			return "it does not blame " + field
		}
	default:
		_, coded := e["code"].(string)
		if len(d) != 1 || len(e) != 4 || !coded && e["code"] != nil {
			return "it is not of the OpenAI API"
		}
		if want := map[bool]string{true: "<nil>", false: field}[field == ""]; at(e, "param") != want {
			return "it blames " + at(e, "param") + ", not " + want
		}
	}
	return ""
}

// Every dialect gives the same verdict on the same request, on each of its paths, and what is refused never reaches the engine.
func TestT202Dialects(t *testing.T) {
	for _, c := range slices.Concat(verdicts(), imageVerdicts()) {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int64
			r := talking(t, func(string) reply { calls.Add(1); return reply{text: "ok"} }, func(config *Config) { config.Limits.BodyBytes = 4 << 20 })
			for i, d := range dialects(t) {
				body := c.says[i].body
				switch {
				case body == "":
					continue
				case body[0] == ',':
					body = d.usual + body + "}"
				case body == "-":
					body = ""
				}
				for _, path := range d.paths {
					before := calls.Load()
					got := r.do(http.MethodPost, path, body, "Content-Type", "application/json")
					problem := ""
					if c.status != 200 {
						problem = refusedBy(t, i, got, c.status, c.says[i].field)
					} else if got.status != 200 {
						problem = fmt.Sprintf("status %d, want 200", got.status)
					}
					want := int64(0)
					if c.status == 200 && answersAt(path) {
						want = 1
					}
					if asked := calls.Load() - before; asked != want && problem == "" {
						problem = fmt.Sprintf("the engine was asked %d times, want %d", asked, want)
					}
					if problem != "" {
						t.Errorf("%s %.200s:\n%d %.600s\n%s", path, body, got.status, got.body, problem)
						break // further paths would say the same
					}
				}
			}
		})
	}
}

// Media types, sizes and keys come before any dialect, and errors are in its shape.
func TestT202BeforeDialects(t *testing.T) {
	r := talking(t, answers("ok"), func(c *Config) { c.Limits.BodyBytes, c.Keys = 2000, []string{"key"} })
	for i, d := range dialects(t) {
		cases := []struct {
			what, body string
			headers    []string
			status     int
		}{
			{"a form", d.usual + "}", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
			{"a text", d.usual + "}", []string{"Content-Type", "text/plain"}, 415},
			{"compressed", d.usual + "}", []string{"Content-Encoding", "gzip"}, 415},
			{"too large", d.usual + `,"x":"` + strings.Repeat("x", 2000) + `"}`, nil, 413},
			{"no key", d.usual + "}", []string{"Authorization", ""}, 401},
			{"a wrong key", d.usual + "}", []string{"Authorization", "Bearer other"}, 401},
			{"two keys", d.usual + "}", []string{"x-api-key", "other"}, 401},
			{"another host", d.usual + "}", []string{"Host", "evil.example"}, 403},
		}
		for _, path := range d.paths {
			for _, c := range cases {
				got := r.do(http.MethodPost, path, c.body, append([]string{"Authorization", "Bearer key"}, c.headers...)...)
				if problem := refusedBy(t, i, got, c.status, ""); problem != "" {
					t.Errorf("%s, %s: %d %s\n%s", path, c.what, got.status, got.body, problem)
				}
			}
			if got := r.do(http.MethodPost, path, d.usual+"}", "x-api-key", "key"); got.status != 200 {
				t.Errorf("%s with a key: %d %s", path, got.status, got.body)
			}
			if got := r.do(http.MethodPut, path, d.usual+"}", "x-api-key", "key"); refusedBy(t, i, got, 405, "") != "" && !strings.Contains(path, ":") {
				t.Errorf("PUT %s: %d %s", path, got.status, got.body)
			}
		}
	}
}

// What nobody knows is counted once, whatever the dialect, and changes nothing (T021, T024).
func TestT024UnknownFieldsOfDialects(t *testing.T) {
	r := talking(t, answers("ok"), nil)
	want := 0
	for _, d := range dialects(t) {
		for _, path := range d.paths {
			got := r.post(path, d.usual+`,"foo":{"bar":[1]},"Temperature":7,"MAX_TOKENS":-1}`)
			if want += 3; got.status != 200 || r.metric("atlasrt_unknown_fields_total") != fmt.Sprint(want) {
				t.Errorf("%s: %d %s, %s are counted, want %d", path, got.status, got.body, r.metric("atlasrt_unknown_fields_total"), want)
			}
		}
	}
}
