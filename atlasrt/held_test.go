package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/server"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// heldModel is a model that answers over HTTP, in the formats of several families.
type heldModel struct {
	engine   *engine.Engine
	loaded   *instance.Loaded
	text     *instance.Text
	template string // of conversations, which shows the names of tools
}

// withHeld runs a test with SmolLM2, which knows nothing of forms, on the first hardware that there is: forms are held in front of it.
func withHeld(t *testing.T, test func(t *testing.T, m *heldModel)) {
	path := testdata.Cache(t, smollm2)
	tested := false
	eachHardware(t, false, func(t *testing.T, target *instance.Target) {
		if tested {
			t.Skip("another hardware was tested")
		}
		tested = true
		loaded := place(t, target, path, false)
		e := startEngine(t, target, loaded, func(*engine.Config) {})
		defer e.Close()
		text, err := instance.OpenText(loaded.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		test(t, &heldModel{e, loaded, text, strings.Replace(toolTemplate, "tools | tojson", "tools | map(attribute='function') | map(attribute='name') | join(', ')", 1)})
	})
}

// serve is a server whose calls have a format, and whose JSON has a notation.
func (m *heldModel) serve(t *testing.T, calls string, notation grammar.Notation) *server.Server {
	t.Helper()
	text := *m.text
	var err error
	if text.Template, err = chat.ParseTemplate(m.template, nil); err != nil {
		t.Fatal(err)
	}
	g := text.Generator(m.engine, m.loaded)
	g.Formats.Tools, g.Notation = parse.FindTools(calls), notation
	s, err := server.New(server.Config{Model: server.Model{Name: "m", Generator: g, Template: &text, Engine: m.engine}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// closing are biases for what ends strings, objects and lists in the formats of calls: a small model seldom ends them by itself.
func (m *heldModel) closing() map[string]float64 {
	const bias = 4
	biases := map[string]float64{}
	for _, text := range []string{`"`, `"}`, `"]`, `",`, `}`, `]`, `}}`, `<`, `</`, "\n"} {
		if tokens := m.text.Tokenizer.Encode(text, false); len(tokens) == 1 {
			biases[strconv.Itoa(int(tokens[0]))] = bias
		}
	}
	return biases
}

// heldRequest asks for an answer that is held to something.
type heldRequest struct {
	name   string // for failures
	server *server.Server
	path   string
	body   map[string]any
	judge  func(answer *heldAnswer) error // of an answer that ended by itself; nil: it is as it must be
	begins func(text string) bool         // tells whether a text that was cut is the beginning of one; nil: it is not asked
}

// heldAnswer is what the dialects write that these tests look at.
type heldAnswer struct {
	structuredAnswer        // of chats and texts
	Status           string // of responses
	Output           []struct {
		Content []struct{ Text string }
	}
	Stop    string                  `json:"stop_reason"` // of messages
	Content []struct{ Text string } // of them
}

// written is the text of an answer.
func (a *heldAnswer) written() string {
	var b strings.Builder
	for _, c := range a.Choices {
		b.WriteString(c.Text + c.Message.Content)
	}
	for _, o := range a.Output {
		for _, c := range o.Content {
			b.WriteString(c.Text)
		}
	}
	for _, c := range a.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// cut tells whether an answer reached its most tokens.
func (a *heldAnswer) cut() bool {
	return a.Status == "incomplete" || a.Stop == "max_tokens" || len(a.Choices) > 0 && a.Choices[0].Finish == "length"
}

// ask gives the answer to a request. An answer that is judged wrong is an error.
func (r *heldRequest) ask() (*heldAnswer, error) {
	body, err := json.Marshal(r.body)
	if err != nil {
		return nil, err
	}
	request := httptest.NewRequest(http.MethodPost, r.path, strings.NewReader(string(body)))
	request.Host = "localhost"
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	r.server.ServeHTTP(recorder, request)
	a := &heldAnswer{}
	if recorder.Code != http.StatusOK {
		return a, fmt.Errorf("%s: %s: %d %.1000s", r.name, body, recorder.Code, recorder.Body)
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), a); err != nil {
		return a, err
	}
	if a.cut() {
		if r.begins != nil && !r.begins(a.written()) {
			return a, fmt.Errorf("%s: %s: %.2000s: it is cut, and is no beginning of an answer", r.name, body, recorder.Body)
		}
		return a, nil
	}
	if err := r.judge(a); err != nil {
		return a, fmt.Errorf("%s: %s: %.2000s: %w", r.name, body, recorder.Body, err)
	}
	return a, nil
}

// atOnce is how many requests are asked at a time.
const atOnce = 8

// untilEnded asks until so many answers ended by themselves, and gives those. Requests are made by number; where three of four are cut, too
// few end, which is an error.
func untilEnded(t *testing.T, want int, request func(i int) *heldRequest) (ended []*heldAnswer) {
	t.Helper()
	var mutex sync.Mutex // over what follows
	asked, cut := 0, 0
	next := func() (int, bool) {
		mutex.Lock()
		defer mutex.Unlock()
		if len(ended) >= want || asked == 4*want || t.Failed() {
			return 0, false
		}
		asked++
		return asked - 1, true
	}
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for i, ok := next(); ok; i, ok = next() {
				a, err := request(i).ask()
				mutex.Lock()
				switch {
				case err != nil:
					t.Error(err)
				case a.cut():
					cut++
				default:
					ended = append(ended, a)
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("%d answers ended by themselves, %d were cut", len(ended), cut)
	if len(ended) < want {
		t.Errorf("%d answers ended by themselves, want %d", len(ended), want)
	}
	return ended
}
