package responses

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

var update = flag.Bool("update", false, "writes the golden files anew")

var head = api.Head{ID: "0123456789abcdef01234567", Created: 1700000000, Model: "tiny"}

func textEvent(s string) chat.Event      { return chat.Event{Kind: chat.EventText, Text: s} }
func reasoningEvent(s string) chat.Event { return chat.Event{Kind: chat.EventReasoning, Text: s} }
func callEvent(index int, name, arguments string) chat.Event {
	return chat.Event{Kind: chat.EventToolCall, Call: chat.ToolCallDelta{Index: index, Name: name, Arguments: arguments}}
}

// ended is events with the start and the ends of an answer.
func ended(finish chat.Finish, events ...chat.Event) []chat.Event {
	events = append([]chat.Event{{Kind: chat.EventStart}}, events...)
	return append(events, chat.Event{Kind: chat.EventFinish, Finish: finish},
		chat.Event{Kind: chat.EventEnd, Usage: chat.Usage{Prompt: 9, Cached: 3, Output: 7, Reasoning: 2}})
}

// request is one with all defaults, or with further fields.
func request(t testing.TB, fields string) *api.Request {
	t.Helper()
	r, err := decode(`{"model":"tiny","input":"hi"` + fields + `}`)
	if err != nil {
		t.Fatal(err)
	}
	return &r.Request
}

// Streams as they are on the wire, byte for byte.
func TestGoldenStreams(t *testing.T) {
	probs := []chat.Token{{Bytes: []byte("h"), LogProb: -0.5, Top: []chat.TopToken{{Bytes: []byte("h"), LogProb: -0.5}, {Bytes: []byte{0xf0}, LogProb: -2}}}}
	cases := []struct {
		name, fields string
		events       []chat.Event
		fail         *api.Error
	}{
		{"text", "", ended(chat.FinishStop, textEvent("Hello "), textEvent("wörld\n")), nil},
		{"empty", "", ended(chat.FinishStop), nil},
		{"thoughts", `,"reasoning":{"effort":"high"}`, ended(chat.FinishStop, reasoningEvent("hm"), reasoningEvent("."), textEvent("Yes")), nil},
		{"summary", `,"reasoning":{"summary":"auto"}`, ended(chat.FinishStop, reasoningEvent("hm"), reasoningEvent("."), textEvent("Yes")), nil},
		{"calls", `,"instructions":"be brief","metadata":{"k":"v"},"tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"web_search"}]`,
			ended(chat.FinishToolCalls, textEvent("So:"), callEvent(0, "f", ""), callEvent(0, "", `{"a":`), callEvent(0, "", `"<é>"}`), callEvent(1, "f", "{}")), nil},
		{"length", `,"max_output_tokens":2`, ended(chat.FinishLength, callEvent(0, "f", `{"a`)), nil},
		{"logprobs", `,"top_logprobs":2`, ended(chat.FinishStop, chat.Event{Kind: chat.EventText, Tokens: probs}, chat.Event{Kind: chat.EventText, Text: "h", Tokens: probs}, chat.Event{Kind: chat.EventText, Tokens: probs}), nil},
		{"failed", "", []chat.Event{{Kind: chat.EventStart}, textEvent("Hel")}, &api.Error{Kind: api.KindEngine, Message: "The engine failed."}},
	}
	for _, c := range cases {
		a := NewAnswer(request(t, c.fields), head)
		got := a.Begin(nil)
		for i := range c.events {
			got = a.Append(got, c.events[i:i+1])
		}
		if c.fail != nil {
			got = a.Fail(got, c.fail)
		}
		path := "testdata/" + c.name + ".stream"
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
	}
}

// wire is an event as a client reads it.
type wire struct {
	Type      string
	Sequence  *int   `json:"sequence_number"`
	ItemID    string `json:"item_id"`
	Output    int    `json:"output_index"`
	Content   *int   `json:"content_index"`
	Summary   *int   `json:"summary_index"`
	Delta     string
	Text      *string
	Name      string
	Arguments *string
	LogProbs  []openai.LogProb
	Part      *wirePart
	Item      *wireItem
	Response  *wireResponse
}

type wirePart struct {
	Type, Text string
	LogProbs   []openai.LogProb
}

type wireItem struct {
	ID, Type, Status string
	Content, Summary []wirePart
	CallID           string `json:"call_id"`
	Name, Arguments  string
}

type wireResponse struct {
	ID, Status string
	Output     []wireItem
}

