package openai

import (
	"math"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// generation reads the fields of both routes.
func (f fields) generation(limits api.Limits) *api.Request {
	r := &api.Request{Options: completion.Options{Choices: 1, LogProbs: -1}}
	o := &r.Options
	f.Text("model", &r.Model)
	f.streaming(r)
	f.Samplers(r, limits)
	f.bias(&o.Sampling, limits)
	o.Form = f.form()

	f.choices(o, limits)
	f.stops(o, limits)
	f.Integer("min_tokens", &o.MinTokens)
	f.Bool("ignore_eos", &o.IgnoreEnd)
	skip := true
	f.Bool("skip_special_tokens", &skip)
	o.KeepSpecial = !skip
	f.Salt(o)

	f.Ignore("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
		"prompt_cache_options", "verbosity", "prediction", "keep_alive", "guided_decoding_backend")
	f.unhonoured()
	return r
}

// predict reads n_predict, llama.cpp's name of max_tokens, which is at least so many, or -1.
func (f fields) predict(to *int, least int, given bool) {
	n := 0
	switch before := *to; {
	case !f.Integer("n_predict", &n):
	case given && n != before && !(n == -1 && before == 0):
		f.Invalid("n_predict", "is %d and max_tokens is %d, but they are two names of one thing", n, before)
	case n == 0 && least > 0:
		f.Invalid("n_predict", "is 0, must be -1 or at least %d here", least)
	case !given:
		*to = max(n, 0)
	}
}

func (f fields) streaming(r *api.Request) {
	f.Bool("stream", &r.Stream)
	o := f.Object("stream_options")
	if o == nil {
		return
	}
	if !r.Stream {
		f.Invalid("stream_options", "is only allowed where stream is true")
	}
	o.Bool("include_usage", &r.StreamUsage)
	o.Refuse("include_obfuscation", api.IsFalse)
}

func (f fields) choices(o *completion.Options, limits api.Limits) {
	if f.Integer("n", &o.Choices) && o.Choices > limits.Choices {
		f.Fail(api.TooMuch(api.LimitChoices, "n", "n is %d, this server makes at most %d answers to one prompt.", o.Choices, limits.Choices))
	}
	best := o.Choices
	f.Integer("best_of", &best)
	switch {
	case best > o.Choices:
		f.Fail(api.Unsupported("best_of", "best_of is %d: this server makes as many answers as it returns, so it must not be more than n.", best))
	case best < o.Choices && best != 0:
		f.Invalid("best_of", "is %d, must not be less than n, which is %d", best, o.Choices)
	}
}

// stops reads stop, a string or a list of them, and stop_token_ids.
func (f fields) stops(o *completion.Options, limits api.Limits) {
	switch v := f.Take("stop").(type) {
	case nil:
	case jsontree.String:
		o.Stop = f.Stops("stop", jsontree.Array{v}, limits)
	case jsontree.Array:
		o.Stop = f.Stops("stop", v, limits)
	default:
		f.WrongKind("stop", "a string or an array of strings", v)
	}
	items := f.List("stop_token_ids")
	if f.AtMost(api.LimitStops, "stop_token_ids", len(items), limits.StopTokens) && items != nil {
		o.StopTokens = f.Tokens("stop_token_ids", items)
	}
}

// bias reads logit_bias: token ids, written as JSON keys must be, with a number for each.
func (f fields) bias(p *sample.Given, limits api.Limits) {
	d := f.Dict("logit_bias")
	if d == nil || !f.AtMost(api.LimitBiases, "logit_bias", d.Len(), limits.Biases) {
		return
	}
	limit := f.Range("logit_bias")
	p.LogitBias = make(map[int32]float32, d.Len())
	for key, v := range d.All() {
		id, err := strconv.ParseInt(key, 10, 64)
		n, number := v.(jsontree.Number)
		bias, fits := n.Float()
		switch {
		case err != nil || strconv.FormatInt(id, 10) != key:
			f.Invalid("logit_bias", "must have token ids as keys, not %q", api.Clip(key, 40))
		case id < math.MinInt32 || id > math.MaxInt32:
			f.Invalid("logit_bias", "names token %d, which no vocabulary has", id)
		case !number:
			f.Invalid("logit_bias", "of token %d must be a number, not %s", id, v.Kind())
		case !fits || !limit.Holds(bias):
			f.Invalid("logit_bias", "of token %d is %.40s, must be %s", id, string(n), limit)
		default:
			p.LogitBias[int32(id)] = float32(bias)
		}
	}
}
