package api

import (
	"errors"
	"maps"
	"math"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jinja"
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
	Model        string // as the client wrote it; never empty
	Stream       bool
	IncludeUsage bool // at the end of a stream
	Seeded       bool // the client chose Options.Sampling.Seed; else it is 0 and the caller should draw one
	Options      completion.Options
	Unknown      int // request fields that are not known
}

// most is the largest integer that fields without a bound of their own may have.
const most = math.MaxInt32

// maxSaltBytes bounds cache_salt.
const maxSaltBytes = 256

// generation reads the fields of both request kinds. defaults are the sampling parameters of the checkpoint.
func (f *fields) generation(limits Limits, defaults sample.Params) Generation {
	g := Generation{Options: completion.Options{Choices: 1, LogProbs: -1, Sampling: defaults}}
	o, p := &g.Options, &g.Options.Sampling
	if !f.text("model", &g.Model) && f.err == nil {
		f.invalid("model", "is required: the name of a model that GET /v1/models lists")
	}
	f.streaming(&g)

	f.number("temperature", &p.Temperature, 0, 2)
	f.number("top_p", &p.TopP, 0, 1)
	f.number("min_p", &p.MinP, 0, 1)
	f.number("presence_penalty", &p.PresencePenalty, -2, 2)
	f.number("frequency_penalty", &p.FrequencyPenalty, -2, 2)
	f.number("repetition_penalty", &p.RepetitionPenalty, 0, 100)
	topK := int(p.TopK)
	if f.integer("top_k", &topK, -1, most) {
		p.TopK = int32(max(topK, 0)) // -1 means all, as elsewhere
	}
	seed := 0
	if g.Seeded = f.integer("seed", &seed, math.MinInt64, math.MaxInt64); g.Seeded {
		p.Seed = int64(seed)
	}
	p.LogitBias = maps.Clone(defaults.LogitBias)
	f.bias(p, limits)

	f.choices(o, limits)
	f.stops(o, limits)
	f.integer("min_tokens", &o.MinTokens, 0, most)
	f.boolean("ignore_eos", &o.IgnoreEnd)
	skip := true
	f.boolean("skip_special_tokens", &skip)
	o.KeepSpecial = !skip
	if f.text("cache_salt", &o.CacheSalt) && (o.CacheSalt == "" || len(o.CacheSalt) > maxSaltBytes) {
		f.invalid("cache_salt", "must have from 1 to %d bytes", maxSaltBytes)
	}

	f.ignore("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
		"prompt_cache_options", "verbosity", "prediction")
	f.unhonoured()
	f.check(*p, limits.Vocab)
	return g
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
	o := newFields(d, "stream_options.")
	o.boolean("include_usage", &g.IncludeUsage)
	o.refuse("include_obfuscation", isFalse)
	if o.err != nil {
		f.fail(o.err)
	}
}

func (f *fields) choices(o *completion.Options, limits Limits) {
	if f.integer("n", &o.Choices, 1, most) && o.Choices > limits.Choices {
		f.fail(TooMuch(LimitChoices, "n", "n is %d, this server makes at most %d answers to one prompt.", o.Choices, limits.Choices))
	}
	best := o.Choices
	f.integer("best_of", &best, 0, most)
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
	case jinja.Str:
		o.Stop = []string{v.Text()}
	case *jinja.List:
		for i, item := range v.Items() {
			s, ok := item.(jinja.Str)
			if !ok {
				f.invalid("stop", "must hold strings; entry %d is %s", i, kind(item))
				return
			}
			if i == limits.Stops {
				f.fail(TooMuch(LimitStops, "stop", "stop has %d entries, at most %d are allowed.", len(v.Items()), limits.Stops))
				return
			}
			o.Stop = append(o.Stop, s.Text())
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

// bias reads logit_bias: token ids, written as JSON keys must be, with numbers from -100 to 100.
func (f *fields) bias(p *sample.Params, limits Limits) {
	d := f.dict("logit_bias")
	if d == nil {
		return
	}
	if d.Len() > limits.Biases {
		f.fail(TooMuch(LimitBiases, "logit_bias", "logit_bias has %d entries, at most %d are allowed.", d.Len(), limits.Biases))
		return
	}
	p.LogitBias = make(map[int32]float32, d.Len())
	d.Each(func(key string, v jinja.Value) {
		id, err := strconv.ParseInt(key, 10, 64)
		bias, number := realNumber(v)
		switch {
		case err != nil || strconv.FormatInt(id, 10) != key:
			f.invalid("logit_bias", "must have token ids as keys, not %q", clip(key, 40))
		case id < 0 || id >= int64(limits.Vocab):
			f.invalid("logit_bias", "names token %d, the vocabulary has %d", id, limits.Vocab)
		case !number:
			f.invalid("logit_bias", "of token %d must be a number, not %s", id, kind(v))
		case !(bias >= -100 && bias <= 100):
			f.invalid("logit_bias", "of token %d is %g, must be from -100 to 100", id, bias)
		default:
			p.LogitBias[int32(id)] = float32(bias)
		}
	})
}

// unhonoured names what other servers offer and this one does not. To ignore these would be to answer another question
// than the one that was asked.
func (f *fields) unhonoured() {
	for _, name := range []string{
		"prompt_embeds", "image_embeds", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
		"structured_outputs", "json_schema", "grammar", "logits_processors", "truncate_prompt_tokens", "kv_transfer_params",
	} {
		f.refuse(name, never)
	}
	f.refuse("bad_words", empty)
	f.refuse("allowed_token_ids", empty)
	f.refuse("prompt_logprobs", isFalse)
	f.refuse("use_beam_search", isFalse)
	f.refuse("include_stop_str_in_output", isFalse)
	f.refuse("priority", isZero)
}