// read takes a stream apart.
func read(t *testing.T, stream string) (events []wire) {
	t.Helper()
	for text := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		if strings.HasPrefix(text, ":") {
			continue
		}
		var e wire
		kind, data, ok := strings.Cut(strings.TrimPrefix(text, "event: "), "\ndata: ")
		if err := json.Unmarshal([]byte(data), &e); err != nil || !ok || e.Type != kind {
			t.Fatalf("event %q: %v", text, err)
		}
		events = append(events, e)
	}
	return events
}

// inOrder holds a stream against the order of the API, and gives the response of its last event. Deltas add up to what is done, and that
// to the items and to the whole.
func inOrder(t *testing.T, stream string) *wireResponse {
	t.Helper()
	events := read(t, stream)
	for i, e := range events {
		if e.Sequence == nil || *e.Sequence != i {
			t.Fatalf("event %d has another number: %s", i, stream)
		}
	}
	at := 0
	next := func(kinds ...string) *wire {
		if at == len(events) || !slices.Contains(kinds, events[at].Type) {
			t.Fatalf("event %d is not one of %v in %s", at, kinds, stream)
		}
		at++
		return &events[at-1]
	}
	next("response.created")
	next("response.in_progress")
	var items []wireItem
	for {
		e := next("response.output_item.added", "response.completed", "response.incomplete", "response.failed")
		if e.Response != nil {
			if at != len(events) {
				t.Fatalf("there is more behind the end: %s", stream)
			}
			if got := e.Response.Output; e.Type != "response.failed" && !(len(got) == len(items) && (len(got) == 0 || reflect.DeepEqual(got, items))) || "response."+e.Response.Status != e.Type {
				t.Fatalf("the items were %+v, the response is %+v", items, e.Response)
			}
			return e.Response
		}
		item := e.Item
		if e.Output != len(items) || item.Status != "in_progress" || item.Arguments != "" || textOfItem(item) != "" {
			t.Fatalf("an item begins with %+v", e)
		}
		of := map[string]string{"message": "response.output_text", "reasoning": "response.reasoning_text", "function_call": "response.function_call_arguments"}[item.Type]
		part, summed := "response.content_part", item.Type == "reasoning" && at < len(events) && strings.HasPrefix(events[at].Type, "response.reasoning_summary")
		if summed {
			of, part = "response.reasoning_summary_text", "response.reasoning_summary_part"
		}
		about := func(e *wire) *wire {
			if e.ItemID != item.ID || e.Output != len(items) || (e.Content == nil) != (item.Type == "function_call" || summed) || (e.Summary == nil) == summed {
				t.Fatalf("%+v is not about %+v", e, item)
			}
			return e
		}
		if item.Type != "function_call" {
			if p := about(next(part + ".added")).Part; p.Text != "" {
				t.Fatalf("a part begins with %+v", p)
			}
		}
		text, probs := "", []openai.LogProb{}
		e = next(of+".delta", of+".done", "response.failed")
		for ; e.Type == of+".delta"; e = next(of+".delta", of+".done", "response.failed") {
			text += about(e).Delta
			probs = append(probs, e.LogProbs...)
		}
		if e.Type == "response.failed" {
			if at != len(events) {
				t.Fatalf("there is more behind the end: %s", stream)
			}
			last := e.Response.Output[len(e.Response.Output)-1]
			if last.Status != "incomplete" || last.Arguments != text && textOfItem(&last) != text {
				t.Fatalf("%+v failed with %q", last, text)
			}
			return e.Response
		}
		done := about(e)
		if item.Type == "function_call" {
			if *done.Arguments != text || done.Name != item.Name || item.Name == "" || item.CallID == "" {
				t.Fatalf("%+v is done with %q", done, text)
			}
		} else {
			part := about(next(part + ".done")).Part
			if *done.Text != text || part.Text != text || item.Type == "message" && !(reflect.DeepEqual(done.LogProbs, probs) && reflect.DeepEqual(part.LogProbs, probs)) {
				t.Fatalf("%+v and %+v are done with %q and %v", done, part, text, probs)
			}
		}
		end := next("response.output_item.done")
		if end.Output != len(items) || end.Item.ID != item.ID || end.Item.CallID != item.CallID || end.Item.Arguments+textOfItem(end.Item) != text {
			t.Fatalf("%+v is done as %+v", item, end.Item)
		}
		items = append(items, *end.Item)
	}
}

func textOfItem(i *wireItem) (text string) {
	for _, p := range slices.Concat(i.Content, i.Summary) {
		text += p.Text
	}
	return text
}

