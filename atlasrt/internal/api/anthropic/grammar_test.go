package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// message is what a client makes of an answer.
type message struct {
	Content []map[string]any `json:"content"`
	Reason  *string          `json:"stop_reason"`
	Match   *string          `json:"stop_sequence"`
	Usage   map[string]any   `json:"usage"`
}

// readStream reads a stream as strictly as the API is documented: one message_start, blocks one after the other with indices from
// 0, their deltas of their own kind, a signature last, one message_delta, one message_stop.
func readStream(stream string) (m message, err error) {
	var state string // the event before; open: within a block
	var parts []string
	kind, signed := "", false
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		if event == ": ping" && state == "" {
			continue
		}
		name, data, ok := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		var e struct {
			Type    string
			Index   *int
			Message *message
			Block   map[string]any `json:"content_block"`
			Delta   map[string]any
			Usage   map[string]any
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || !ok || e.Type != name || strings.Contains(data, "\n") {
			return m, fmt.Errorf("%q: %w", event, err)
		}
		bad := fmt.Errorf("%q behind %q", event, state)
		switch {
		case name == "ping" && state != "" && state != "message_stop":
			continue
		case name == "message_start" && state == "":
			if m = *e.Message; len(m.Content) > 0 || m.Reason != nil {
				return m, bad
			}
		case name == "content_block_start" && (state == "message_start" || state == "content_block_stop"):
			if *e.Index != len(m.Content) {
				return m, bad
			}
			m.Content = append(m.Content, e.Block)
			kind, signed, parts = e.Block["type"].(string), false, nil
		case name == "content_block_delta" && (state == "content_block_start" || state == name):
			field := map[string]string{"text text_delta": "text", "thinking thinking_delta": "thinking", "thinking signature_delta": "signature", "tool_use input_json_delta": "partial_json"}[kind+" "+e.Delta["type"].(string)]
			piece, ok := e.Delta[field].(string)
			if !ok || piece == "" || signed || *e.Index != len(m.Content)-1 {
				return m, bad
			}
			if signed = field == "signature"; signed {
				m.Content[*e.Index]["signature"] = piece
				continue
			}
			parts = append(parts, piece)
		case name == "content_block_stop" && (state == "content_block_start" || state == "content_block_delta"):
			if *e.Index != len(m.Content)-1 || (kind == "thinking") != signed {
				return m, bad
			}
			block, whole := m.Content[*e.Index], strings.Join(parts, "")
			if kind != "tool_use" {
				block[kind] = whole
				break
			}
			var input map[string]any
			if json.Unmarshal([]byte(whole), &input) != nil || input == nil {
				input = map[string]any{chat.BrokenArguments: whole}
			}
			block["input"] = input
		case name == "message_delta" && (state == "message_start" || state == "content_block_stop"):
			text, _ := json.Marshal(e.Delta)
			if err := json.Unmarshal(text, &m); err != nil || m.Reason == nil {
				return m, bad
			}
			m.Usage = e.Usage
		case name == "message_stop" && state == "message_delta":
		default:
			return m, bad
		}
		state = name
	}
	if state != "message_stop" {
		return m, fmt.Errorf("the stream ends behind %q", state)
	}
	return m, nil
}

// script makes the events of an answer of chance, as package completion would: each byte of choices is one step.
func script(choices []byte) (steps [][]chat.Event) {
	pieces := []string{"", "a", " ", "\n\n", "é👋", `{"a": 1}`, `{"a"`, `: [1`, `]}`, `"`, "}", "\\", "null", "data: x\n\nevent: y", "\u2028", `{}`}
	steps = append(steps, []chat.Event{start()})
	calls := 0
	for _, c := range choices {
		piece := pieces[c>>3&15]
		var e chat.Event
		switch c & 7 {
		case 0, 1:
			e = text(piece)
		case 2:
			e = thought(piece)
		case 3, 4:
			e = called(calls, fmt.Sprintf("f%d", calls), piece)
			calls++
		default:
			if e = called(calls-1, "", piece); calls == 0 || !isCall(steps) {
				e = text(piece)
			}
		}
		if last := len(steps) - 1; c>>7 == 1 {
			steps[last] = append(steps[last], e)
		} else {
			steps = append(steps, []chat.Event{e})
		}
	}
	reason := []chat.Event{finish(chat.FinishStop, ""), finish(chat.FinishStop, "END"), finish(chat.FinishLength, ""), finish(chat.FinishToolCalls, "")}[len(choices)%4]
	return append(steps, []chat.Event{reason}, []chat.Event{end()})
}

