package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/targets"
)

// answerFlags say how conversations are answered, in place of what is known of the model.
type answerFlags struct {
	ToolCallParser            string   `help:"How the model writes calls of tools: ${tool_formats}. auto: as its facts say, or else its chat template; none: calls are not looked for." enum:"auto,none,${tool_formats}" default:"auto"`
	ReasoningParser           string   `help:"How the model marks thoughts: ${reasoning_formats}. auto: as its facts say, or else its chat template; none: they are text." enum:"auto,none,${reasoning_formats}" default:"auto"`
	DefaultChatTemplateKwargs string   `help:"JSON object of variables of the chat template, where a request does not set them." placeholder:"JSON"`
	DisableThinking           bool     `help:"No request gets thoughts, whatever it asks."`
	MaxThinkingBudget         int      `help:"Most tokens of thoughts that a request may ask for; 0: no bound."`
	ThinkingFloor             int      `help:"Tokens of an answer that are kept for the text behind its thoughts; 0: none."`
	ToolMaxTokens             int      `help:"Most tokens of an answer to a request with tools that sets no bound itself; 0: as many as the context leaves."`
	JSONSpaces                string   `name:"json-spaces" help:"White space in JSON answers that have a form: compact has none, spaced has one blank behind commas and colons, flexible leaves it to the model." enum:"compact,spaced,flexible" default:"compact"`
	DefaultMinP               *float32 `name:"default-min-p" help:"min_p of requests that say none: tokens less probable than this share of the likeliest are ruled out." placeholder:"P"`
	DefaultTopNSigma          *float32 `name:"default-top-n-sigma" help:"top_n_sigma of requests that say none: logits that lie more standard deviations below the largest are ruled out." placeholder:"N"`
	AdaptiveSampling          bool     `help:"Where a request says nothing else, the likeliest token is taken wherever the model is sure: where its distribution has less entropy than --adaptive-entropy."`
	AdaptiveEntropy           float32  `help:"Entropy, in nats, below which --adaptive-sampling takes the likeliest token." default:"${adaptive_entropy}"`
	ModelFacts                string   `help:"TOML file with what is known of the model, of the form of targets/models; [match] is not needed. It counts more than the checkpoint and the program's own facts, key by key." type:"existingfile" placeholder:"FILE"`
}

// formatNames are what the flags' help and checks call formats.
func formatNames() kong.Vars {
	return kong.Vars{"adaptive_entropy": fmt.Sprint(sample.AdaptiveEntropy), "tool_formats": strings.Join(parse.ToolFormats(), ","), "reasoning_formats": strings.Join(parse.ReasoningFormats(), ",")}
}

// Validate implements kong's check.
func (f answerFlags) Validate() error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"--max-thinking-budget", f.MaxThinkingBudget}, {"--thinking-floor", f.ThinkingFloor}, {"--tool-max-tokens", f.ToolMaxTokens}} {
		if n.value < 0 {
			return fmt.Errorf("%s %d is no number of tokens (choose 0 or more)", n.flag, n.value)
		}
	}
	if _, err := f.variables(); err != nil {
		return err
	}
	p := f.sampling().Params()
	if wrong, ok := errors.AsType[*option.Error](p.Validate(1)); ok {
		flag := map[option.Name]string{option.MinP: "--default-min-p", option.TopNSigma: "--default-top-n-sigma", option.MinEntropy: "--adaptive-entropy"}[wrong.Option]
		return fmt.Errorf("%s %s", flag, wrong.Reason)
	}
	_, err := f.operator()
	return err
}

// sampling is what flags say of requests that say nothing.
func (f answerFlags) sampling() instance.Defaults {
	d := instance.Defaults{MinP: f.DefaultMinP, TopNSigma: f.DefaultTopNSigma}
	if f.AdaptiveSampling {
		d.MinEntropy = &f.AdaptiveEntropy
	}
	return d
}

const kwargsFlag = "--default-chat-template-kwargs"