// Whatever a model writes, streams keep to the order of the API, and say what the whole answer says (T070).
func TestT070Streams(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	asked := []*api.Request{request(t, `,"top_logprobs":1`), request(t, `,"top_logprobs":1,"reasoning":{"summary":"detailed"}`)}
	counts := map[string]int{}
	for try := range 3000 {
		var events []chat.Event
		r, calls := asked[try%len(asked)], 0
		var want strings.Builder
		for range random.IntN(8) {
			piece := fmt.Sprintf("p%d\"é\n", random.IntN(100))
			switch random.IntN(4) {
			case 0:
				e := textEvent(piece)
				if random.IntN(3) == 0 {
					e.Text = ""
				}
				if random.IntN(2) == 0 || e.Text == "" {
					e.Tokens = []chat.Token{{Bytes: []byte(piece), LogProb: -1}}
				}
				want.WriteString(e.Text)
				events = append(events, e)
			case 1:
				want.WriteString(piece)
				events = append(events, reasoningEvent(piece))
			case 2:
				want.WriteString(piece)
				events = append(events, callEvent(calls, "f", piece))
				calls++
			case 3:
				if n := len(events); n > 0 && events[n-1].Kind == chat.EventToolCall {
					want.WriteString(piece)
					events = append(events, callEvent(calls-1, "", piece))
				}
			}
		}
		finish := []chat.Finish{chat.FinishStop, chat.FinishLength, chat.FinishToolCalls}[random.IntN(3)]
		events = ended(finish, events...)
		cut := len(events)
		if random.IntN(3) == 0 {
			cut = random.IntN(len(events) - 1)
		}
		stream, whole := NewAnswer(r, head), NewAnswer(r, head)
		b := stream.Begin(nil)
		for rest := events[:cut]; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			b = stream.Append(b, rest[:n])
			whole.Add(rest[:n])
			if rest = rest[n:]; random.IntN(4) == 0 {
				b = stream.Ping(b)
			}
		}
		if cut < len(events) {
			e := &api.Error{Kind: api.KindDraining, Message: "over"}
			b = stream.Fail(b, e)
			whole.Fail(nil, e)
		}
		response := inOrder(t, string(b))
		counts[response.Status]++
		if string(stream.Body()) != string(whole.Body()) || !strings.Contains(string(b), `"response":`+string(whole.Body())+"}\n\n") {
			t.Fatalf("try %d: the stream ends with %s, the whole answer is %s", try, b, whole.Body())
		}
		said := ""
		for i := range response.Output {
			said += textOfItem(&response.Output[i]) + response.Output[i].Arguments
		}
		if cut == len(events) && said != want.String() {
			t.Fatalf("try %d: got %q, want %q", try, said, want.String())
		}
	}
	for _, status := range []string{"completed", "incomplete", "failed"} {
		if counts[status] < 100 {
			t.Errorf("only %d answers were %s", counts[status], status)
		}
	}
}

// Ids are those of no other item or call.
func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"0123456789abcdef01234567", "1123456789abcdef01234567"} {
		h := head
		h.ID = id
		a := NewAnswer(request(t, ""), h)
		a.Add(ended(chat.FinishStop, reasoningEvent("a"), textEvent("b"), callEvent(0, "f", "{}"), callEvent(1, "f", "{}"), textEvent("c")))
		ids := []string{a.ID()}
		for _, it := range a.items {
			ids = append(ids, it.id)
			if it.callID != "" {
				ids = append(ids, it.callID)
			}
		}
		for _, id := range ids {
			if seen[id] {
				t.Errorf("two things are called %s", id)
			}
			seen[id] = true
		}
	}
}

// Every key that the API requires is there.
func TestRequiredKeys(t *testing.T) {
	a := NewAnswer(request(t, ""), head)
	a.Add(ended(chat.FinishStop, textEvent("x")))
	var got map[string]any
	if err := json.Unmarshal(a.Body(), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields("id object created_at error incomplete_details instructions model tools output parallel_tool_calls metadata tool_choice temperature top_p status usage previous_response_id store text truncation reasoning background") {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing in %s", key, a.Body())
		}
	}
	want := `map[input_tokens:9 input_tokens_details:map[cache_write_tokens:0 cached_tokens:3] output_tokens:7 output_tokens_details:map[reasoning_tokens:2] total_tokens:16]`
	if usage := fmt.Sprint(got["usage"]); usage != want {
		t.Errorf("usage: got %s, want %s", usage, want)
	}
}
