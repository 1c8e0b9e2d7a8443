package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/server"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// toolTemplate is SmolLM2's, but that it shows tools.
const toolTemplate = "{% if tools %}<|im_start|>system\nYou call functions: {{ tools | tojson }}<|im_end|>\n{% endif %}" +
	"{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

// personSchema bounds all that it allows, so that every answer ends.
const personSchema = `{"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":0,"maximum":150},"colour":{"enum":["red","green"]}},
	"required":["name","age","colour"],"additionalProperties":false}`

// A small model that knows nothing of forms keeps to them, over HTTP.
func TestSmolLM2KeepsToForms(t *testing.T) {
	path := testdata.Cache(t, smollm2)
	eachHardware(t, false, func(t *testing.T, target *instance.Target) {
		m := place(t, target, path, false)
		e := startEngine(t, target, m, func(*engine.Config) {})
		defer e.Close()
		text, err := instance.OpenText(m.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		keepsToForms(t, e, m, text)
	})
}

// So does a model whose weights were made up, with a token for each byte.
func TestMadeUpModelKeepsToForms(t *testing.T) {
	shape := tinyShape(t, "300")
	config, err := os.ReadFile(shape)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(shape, bytes.Replace(config, []byte(`"max_position_embeddings": 256`), []byte(`"max_position_embeddings": 2048`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := parseLine(t, "serve", "--load-dummy", shape, "--max-sequences", "4", "--memory", "128MiB")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Serve.prepareOn(t.Context(), onOracle(op.F32))
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	text, err := c.Serve.text(c.Serve.modelFlags, m.Checkpoint, log)
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.Start(c.Serve.engineFlags.set(engine.Options{MaxWaiting: 10, MaxWaitingTokens: 10_000, Log: log}))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	keepsToForms(t, e, m, text)
}

// keepsToForms asks a model for answers of all forms.
func keepsToForms(t *testing.T, e *engine.Engine, m *instance.Loaded, text *instance.Text) {
	t.Helper()
	var err error
	if text.Template, err = chat.ParseTemplate(toolTemplate, nil); err != nil {
		t.Fatal(err)
	}
	g := text.Generator(e, m)
	g.Formats.Tools = parse.FindTools("hermes")
	s, err := server.New(server.Config{Model: server.Model{Name: "m", Generator: g, Template: text, Engine: e}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range structuredCases() {
		t.Run(c.name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(`{"seed":1,"temperature":1,`+c.body+`}`))
			request.Host = "localhost"
			request.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, request)
			var got structuredAnswer
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK || len(got.Choices) == 0 {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
			for _, choice := range got.Choices {
				if wrong := c.wrong(choice); wrong != "" || choice.Finish != c.finish {
					t.Errorf("%s: %s, finish %s, want %s", answer.Body, wrong, choice.Finish, c.finish)
				}
			}
		})
	}
}

// structuredAnswer is what these tests look at.
type structuredAnswer struct{ Choices []structuredChoice }

type structuredChoice struct {
	Text    string
	Message struct {
		Content string
		Calls   []struct {
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	Finish string `json:"finish_reason"`
}

type structuredCase struct {
	name, path, body string
	finish           string
	wrong            func(structuredChoice) string // "": nothing
}

func structuredCases() []structuredCase {
	const chats, texts = "/v1/chat/completions", "/v1/completions"
	const user, tool = `"messages":[{"role":"user","content":"Who are you?"}],"max_tokens":200,`, `"messages":[{"role":"user","content":"What is the weather in Oslo?"}],"max_tokens":200,` +
		`"tools":[{"type":"function","function":{"name":"search","parameters":{"type":"object"}}},{"type":"function","function":{"name":"person","parameters":` + personSchema + `}}],`
	content := func(right func(string) bool) func(structuredChoice) string {
		return func(c structuredChoice) string {
			if right(c.Message.Content + c.Text) {
				return ""
			}
			return "the text is of another form"
		}
	}
	number := regexp.MustCompile(`^[0-9]{3}-[0-9]{4}$`)
	called := func(c structuredChoice) string {
		if len(c.Message.Calls) != 1 || c.Message.Content != "" || c.Message.Calls[0].Function.Name != "person" || !isPerson(c.Message.Calls[0].Function.Arguments) {
			return "it is not one call of person with its arguments"
		}
		return ""
	}
	return []structuredCase{
		{"schema", chats, user + `"n":4,"response_format":{"type":"json_schema","json_schema":{"name":"p","strict":true,"schema":` + personSchema + `}}`, "stop", content(isPerson)},
		{"schema of a text", texts, `"prompt":"Me: ","max_tokens":200,"guided_json":` + personSchema, "stop", content(isPerson)},
		{"regex", chats, user + `"structured_outputs":{"regex":"[0-9]{3}-[0-9]{4}"}`, "stop", content(number.MatchString)},
		{"choice", chats, user + `"n":2,"guided_choice":["a duck","a dog","no one"]`, "stop", content(func(s string) bool { return slices.Contains([]string{"a duck", "a dog", "no one"}, s) })},
		{"grammar", texts, `"prompt":"1+","max_tokens":50,"grammar":"root ::= [0-9] (\"+\" [0-9]){2} \";\""`, "stop", content(regexp.MustCompile(`^[0-9]\+[0-9]\+[0-9];$`).MatchString)},
		{"T083 a value that is cut", chats, user + `"n":2,"max_completion_tokens":4,"guided_json":` + personSchema, "length", content(func(s string) bool { return strings.HasPrefix(`{"name":"`, s) || strings.HasPrefix(s, `{"name":"`) })},
		{"T083 white space without end", chats, user + `"max_completion_tokens":30,"guided_json":{"type":"array","minItems":3,"items":{"type":"boolean"},"maxItems":3}`, "stop", content(func(s string) bool {
			return regexp.MustCompile(`^\[(true|false),(true|false),(true|false)\]$`).MatchString(s)
		})},
		{"one tool", chats, tool + `"tool_choice":{"type":"function","function":{"name":"person"}}`, "tool_calls", called},
		{"some tool", chats, tool + `"parallel_tool_calls":false,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"person"}}]}}`, "tool_calls", called},
	}
}

// isPerson tells whether a text is a value of personSchema.
func isPerson(text string) bool {
	var p struct {
		Name, Colour *string
		Age          *float64 // 5.0 is an integer, too
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	return d.Decode(&p) == nil && !d.More() && p.Name != nil && utf8.RuneCountInString(*p.Name) <= 12 && p.Age != nil && *p.Age >= 0 && *p.Age <= 150 && *p.Age == math.Trunc(*p.Age) &&
		p.Colour != nil && slices.Contains([]string{"red", "green"}, *p.Colour)
}
