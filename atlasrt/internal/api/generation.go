package api

import (
	"errors"
	"maps"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Limits bound what one request may ask for. See DefaultLimits.
type Limits struct {
	Messages   int   // of a conversation
	Prompts    int   // of a completions request
	Choices    int   // answers to each prompt, n
	Stops      int   // stop strings
	StopBytes  int   // of each
	StopTokens int   // entries of stop_token_ids
	Biases     int   // entries of logit_bias
	Vocab      int32 // logits per row; token ids must be less
}

// DefaultLimits are those of a server that nobody configured, for a model with so many logits per row.
func DefaultLimits(vocab int32) Limits {
	return Limits{Messages: 10_000, Prompts: 128, Choices: 8, Stops: 4, StopBytes: 256, StopTokens: 64, Biases: 1024, Vocab: vocab}
}

// Generation is what chat and completion requests share.
type Generation struct {
	Model        string // as the client wrote it; empty: the one that is served
	Stream       bool
	IncludeUsage bool // at the end of a stream
	Seeded       bool // the client chose Options.Sampling.Seed; else it is 0 and the caller should draw one
	Options      completion.Options
	Unknown      int // request fields that are not known
}

// maxSaltBytes bounds cache_salt.
const maxSaltBytes = 256

// generation reads the fields of both request kinds. defaults are the sampling parameters of the checkpoint.
func (f *fields) generation(limits Limits, defaults sample.Params) Generation {
	g := Generation{Options: completion.Options{Choices: 1, LogProbs: -1, Sampling: defaults}}
	o, p := &g.Options, &g.Options.Sampling
	f.text("model", &g.Model)
	f.streaming(&g)

	f.number("temperature", &p.Temperature)
	f.number("top_p", &p.TopP)
	f.number("min_p", &p.MinP)
	f.number("presence_penalty", &p.PresencePenalty)
	f.number("frequency_penalty", &p.FrequencyPenalty)
	f.repetition(p)
	topK := int(p.TopK)
	if f.integer("top_k", &topK) {
		p.TopK = int32(max(topK, 0)) // -1 means all, as elsewhere
	}
	seed := 0
	if g.Seeded = f.integer("seed", &seed); g.Seeded {
		p.Seed = int64(seed)
	}
	p.LogitBias = maps.Clone(defaults.LogitBias)
	f.bias(p, limits)

	f.choices(o, limits)
	f.stops(o, limits)
	f.integer("min_tokens", &o.MinTokens)
	f.boolean("ignore_eos", &o.IgnoreEnd)
	skip := true
	f.boolean("skip_special_tokens", &skip)
	o.KeepSpecial = !skip
	if f.text("cache_salt", &o.CacheSalt) && (o.CacheSalt == "" || len(o.CacheSalt) > maxSaltBytes) {
		f.invalid("cache_salt", "must have from 1 to %d bytes", maxSaltBytes)
	}

	f.ignore("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
		"prompt_cache_options", "verbosity", "prediction", "keep_alive")
	f.unhonoured(p.RepetitionPenalty != 1 || p.FrequencyPenalty != 0 || p.PresencePenalty != 0)
	f.check(*p, limits.Vocab)
	return g
}

// repetition reads repetition_penalty, which llama.cpp calls repeat_penalty.
func (f *fields) repetition(p *sample.Params) {
	given, other := f.number("repetition_penalty", &p.RepetitionPenalty), p.RepetitionPenalty
	if f.number("repeat_penalty", &other); given && other != p.RepetitionPenalty {
		f.invalid("repeat_penalty", "is %g and repetition_penalty is %g, but they are two names of one thing", other, p.RepetitionPenalty)
	}
	p.RepetitionPenalty = other
}

// predict reads n_predict, llama.cpp's name of max_tokens.
func (f *fields) predict(to *int, given bool) {
	n := 0
	switch before := *to; {
	case !f.integer("n_predict", &n):
	case given && n != before && !(n == -1 && before == 0):
		f.invalid("n_predict", "is %d and max_tokens is %d, but they are two names of one thing", n, before)
	case n == 0 && f.route == chatRoute:
		f.invalid("n_predict", "is 0, must be -1 or at least 1 here")
	case !given:
		*to = max(n, 0)
	}
}

// check lets package sample have the last word on ranges.
func (f *fields) check(p sample.Params, vocab int32) {
	if f.err != nil {
		return
	}
	if bad, ok := errors.AsType[*sample.FieldError](p.Validate(vocab)); ok {
		f.invalid(bad.Field, "%s", bad.Reason)
	}
}

func (f *fields) streaming(g *Generation) {
	f.boolean("stream", &g.Stream)
	d := f.dict("stream_options")
	if d == nil {
		return
	}
	if !g.Stream {
		f.invalid("stream_options", "is only allowed where stream is true")
		return
	}
	o := f.inner(d, "stream_options")
	o.boolean("include_usage", &g.IncludeUsage)
	o.refuse("include_obfuscation", isFalse)
	if o.err != nil {
		f.fail(o.err)
	}
}

func (f *fields) choices(o *completion.Options, limits Limits) {
	if f.integer("n", &o.Choices) && o.Choices > limits.Choices {
		f.fail(TooMuch(LimitChoices, "n", "n is %d, this server makes at most %d answers to one prompt.", o.Choices, limits.Choices))
	}
	best := o.Choices
	f.integer("best_of", &best)
	switch {
	case best > o.Choices:
		f.fail(Unsupported("best_of", "best_of is %d: this server makes as many answers as it returns, so it must not be more than n.", best))
	case best < o.Choices && best != 0:
		f.invalid("best_of", "is %d, must not be less than n, which is %d", best, o.Choices)
	}
}

// stops reads stop, a string or a list of them, and stop_token_ids.
func (f *fields) stops(o *completion.Options, limits Limits) {
	switch v := f.take("stop").(type) {
	case nil:
	case jsontree.String:
		o.Stop = []string{string(v)}
	case jsontree.Array:
		for i, item := range v {
			s, ok := item.(jsontree.String)
			if !ok {
				f.invalid("stop", "must hold strings; entry %d is %s", i, item.Kind())
				return
			}
			if i == limits.Stops {
				f.fail(TooMuch(LimitStops, "stop", "stop has %d entries, at most %d are allowed.", len(v), limits.Stops))
				return
			}
			o.Stop = append(o.Stop, string(s))
		}
	default:
		f.wrongKind("stop", "a string or an array of strings", v)
	}
	for _, stop := range o.Stop {
		if stop == "" {
			f.invalid("stop", "must not hold an empty string")
		} else if len(stop) > limits.StopBytes {
			f.fail(TooMuch(LimitStops, "stop", "stop holds a string of %d bytes, at most %d are allowed.", len(stop), limits.StopBytes))
		}
	}
	items := f.list("stop_token_ids")
	if len(items) > limits.StopTokens {
		f.fail(TooMuch(LimitStops, "stop_token_ids", "stop_token_ids has %d entries, at most %d are allowed.", len(items), limits.StopTokens))
		return
	}
	if items != nil {
		o.StopTokens = f.tokens("stop_token_ids", items, limits.Vocab)
	}
}

// bias reads logit_bias: token ids, written as JSON keys must be, with a number for each.
func (f *fields) bias(p *sample.Params, limits Limits) {
	d := f.dict("logit_bias")
	if d == nil {
		return
	}
	if d.Len() > limits.Biases {
		f.fail(TooMuch(LimitBiases, "logit_bias", "logit_bias has %d entries, at most %d are allowed.", d.Len(), limits.Biases))
		return
	}
	limit := rangeOf(f.route, "logit_bias")
	p.LogitBias = make(map[int32]float32, d.Len())
	for key, v := range d.All() {
		id, err := strconv.ParseInt(key, 10, 64)
		n, number := v.(jsontree.Number)
		bias, fits := n.Float()
		switch {
		case err != nil || strconv.FormatInt(id, 10) != key:
			f.invalid("logit_bias", "must have token ids as keys, not %q", clip(key, 40))
		case id < 0 || id >= int64(limits.Vocab):
			f.invalid("logit_bias", "names token %d, the vocabulary has %d", id, limits.Vocab)
		case !number:
			f.invalid("logit_bias", "of token %d must be a number, not %s", id, v.Kind())
		case !fits || !limit.holds(bias):
			f.invalid("logit_bias", "of token %d is %.40s, must be %s", id, string(n), limit)
		default:
			p.LogitBias[int32(id)] = float32(bias)
		}
	}
}
