package anthropic

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// ranges are the numeric fields. Those of the API go before those that all routes have.
var ranges = append([]api.Range{
	{Name: "max_tokens", Low: 0, High: api.MostTokens, Whole: true}, // 0 only fills the cache
	{Name: "temperature", Low: 0, High: 1},
	{Name: "top_k", Low: 0, High: api.Most, Whole: true},
	{Name: "budget_tokens", Low: 1024, High: api.MostTokens, Whole: true},
}, api.SamplerRanges()...)

// decoder reads a request.
type decoder struct {
	*api.Fields
	limits  api.Limits
	request *api.Request
}

// decode reads a request; answered ones must say how many tokens they want.
func decode(body []byte, limits api.Limits, answered bool) (*api.Request, error) {
	f, err := api.ReadObject(body, ranges)
	if err != nil {
		return nil, err
	}
	r := &api.Request{Options: completion.Options{Choices: 1, LogProbs: -1}, Chat: &chat.Request{}}
	d := &decoder{f, limits, r}
	d.Text("model", &r.Model)
	d.Bool("stream", &r.Stream)
	d.maxTokens(answered)
	d.Samplers(r, d.limits)
	d.Salt(&r.Options)
	r.Options.Stop = d.Stops("stop_sequences", d.List("stop_sequences"), limits)
	d.conversation()
	d.thinking()
	d.outputConfig()
	d.toolUse()
	d.Ignore("cache_control", "metadata", "service_tier", "speed", "inference_geo", "betas", "diagnostics", "billing_policy",
		"fallbacks", "fallback_credit_token", "user_profile_id", "workspace_id")
	d.Refuse("context_management", keepsAll)
	d.Refuse("mcp_servers", api.Empty)
	for _, name := range []string{"container", "thread", "compaction"} {
		d.Refuse(name, api.Never)
	}
	d.foreign()
	r.Unknown += d.Unknown()
	return r, d.Failure()
}

// foreign refuses what other APIs and servers have and this API has not.
func (d *decoder) foreign() {
	d.Refuse("chat_template_kwargs", api.EmptyObject)
	d.Refuse("top_logprobs", api.IsNumber(0))
	d.Refuse("parallel_tool_calls", api.IsTrue) // tool_choice says so here
	d.RefuseOfChats()
	d.RefuseOf("/v1/responses", api.AnyOf(api.Empty, api.IsText("")), "input", "instructions", "previous_response_id")
	d.RefuseOf("/v1/completions", api.IsText(""), "prompt")
	d.RefuseNames("stop_sequences", "stop", "stop_sequence", "stopping_strings", "custom_stopping_strings")
	d.RefuseLimits("max_tokens", "max_completion_tokens", "max_output_tokens")
	d.RefuseThinking("thinking")
	d.RefuseForeign()
}

// maxTokens reads max_tokens. With 0 the prompt is worked on, so that caches have it, and the answer is empty.
func (d *decoder) maxTokens(required bool) {
	n, o := 0, &d.request.Options
	if given := d.Integer("max_tokens", &n); !given && required {
		d.Invalid("max_tokens", "is required")
	} else if given {
		o.Score = n == 0
		o.MaxTokens = max(n, 1)
	}
}

// thinking reads whether the model thinks, for how long, and whether the client gets to see it.
func (d *decoder) thinking() {
	f, t := d.Object("thinking"), &d.request.Chat.Thinking
	if f == nil {
		return
	}
	var kind, display string
	f.Enum("type", &kind, "enabled", "adaptive", "disabled")
	f.Enum("display", &display, "summarized", "omitted")
	d.request.HideReasoning = display == "omitted"
	t.On = new(kind != "disabled")
	budget, o := 0, &d.request.Options
	switch given := f.Integer("budget_tokens", &budget); {
	case kind == "":
		f.Invalid("type", "is required")
	case kind != "enabled":
	case !given:
		f.Invalid("budget_tokens", "is required where thinking is enabled")
	case o.MaxTokens > 0 && !o.Score && budget >= o.MaxTokens:
		f.Invalid("budget_tokens", "is %d, must be less than max_tokens, which is %d", budget, o.MaxTokens)
	default:
		t.Budget = &budget
	}
}

// outputConfig reads how hard the model thinks, and which form its text has.
func (d *decoder) outputConfig() {
	d.format(d.Fields, "output_format") // its older name
	if f := d.Object("output_config"); f != nil {
		f.Enum("effort", &d.request.Chat.Thinking.Effort, "low", "medium", "high", "xhigh", "max")
		d.format(f, "format")
	}
}

// format reads the JSON schema that the text of an answer follows.
func (d *decoder) format(in *api.Fields, name string) {
	f, o := in.Object(name), &d.request.Options
	switch {
	case f == nil:
		return
	case o.Form != nil:
		in.Invalid(name, "and output_format are both given: output_format is the older name, leave it out")
	case d.request.Chat.Continue:
		in.Invalid(name, "holds for whole answers, but the last message is of the assistant and the answer goes on with it; end with a message of the user")
	}
	var kind string
	if f.Enum("type", &kind, "json_schema"); kind == "" {
		f.Invalid("type", "is required")
	}
	o.Form = f.Schema("schema", false)
}

// keepsAll accepts a context_management that leaves the conversation as it is.
func keepsAll(v jsontree.Value) bool {
	object, ok := v.(*jsontree.Object)
	if !ok {
		return false
	}
	edits, _ := object.Get("edits")
	list, ok := edits.(jsontree.Array)
	for _, edit := range list {
		object, isObject := edit.(*jsontree.Object)
		if !isObject {
			return false
		}
		kind, _ := object.Get("type")
		keep, _ := object.Get("keep")
		if of, isObject := keep.(*jsontree.Object); isObject {
			keep, _ = of.Get("type")
		}
		if !api.IsText("clear_thinking_20251015")(kind) || !api.IsText("all")(keep) {
			return false
		}
	}
	return ok || edits == nil
}
