package targets

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/targets/strict"
)

// Model is what a publisher says about a model, and how the model is known. It counts only where a checkpoint says nothing itself.
type Model struct {
	Name     string   // of its file: "smollm2"
	File     string   // relative to the folder of this package
	Source   string   `toml:"source"`   // where the publisher says so
	Match    Match    `toml:"match"`    // which checkpoints it is about
	Sampling Sampling `toml:"sampling"` // recommended values

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
}

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

// check finds what types alone do not tell.
func (m *Model) check() []strict.Problem {
	var problems []strict.Problem
	report := func(key, format string, args ...any) {
		problems = append(problems, strict.Problem{Line: max(1, m.lines.At(key)), Msg: fmt.Sprintf(format, args...)})
	}
	if m.Source == "" {
		report("source", "key \"source\" is missing: say where the publisher states these values")
	}
	if len(m.Match.Architectures) == 0 || len(m.Match.Names) == 0 {
		report("match", "keys \"architectures\" and \"names\" of match must list something")
	}
	for _, text := range m.Match.Names {
		r, err := regexp.Compile("^(?:" + text + ")$")
		if err != nil {
			report("match.names", "%v", err)
			continue
		}
		m.names = append(m.names, r)
	}
	if slices.Contains(m.Match.Template, "") {
		report("match.template", "a text of template is empty")
	}
	if m.Sampling == (Sampling{}) {
		report("sampling", "sampling says nothing")
	}
	between := func(key string, value *float64, low, high float64) {
		if value != nil && !(*value >= low && *value <= high) {
			report("sampling."+key, "%s is %v, want %v to %v", key, *value, low, high)
		}
	}
	between("temperature", m.Sampling.Temperature, 0, 2)
	between("top_p", m.Sampling.TopP, 0.01, 1)
	between("min_p", m.Sampling.MinP, 0, 1)
	between("repetition_penalty", m.Sampling.RepetitionPenalty, 0.5, 2)
	if k := m.Sampling.TopK; k != nil && (*k < 0 || *k > 1<<20) {
		report("sampling.top_k", "top_k is %d, want 0 to %d", *k, 1<<20)
	}
	return problems
}