// variables are those that --default-chat-template-kwargs sets.
func (f answerFlags) variables() (*jsontree.Object, error) {
	if f.DefaultChatTemplateKwargs == "" {
		return nil, nil
	}
	tree, err := jsontree.Decode([]byte(f.DefaultChatTemplateKwargs), jsontree.Limits{})
	if err != nil {
		return nil, fmt.Errorf(`%s: %w (write an object, such as {"enable_thinking": false})`, kwargsFlag, err)
	}
	o, ok := tree.(*jsontree.Object)
	if !ok {
		return nil, fmt.Errorf(`%s is %s (write an object, such as {"enable_thinking": false})`, kwargsFlag, tree.Kind())
	}
	for name, value := range o.All() {
		if !chat.Settable(name) {
			return nil, fmt.Errorf("%s sets %q, which is not for variables to set", kwargsFlag, name)
		}
		_, isBool := value.(jsontree.Bool)
		_, isText := value.(jsontree.String)
		if (name == "enable_thinking" || name == "thinking") && !isBool {
			return nil, fmt.Errorf("%s: %s must be true or false", kwargsFlag, name)
		}
		if name == "reasoning_effort" && !isText {
			return nil, fmt.Errorf("%s: %s must be a string, such as \"high\" or \"none\"", kwargsFlag, name)
		}
	}
	return o, nil
}

// operator is what flags and the file of --model-facts say, what counts most first.
func (f answerFlags) operator() ([]instance.Facts, error) {
	given := func(name string) string { return strings.TrimPrefix(name, "auto") }
	thinks := instance.Facts{From: kwargsFlag, Operator: true}
	variables, err := f.variables()
	if err != nil {
		return nil, err
	}
	for name, value := range variables.All() {
		switch v := value.(type) {
		case jsontree.Bool:
			if name == "enable_thinking" || name == "thinking" {
				thinks.Thinking = new(bool(v))
			}
		case jsontree.String:
			if name == "reasoning_effort" && thinks.Thinking == nil {
				thinks.Thinking = new(v != "none")
			}
		}
	}
	drawn := f.sampling()
	all := []instance.Facts{
		{From: "--tool-call-parser", Operator: true, Tools: given(f.ToolCallParser)},
		{From: "--reasoning-parser", Operator: true, Reasoning: given(f.ReasoningParser)},
		thinks,
		{From: "flag", Operator: true, Sampling: drawn, Plain: drawn},
	}
	if f.ModelFacts == "" {
		return all, nil
	}
	text, err := os.ReadFile(f.ModelFacts)
	if err != nil {
		return nil, fmt.Errorf("--model-facts: %w", err)
	}
	m, err := targets.ParseModel(f.ModelFacts, string(text))
	if err != nil {
		return nil, fmt.Errorf("--model-facts: %w", err)
	}
	file := facts(m, "--model-facts")
	file.Operator = true
	return append(all, file), nil
}

// text reads how a checkpoint's model reads and writes, with what is known of it, and logs what its files leave open.
func (f answerFlags) text(model modelFlags, c weights.Checkpoint, log *slog.Logger) (*instance.Text, error) {
	text, err := instance.OpenText(c)
	if err != nil {
		return nil, err
	}
	known, err := f.operator()
	if err != nil {
		return nil, err
	}
	preset, err := model.preset(c, text, log)
	if err != nil {
		return nil, err
	}
	if text.Variables, err = f.variables(); err != nil {
		return nil, err
	}
	text.Policy = instance.Policy{NoThinking: f.DisableThinking, MaxBudget: f.MaxThinkingBudget, Floor: f.ThinkingFloor, ToolTokens: f.ToolMaxTokens, Notation: grammar.Notation(f.JSONSpaces)}
	text.Learn(append(known, preset...)...)
	for _, line := range text.Notes {
		log.Warn(line)
	}
	for _, line := range text.Details {
		log.Info(line)
	}
	return text, nil
}

// facts are what a file says of a model.
func facts(m *targets.Model, from string) instance.Facts {
	return instance.Facts{
		From: from, Sampling: defaults(m.Sampling), Plain: defaults(m.Plain), Thinking: m.Thinking.Default, Budget: narrow[int](m.Thinking.Budget),
		Close: m.Thinking.Close, Reasoning: m.Thinking.Reasoning, Tools: m.Tools.Format, End: m.End,
	}
}

func defaults(s targets.Sampling) instance.Defaults {
	return instance.Defaults{
		Temperature: narrow[float32](s.Temperature), TopP: narrow[float32](s.TopP), TopK: narrow[int32](s.TopK), MinP: narrow[float32](s.MinP),
		RepetitionPenalty: narrow[float32](s.RepetitionPenalty), PresencePenalty: narrow[float32](s.PresencePenalty),
	}
}

// narrow keeps what is absent absent.
func narrow[To, From float32 | float64 | int | int32 | int64](value *From) *To {
	if value == nil {
		return nil
	}
	narrowed := To(*value)
	return &narrowed
}