// isCall tells whether the last event is of a call, which may go on.
func isCall(steps [][]chat.Event) bool {
	last := steps[len(steps)-1]
	return last[len(last)-1].Kind == chat.EventToolCall
}

// expected is the blocks that events are, as message.blocks writes them.
func expected(steps [][]chat.Event, hide bool) string {
	var b strings.Builder
	var last chat.Event
	whole := ""
	leave := func() {
		if input := (map[string]any{}); last.Kind == chat.EventToolCall {
			if !blank(whole) && (json.Unmarshal([]byte(whole), &input) != nil || input == nil) {
				input = map[string]any{chat.BrokenArguments: whole}
			}
			whole = fmt.Sprint(input)
		}
		if last.Kind != chat.EventStart {
			fmt.Fprintf(&b, "%d%s(%s)", last.Kind, last.Call.Name, whole)
		}
		whole = ""
	}
	for _, e := range slices.Concat(steps...) {
		switch {
		case e.Kind == chat.EventFinish:
			leave()
		case e.Kind > chat.EventToolCall || e.Kind < chat.EventText || e.Kind != chat.EventToolCall && e.Text == "":
			continue
		case e.Kind != last.Kind || e.Call.Name != "":
			leave()
			last = e
		}
		if !(hide && e.Kind == chat.EventReasoning) {
			whole += e.Text + e.Call.Arguments
		}
	}
	return b.String()
}

// blocks writes the blocks of a message: their kinds, the names of calls, and what is in them.
func (m *message) blocks() string {
	var b strings.Builder
	for _, block := range m.Content {
		switch block["type"] {
		case "text":
			fmt.Fprintf(&b, "%d(%s)", chat.EventText, block["text"])
		case "thinking":
			fmt.Fprintf(&b, "%d(%s)", chat.EventReasoning, block["thinking"])
		default:
			fmt.Fprintf(&b, "%d%s(%v)", chat.EventToolCall, block["name"], block["input"])
		}
	}
	return b.String()
}

// checkScript holds a stream against the grammar, and its content against the whole answer's.
func checkScript(t *testing.T, choices []byte, hide bool) {
	t.Helper()
	steps, r := script(choices), &api.Request{HideReasoning: hide}
	streamed, whole := Messages{}.Answer(r, head()), Messages{}.Answer(r, head())
	stream := streamed.Begin(nil)
	for _, events := range steps {
		stream = streamed.Append(streamed.Ping(stream), events)
		whole.Add(events)
	}
	got, err := readStream(string(stream))
	if err != nil {
		t.Fatalf("%x: %v\n%s", choices, err, stream)
	}
	var want message
	decoder := json.NewDecoder(bytes.NewReader(whole.Body()))
	if err := decoder.Decode(&want); err != nil {
		t.Fatalf("%x: %v: %s", choices, err, whole.Body())
	}
	if len(got.Content) == 0 {
		got.Content = want.Content[:0:0]
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%x:\nstreamed %+v\n  whole %+v", choices, got, want)
	}
	if got, want := got.blocks(), expected(steps, hide); got != want {
		t.Fatalf("%x:\n got %s\nwant %s", choices, got, want)
	}
	signatures, ids := map[any]bool{}, map[any]bool{}
	for _, block := range got.Content {
		if s, ok := block["signature"].(string); ok && (signatures[s] || len(s) != 44) {
			t.Fatalf("%x: the signature %q", choices, s)
		} else if ok {
			signatures[s] = true
		}
		if id, ok := block["id"].(string); ok && (ids[id] || !strings.HasPrefix(id, "toolu_")) {
			t.Fatalf("%x: the id %q", choices, id)
		} else if ok {
			ids[id] = true
		}
	}
}

// The order of events, and that nothing is lost or added, for answers of chance.
func TestT066OrderOfEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		choices := make([]byte, random.IntN(30))
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		checkScript(t, choices, random.IntN(4) == 0)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add([]byte("\x08\x0a\x2b\x33\x3d\x45\x83\x03"), true)
	f.Fuzz(func(t *testing.T, choices []byte, hide bool) {
		if len(choices) < 250 {
			checkScript(t, choices, hide)
		}
	})
}
