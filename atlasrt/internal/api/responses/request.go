package responses

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
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

var ranges = []api.Range{
	{Name: "temperature", Low: 0, High: 2},
	{Name: "top_p", Low: 0, High: 1},
	{Name: "min_p", Low: 0, High: 1},
	{Name: "presence_penalty", Low: -2, High: 2},
	{Name: "frequency_penalty", Low: -2, High: 2},
	{Name: "repetition_penalty", Low: 0, High: 100, LowOpen: true},
	{Name: "top_k", Low: -1, High: api.Most, Whole: true}, // -1 and 0 are all
	{Name: "seed", Low: math.MinInt64, High: math.MaxInt64, Whole: true},
	{Name: "top_logprobs", Low: 0, High: 20, Whole: true},
	{Name: "max_output_tokens", Low: 1, High: api.MostTokens, Whole: true},
	{Name: "max_tool_calls", Low: 0, High: api.Most, Whole: true},
	{Name: "max_tokens", Low: 0, High: api.Most, Whole: true}, // of reasoning
}

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
	r.input(f)
	f.Text("instructions", &r.instructions)
	f.Text("previous_response_id", &r.Previous)
	r.sampling(f)
	tools := r.tools(f, limits)
	r.thinking(f)
	verbosity := format(f)
	r.delivery(f)
	metadata(f)
	unhonoured(f)
	r.Unknown = f.Unknown()
	if err := f.Failure(); err != nil {
		return nil, err
	}
	r.Echo = echo(f, tools, r.Chat.Thinking.Effort, verbosity)
	return r, nil
}

// input reads the items, without a look at what they are.
func (r *Request) input(f *api.Fields) {
	switch v := f.Take("input").(type) {
	case nil:
	case jsontree.String:
		o := jsontree.NewObject()
		o.Set("type", jsontree.String("message"))
		o.Set("role", jsontree.String("user"))
		o.Set("content", v)
		r.entries = []entry{{"input", o}}
	case jsontree.Array:
		for i, item := range v {
			name := place("input", i)
			object, ok := item.(*jsontree.Object)
			if !ok {
				f.WrongKind(name, "an object", item)
				return
			}
			r.entries = append(r.entries, entry{name, object})
		}
	default:
		f.WrongKind("input", "a string or an array of items", v)
	}
}

// sampling reads how the answer is drawn.
func (r *Request) sampling(f *api.Fields) {
	o, p := &r.Options, &r.Options.Sampling
	f.Integer("max_output_tokens", &o.MaxTokens)
	p.Temperature, p.TopP = f.GivenNumber("temperature"), f.GivenNumber("top_p")
	p.MinP, p.RepetitionPenalty = f.GivenNumber("min_p"), f.GivenNumber("repetition_penalty")
	p.PresencePenalty, p.FrequencyPenalty = f.GivenNumber("presence_penalty"), f.GivenNumber("frequency_penalty")
	var topK, seed int
	if f.Integer("top_k", &topK) {
		p.TopK = new(int32(max(topK, 0)))
	}
	if f.Integer("seed", &seed) {
		p.Seed = new(int64(seed))
	}
	asked, top := false, 0
	for i, v := range f.List("include") {
		name, ok := v.(jsontree.String)
		if !ok {
			f.WrongKind(place("include", i), "a string", v)
			return
		}
		asked = asked || name == "message.output_text.logprobs" // others ask for what is not there
	}
	if f.Integer("top_logprobs", &top); asked || top > 0 {
		o.LogProbs = top
	}
}

// efforts are those of OpenAI's models.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// thinking reads reasoning. Thoughts are never summed up, so that no kind of summary changes anything.
func (r *Request) thinking(f *api.Fields) {
	d := f.Dict("reasoning")
	if d == nil {
		return
	}
	t := f.Inner(d, "reasoning")
	thinking := &r.Chat.Thinking
	if t.Enum("effort", &thinking.Effort, efforts...); thinking.Effort == "none" {
		thinking.On = new(false)
	}
	var budget int
	if t.Integer("max_tokens", &budget) {
		thinking.Budget = &budget
	}
	t.Ignore("summary", "generate_summary", "context", "mode")
	f.Fail(t.Err())
}

// format reads the form of the text. How verbose it should be is no question to the models here.
func format(f *api.Fields) (verbosity string) {
	verbosity = "medium"
	d := f.Dict("text")
	if d == nil {
		return verbosity
	}
	t := f.Inner(d, "text")
	t.Enum("verbosity", &verbosity, "low", "medium", "high")
	if d := t.Dict("format"); d != nil {
		inner, kind := t.Inner(d, "format"), "text"
		if inner.Enum("type", &kind, "text", "json_object", "json_schema"); kind != "text" {
			inner.Fail(api.NeedsGrammar("text.format", "The format "+kind))
		}
		t.Fail(inner.Err())
	}
	f.Fail(t.Err())
	return verbosity
}

// delivery reads how the answer comes to the client, and what becomes of it.
func (r *Request) delivery(f *api.Fields) {
	f.Bool("stream", &r.Stream)
	if d := f.Dict("stream_options"); d != nil {
		if !r.Stream {
			f.Invalid("stream_options", "is only allowed where stream is true")
		}
		o := f.Inner(d, "stream_options")
		o.Refuse("include_obfuscation", api.IsFalse)
		f.Fail(o.Err())
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
	f.RefuseOfChats("messages", "n", "stop", "logit_bias", "logprobs", "response_format", "functions", "function_call", "reasoning_effort")
	f.RefuseNames("max_output_tokens", "max_tokens", "max_completion_tokens")
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
