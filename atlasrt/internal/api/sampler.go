package api

import (
	"math"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// SamplerRanges are the numeric fields of Samplers, but for the temperature, on which APIs differ.
func SamplerRanges() []Range {
	return []Range{
		{Name: "top_p", Low: 0, High: 1}, // 0 takes the likeliest token
		{Name: "min_p", Low: 0, High: 1},
		{Name: "top_k", Low: -1, High: Most, Whole: true}, // -1 and 0 are all
		{Name: "presence_penalty", Low: -2, High: 2},
		{Name: "frequency_penalty", Low: -2, High: 2},
		{Name: "repetition_penalty", Low: 0, High: 100, LowOpen: true},
		{Name: "repeat_penalty", Low: 0, High: 100, LowOpen: true},
		{Name: "seed", Low: math.MinInt64, High: math.MaxInt64, Whole: true},
		{Name: "top_n_sigma", Low: -1, High: 100}, // less than 0 is off, as in llama.cpp
		{Name: "nsigma", Low: -1, High: 100},
		{Name: "xtc_probability", Low: 0, High: 1},
		{Name: "xtc_threshold", Low: 0, High: 1},
		{Name: "adaptive_entropy", Low: 0, High: 100}, // in nats
		{Name: "dry_multiplier", Low: 0, High: 100},
		{Name: "dry_base", Low: 0, High: 100},
		{Name: "dry_allowed_length", Low: 0, High: Most, Whole: true},
		{Name: "dry_penalty_last_n", Low: -1, High: Most, Whole: true}, // -1 is all, 0 is off
		{Name: "dry_range", Low: 0, High: Most, Whole: true},           // 0 is all
		{Name: "lz_penalty", Low: 0, High: 100},
		{Name: "repeat_last_n", Low: -1, High: Most, Whole: true}, // as dry_penalty_last_n, and so is the next one
		{Name: "penalty_last_n", Low: -1, High: Most, Whole: true},
		{Name: "repetition_penalty_range", Low: -1, High: Most, Whole: true}, // -1 and 0 say nothing, here and below
		{Name: "rep_pen_range", Low: -1, High: Most, Whole: true},
		{Name: "penalty_range", Low: -1, High: Most, Whole: true},
	}
}

// Samplers reads how tokens are drawn and what is ruled out, with what other servers (vLLM, llama.cpp, text-generation-webui) honour of it, on
// every route, within SamplerRanges and a range of the temperature.
func (f *Fields) Samplers(r *Request, limits Limits) {
	p := &r.Options.Sampling
	f.usual(p)
	p.TopNSigma = f.twoNames("top_n_sigma", "nsigma")
	if p.TopNSigma != nil {
		*p.TopNSigma = max(*p.TopNSigma, 0)
	}
	p.XTCProbability, p.XTCThreshold = f.GivenNumber("xtc_probability"), f.GivenNumber("xtc_threshold")
	p.LZPenalty = f.GivenNumber("lz_penalty")
	f.adaptive(p)
	f.dry(&r.Options)
	f.windows(p)
	f.bans(r, limits)
	if items := f.List("allowed_token_ids"); len(items) > 0 {
		p.Allowed = f.Tokens("allowed_token_ids", items)
	}
	f.otherSamplers(r)
}

// usual reads what nearly all servers have.
func (f *Fields) usual(p *sample.Given) {
	p.Temperature, p.TopP, p.MinP = f.GivenNumber("temperature"), f.GivenNumber("top_p"), f.GivenNumber("min_p")
	p.PresencePenalty, p.FrequencyPenalty = f.GivenNumber("presence_penalty"), f.GivenNumber("frequency_penalty")
	p.RepetitionPenalty = f.twoNames("repetition_penalty", "repeat_penalty") // the second is llama.cpp's
	var topK, seed int
	if f.Integer("top_k", &topK) {
		p.TopK = new(int32(max(topK, 0)))
	}
	if f.Integer("seed", &seed) {
		p.Seed = new(int64(seed))
	}
}

// maxSaltBytes bounds cache_salt.
const maxSaltBytes = 256

// Salt reads what sets the cached prompts of some requests apart from those of others.
func (f *Fields) Salt(o *completion.Options) {
	if f.Text("cache_salt", &o.CacheSalt) && (o.CacheSalt == "" || len(o.CacheSalt) > maxSaltBytes) {
		f.Invalid("cache_salt", "must have from 1 to %d bytes", maxSaltBytes)
	}
}

// twoNames reads a number that two servers call differently.
func (f *Fields) twoNames(name, other string) *float32 {
	given, also := f.GivenNumber(name), f.GivenNumber(other)
	switch {
	case also == nil:
		return given
	case given != nil && *given != *also:
		f.Invalid(other, "is %g and %s is %g, but they are two names of one thing", *also, name, *given)
	}
	return also
}

// adaptive reads whether draws of a distribution with little entropy take the likeliest token.
func (f *Fields) adaptive(p *sample.Given) {
	on := true
	if f.Bool("adaptive_sampling", &on) {
		p.Adaptive = &on
	}
	if p.MinEntropy = f.GivenNumber("adaptive_entropy"); p.MinEntropy != nil && !on {
		f.Invalid("adaptive_entropy", "is the bound of adaptive_sampling, which is false; leave one of them out")
	}
}

// dry reads DRY. llama.cpp and text-generation-webui say differently how far it looks back.
func (f *Fields) dry(o *completion.Options) {
	p, n := &o.Sampling, 0
	p.DRYMultiplier, p.DRYBase = f.GivenNumber("dry_multiplier"), f.GivenNumber("dry_base")
	if f.Integer("dry_allowed_length", &n) {
		p.DRYAllowedLength = new(int32(n))
	}
	if f.Integer("dry_range", &n) {
		p.DRYRange = new(int32(n))
	}
	if f.Integer("dry_penalty_last_n", &n) {
		if n == 0 {
			p.DRYMultiplier = new(float32(0))
		}
		if n = max(n, 0); p.DRYRange != nil && int(*p.DRYRange) != n {
			f.Invalid("dry_range", "is %d and dry_penalty_last_n another number, but they are two names of one thing", *p.DRYRange)
		}
		p.DRYRange = new(int32(n))
	}
	o.Breakers = f.breakers()
}

// breakers reads dry_sequence_breakers: an array of texts, or a text that holds one, with or without its brackets. nil: none are given.
func (f *Fields) breakers() (texts []string) {
	const name = "dry_sequence_breakers"
	v := f.Take(name)
	if text, ok := v.(jsontree.String); ok {
		inner := strings.TrimSpace(string(text))
		if !strings.HasPrefix(inner, "[") {
			inner = "[" + inner + "]"
		}
		var err error
		if v, err = jsontree.Decode([]byte(inner), jsontree.Limits{}); err != nil {
			f.Invalid(name, "must be an array of texts, or a text such as %s", `"\n", ":"`)
			return nil
		}
	}
	if v == nil {
		return nil
	}
	list, ok := v.(jsontree.Array)
	switch {
	case !ok:
		f.WrongKind(name, "an array of texts", v)
	case len(list) > sample.MaxBreakers:
		f.Invalid(name, "has %d entries, at most %d are allowed", len(list), sample.MaxBreakers)
	}
	texts = []string{}
	for i, item := range list {
		text, ok := item.(jsontree.String)
		switch {
		case !ok:
			f.Invalid(name, "must hold texts; entry %d is %s", i, item.Kind())
		case text == "" || len(text) > sample.MaxBreakerBytes:
			f.Invalid(name, "must hold texts of 1 to %d bytes; entry %d has %d", sample.MaxBreakerBytes, i, len(text))
		}
		texts = append(texts, string(text))
	}
	return texts
}

// windows reads how many of the last tokens are penalised. Servers agree on what a positive number is.
func (f *Fields) windows(p *sample.Given) {
	from := ""
	for _, name := range []string{"repeat_last_n", "penalty_last_n", "repetition_penalty_range", "rep_pen_range", "penalty_range"} {
		n := 0
		if !f.Integer(name, &n) || n <= 0 && name != "repeat_last_n" && name != "penalty_last_n" {
			continue
		}
		if p.Window != nil && int(*p.Window) != n {
			f.Invalid(name, "is %d and %s is %d, but they are two names of one thing", n, from, *p.Window)
		}
		p.Window, from = new(int32(n)), name
	}
}

// bans reads texts and tokens that are not to come.
func (f *Fields) bans(r *Request, limits Limits) {
	o := &r.Options
	if items := f.List("bad_words"); len(items) > 0 && f.AtMost(LimitBiases, "bad_words", len(items), limits.BadWords) {
		o.BadWords = f.texts("bad_words", items, limits.StopBytes)
	}
	banned := func(name string, words [][]int32) {
		if words != nil && f.AtMost(LimitBiases, name, len(words), limits.Biases) {
			o.Sampling.BadWords, r.Bans = append(o.Sampling.BadWords, words...), name
		}
	}
	var words [][]int32
	for i, item := range f.List("bad_words_ids") {
		name := "bad_words_ids[" + strconv.Itoa(i) + "]"
		list, ok := item.(jsontree.Array)
		switch {
		case !ok:
			f.WrongKind(name, "an array of token ids", item)
		case len(list) == 0 || len(list) > limits.StopBytes:
			f.Invalid(name, "has %d token ids, must have from 1 to %d", len(list), limits.StopBytes)
		}
		words = append(words, f.Tokens(name, list))
	}
	banned("bad_words_ids", words)
	for _, name := range []string{"banned_tokens", "custom_token_bans"} {
		banned(name, singles(f.tokenList(name)))
	}
}

// texts makes texts of the items of an array, none of them empty.
func (f *Fields) texts(name string, items jsontree.Array, most int) (texts []string) {
	for i, item := range items {
		text, ok := item.(jsontree.String)
		switch {
		case !ok:
			f.Invalid(name, "must hold texts; entry %d is %s", i, item.Kind())
		case strings.TrimSpace(string(text)) == "" || len(text) > most:
			f.Invalid(name, "must hold texts of 1 to %d bytes that are not blank; entry %d is none", most, i)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// tokenList reads token ids: an array of them, or a text with commas between them.
func (f *Fields) tokenList(name string) (ids []int32) {
	switch v := f.Take(name).(type) {
	case nil:
	case jsontree.Array:
		return f.Tokens(name, v)
	case jsontree.String:
		for _, text := range strings.FieldsFunc(string(v), func(c rune) bool { return c == ',' || c == ' ' }) {
			id, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				f.Invalid(name, "must be token ids with commas between them, and %q is no id", Clip(text, 40))
				return nil
			}
			ids = append(ids, int32(id))
		}
	default:
		f.WrongKind(name, "an array of token ids", v)
	}
	return ids
}

// singles makes a word of each token.
func singles(tokens []int32) (words [][]int32) {
	for _, token := range tokens {
		words = append(words, []int32{token})
	}
	return words
}
