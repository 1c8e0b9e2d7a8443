package targets

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/targets/strict"
)

// Model is what a publisher says about a model, and how the model is known. Sampling counts only where a checkpoint says nothing itself.
type Model struct {
	Name     string   // of its file: "smollm2"
	File     string   // relative to the folder of this package
	Source   string   `toml:"source"`   // where the publisher says so
	Match    Match    `toml:"match"`    // which checkpoints it is about
	Sampling Sampling `toml:"sampling"` // recommended values; of a model that can think with and without, those for thinking
	Plain    Sampling `toml:"plain"`    // recommended values for answers without thoughts, where they differ
	Thinking Thinking `toml:"thinking"` // what it thinks before it answers
	Tools    Tools    `toml:"tools"`    // how it calls tools
	End      []string `toml:"end"`      // texts of tokens that end an answer besides those that the checkpoint names

	names []*regexp.Regexp
	lines *strict.Lines
}

// Match says which checkpoints a Model is about: all three must hold.
type Match struct {
	Architectures []string `toml:"architectures"` // model_type is one of these
	Names         []string `toml:"names"`         // regular expressions: one is about the whole of one of the checkpoint's names, as plainName writes it
	Template      []string `toml:"template"`      // texts that its chat template has, each of them; none: any template, or no template
}

// Sampling is the values that a publisher recommends; nil where nothing is said. Their meaning is that of the same fields of sample.Params.
type Sampling struct {
	// By the names of generation_config.json.
	Temperature       *float64 `toml:"temperature"`
	TopP              *float64 `toml:"top_p"`
	TopK              *int64   `toml:"top_k"`
	MinP              *float64 `toml:"min_p"`
	RepetitionPenalty *float64 `toml:"repetition_penalty"`
	PresencePenalty   *float64 `toml:"presence_penalty"`
}

// Thinking is how a model thinks. What is absent the chat template tells.
type Thinking struct {
	Default   *bool  `toml:"default"`   // whether it thinks where a request says nothing
	Budget    *int64 `toml:"budget"`    // most tokens of thoughts where a request says nothing; absent or 0: no bound
	Close     string `toml:"close"`     // what ends thoughts that reach their budget, with the mark that closes them
	Reasoning string `toml:"reasoning"` // format of its thoughts: one of ReasoningFormats, or none
}

// Tools is how a model calls tools.
type Tools struct {
	Format string `toml:"format"` // one of ToolFormats, or none: calls are not looked for
}

// ReasoningFormats are the formats of thoughts that files may name.
func ReasoningFormats() []string { return []string{"think", "mistral", "gemma"} }

// ToolFormats are the formats of calls that files may name.
func ToolFormats() []string {
	return []string{"hermes", "qwen3_coder", "nemotron", "minimax", "mistral", "gemma4", "llama3_json", "json"}
}

// NoFormat is the name that stands for no format.
const NoFormat = "none"

// Identity is what tells a checkpoint's model.
type Identity struct {
	Architecture string   // its model_type
	Names        []string // of its folder or file, and those that it has inside
	Template     string   // of conversations
}

// Models reads every model in files, sorted by name. The error joins Problems where content is to blame.
func Models(files fs.FS) ([]*Model, error) {
	var all []*Model
	err := read(files, "models", func(name, file, text string) []strict.Problem {
		m := &Model{Name: name, File: file}
		all = append(all, m)
		var wrong []strict.Problem
		if m.lines, wrong = strict.Decode(text, m); wrong == nil {
			wrong = m.check()
		}
		return wrong
	})
	return all, err
}

// Matching are the models that a checkpoint may be. More than one means that nobody knows.
func Matching(models []*Model, c Identity) (all []*Model) {
	for _, m := range models {
		if m.is(c) {
			all = append(all, m)
		}
	}
	return all
}

func (m *Model) is(c Identity) bool {
	named := slices.ContainsFunc(c.Names, func(name string) bool {
		name = plainName(name)
		return slices.ContainsFunc(m.names, func(r *regexp.Regexp) bool { return r.MatchString(name) })
	})
	lacks := func(piece string) bool { return !strings.Contains(c.Template, piece) }
	return named && slices.Contains(m.Match.Architectures, c.Architecture) && !slices.ContainsFunc(m.Match.Template, lacks)
}

// formatWord is the end of a name that tells how weights are stored, or which part of them a file is, not which model they are of.
var formatWord = regexp.MustCompile(`[-.]([0-9]{5}-of-[0-9]{5}|gguf|hf|mlx|unsloth|bnb|bf16|f16|f32|fp16|fp8|fp4|nvfp4|mxfp4|int[48]|[48]bit|awq|gptq|w[48]a(4|8|16)|dynamic|block|quantized|imat|i1|ud|i?q[1-8](-[a-z0-9]+){0,3}|tq[12]-0|mxfp4-moe)$`)

// plainName is a name without its owner and without words for formats at its end, in small letters, its words joined by dashes:
// "Qwen/Qwen3_8B-GGUF" and "Qwen3 8B" are "qwen3-8b".
func plainName(name string) string {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-_: \t\n", r) }), "-")
	for {
		shorter := formatWord.ReplaceAllString(name, "")
		if shorter == name {
			return name
		}
		name = shorter
	}
}
