package responses

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// Request is a request that was decoded. Its conversation comes from Converse.
type Request struct {
	api.Request
	Previous   string // the answer that it goes on from; empty: none
	Store      bool   // the answer is kept
	Background bool   // nobody waits for the answer
	Skipped    int    // tools and items that were left out, since their kinds have no meaning here

	root         *api.Fields
	instructions string
	entries      []entry
}

// entry is an item of the input.
type entry struct {
	place  string // the field that it comes from
	object *jsontree.Object
}

var ranges = slices.Concat(api.SamplerRanges(), []api.Range{
	{Name: "temperature", Low: 0, High: 2},
	{Name: "top_logprobs", Low: 0, High: 20, Whole: true},
	{Name: "max_output_tokens", Low: 1, High: api.MostTokens, Whole: true},
	{Name: "max_tool_calls", Low: 0, High: api.Most, Whole: true},
	{Name: "max_tokens", Low: 0, High: api.Most, Whole: true}, // of reasoning
})

// Decode reads the body of a request, but for what it refers to. Errors are *api.Error.
func Decode(body []byte, limits api.Limits) (*Request, error) {
	f, err := api.ReadObject(body, ranges)
	if err != nil {
		return nil, err
	}
	r := &Request{root: f, Store: true}
	r.Options = completion.Options{Choices: 1, LogProbs: -1}
	r.Chat = &chat.Request{AddGenerationPrompt: true}
	f.Text("model", &r.Model)
	r.input(f, limits)
	f.Text("instructions", &r.instructions)
	f.Text("previous_response_id", &r.Previous)
	r.sampling(f, limits)
	tools := r.tools(f, limits)
	sum := r.thinking(f)
	text := r.text(f)
	r.delivery(f)
	metadata(f)
	unhonoured(f)
	r.Unknown = f.Unknown()
	if err := f.Failure(); err != nil {
		return nil, err
	}
	r.Echo = echo(f, tools, r.Chat.Thinking.Effort, sum, text)
	return r, nil
}

// input reads the items, without a look at what they are.
func (r *Request) input(f *api.Fields, limits api.Limits) {
	switch v := f.Take("input").(type) {
	case nil:
	case jsontree.String:
		o := jsontree.NewObject()
		o.Set("type", jsontree.String("message"))
		o.Set("role", jsontree.String("user"))
		o.Set("content", v)
		r.entries = []entry{{"input", o}}
	case jsontree.Array:
		if !f.AtMost(api.LimitMessages, "input", len(v), limits.Messages) {
			return
		}
		for i, item := range f.Objects("input", v) {
			r.entries = append(r.entries, entry{fmt.Sprintf("input[%d]", i), item.Source()})
		}
	default:
		f.WrongKind("input", "a string or an array of items", v)
	}
}

// sampling reads how the answer is drawn.
func (r *Request) sampling(f *api.Fields, limits api.Limits) {
	o := &r.Options
	f.Integer("max_output_tokens", &o.MaxTokens)
	f.Samplers(&r.Request, limits)
	f.Salt(o)
	asked, top := false, 0
	for i, v := range f.List("include") {
		name, ok := v.(jsontree.String)
		if !ok {
			f.WrongKind(fmt.Sprintf("include[%d]", i), "a string", v)
			return
		}
		asked = asked || name == "message.output_text.logprobs" // others ask for what is not there
	}
	if f.Integer("top_logprobs", &top); asked || top > 0 {
		o.LogProbs = top
	}
}

// thinking reads reasoning, and gives the kind of summary that is asked for. Nobody sums thoughts up here: clients that look for
// a summary, and for nothing else, find the thoughts in its place.
func (r *Request) thinking(f *api.Fields) (sum string) {
	t := f.Object("reasoning")
	if t == nil {
		return ""
	}
	for _, name := range []string{"generate_summary", "summary"} { // the first is the older name
		t.Enum(name, &sum, "auto", "concise", "detailed", "none")
	}
	if sum == "none" {
		sum = ""
	}
	r.SumUp = sum != ""
	thinking := &r.Chat.Thinking
	openai.Effort(t, "effort", thinking)
	var budget int
	if t.Integer("max_tokens", &budget) {
		thinking.Budget = &budget
	}
	t.Ignore("context", "mode")
	return sum
}

// delivery reads how the answer comes to the client, and what becomes of it.
func (r *Request) delivery(f *api.Fields) {
	f.Bool("stream", &r.Stream)
	if o := f.Object("stream_options"); o != nil {
		if !r.Stream {
			f.Invalid("stream_options", "is only allowed where stream is true")
		}
		o.Refuse("include_obfuscation", api.IsFalse)
	}
	f.Bool("store", &r.Store)
	f.Bool("background", &r.Background)
	switch {
	case r.Background && !r.Store:
		f.Invalid("background", "needs store to be true: the answer is fetched by its id")
	case r.Background && r.Stream:
		f.Fail(api.Unsupported("stream", "stream must be false where background is true; fetch the response by its id."))
	}
	f.Integer("max_tool_calls", new(int)) // of tools that the server runs: there are none
	for _, name := range []string{"user", "safety_identifier", "prompt_cache_key"} {
		f.Text(name, new(string))
	}
	f.Refuse("truncation", api.IsText("disabled"))
	f.Ignore("service_tier", "prompt_cache_retention", "prompt_cache_options", "access_programs", "background_options")
}

// Bounds of metadata, which are the API's.
const (
	maxPairs      = 16
	maxKeyBytes   = 4 * 64  // 64 characters
	maxValueBytes = 4 * 512 // 512 characters
)

func metadata(f *api.Fields) {
	d := f.Dict("metadata")
	if d == nil {
		return
	}
	if d.Len() > maxPairs {
		f.Invalid("metadata", "has %d entries, at most %d are allowed", d.Len(), maxPairs)
	}
	for key, value := range d.All() {
		s, ok := value.(jsontree.String)
		if !ok || len(key) > maxKeyBytes || len(s) > maxValueBytes {
			f.Invalid("metadata", "must hold strings of up to 512 characters under keys of up to 64; %q does not", api.Clip(key, 64))
			return
		}
	}
}

// unhonoured refuses what the API, or the one of chats, has and this server does not do here.
func unhonoured(f *api.Fields) {
	for _, name := range []string{"conversation", "prompt", "moderation", "image"} {
		f.Refuse(name, api.Never)
	}
	f.Refuse("context_management", api.Empty)
	f.Refuse("chat_template_kwargs", api.EmptyObject)
	f.RefuseOfChats("messages", "stop", "stop_sequence", "stop_sequences", "stopping_strings", "custom_stopping_strings")
	f.RefuseOf("/v1/messages", api.AnyOf(api.Empty, api.IsText("")), "system")
	f.RefuseOf("/v1/messages", api.EmptyObject, "output_config", "output_format")
	f.RefuseLimits("max_output_tokens", "max_tokens", "max_completion_tokens")
	f.RefuseThinking("reasoning", "thinking")
	f.RefuseForeign()
}

// Release gives the input as it is kept: each item has an id. The request forgets it, since its answer may take long. ID is that of
// the answer's head.
func (r *Request) Release(id string) []store.Item {
	items := make([]store.Item, len(r.entries))
	for i, e := range r.entries {
		items[i] = normal(e.object, id, i)
	}
	r.root, r.entries, r.instructions = nil, nil, ""
	return items
}
