package parse

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// former holds answers to a form. Its tokens are the bytes, and behind them the control tokens of a parser.
type former struct {
	grammar  *grammar.Grammar
	tokens   [][]byte
	controls []string
}

func newFormer(t testing.TB, c Config, s grammar.Spec) *former {
	t.Helper()
	f := &former{controls: c.Controls()}
	for b := range 256 {
		f.tokens = append(f.tokens, []byte{byte(b)})
	}
	for _, mark := range f.controls {
		f.tokens = append(f.tokens, []byte(mark))
	}
	v := match.NewVocabulary(f.tokens, func(id int32) bool { return id >= 256 })
	var err error
	if f.grammar, err = grammar.Compile(context.Background(), s, v, grammar.Limits{}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *former) token(a atom) int32 {
	if a.control {
		return int32(256 + slices.Index(f.controls, a.text))
	}
	return int32(a.text[0])
}

// accepts tells whether an answer is of the form, and how much of it fits.
func (f *former) accepts(answer []atom) (ok bool, fits string) {
	s := f.grammar.Start()
	for _, a := range answer {
		next, ok := s.Next(f.token(a))
		if !ok {
			return false, fits
		}
		s, fits = next, fits+a.text
	}
	return s.Done(), fits
}

// held compares with a form what a template made of a turn.
func (u *turn) held(t *testing.T, tools, reasoning, answer string) {
	schema, err := jsontree.Decode([]byte(weather), jsontree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, strict := range []bool{false, true} {
		config := Config{Tools: FindTools(tools), Reasoning: FindReasoning(reasoning)}
		config.Declared = []chat.Tool{{Name: "weather", Parameters: schema, Strict: strict}, {Name: "none", Strict: strict}}
		for _, control := range []bool{false, true} {
			if control {
				config.Control = controlsOf(&config)
			}
			pieces := atoms(&config, answer)
			for _, c := range []struct {
				choice Choice
				want   bool
			}{
				{Choice{}, true},
				{Choice{Single: true}, len(u.Calls) < 2},
				{Choice{Required: true}, u.Content == "" && len(u.Calls) > 0},
				{Choice{Required: true, Single: true}, u.Content == "" && len(u.Calls) == 1},
				{Choice{Name: "weather"}, u.Content == "" && len(u.Calls) == 1 && u.Calls[0].Function.Name == "weather"},
			} {
				form := config.Reasoning.Before(config.Tools.Form(config.Declared, c.choice), false, true)
				got, fits := newFormer(t, config, form).accepts(pieces)
				if got != c.want {
					t.Errorf("strict %v, control tokens %v, %+v: accepted %v, want %v: %q fits of\n%q", strict, control, c.choice, got, c.want, fits, answer)
				}
			}
		}
	}
}

func strictTools(t *testing.T) []chat.Tool {
	schema, err := jsontree.Decode([]byte(`{"type": "object", "properties": {"x": {"type": "string", "enum": ["a", "b"]}}, "required": ["x"], "additionalProperties": false}`), jsontree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return []chat.Tool{{Name: "f", Parameters: schema, Strict: true}, {Name: "g", Parameters: schema}}
}

// eachForm runs a test for every format, with control tokens and without.
func eachForm(t *testing.T, test func(t *testing.T, w written, config Config)) {
	each(t, func(t *testing.T, w written, config Config) {
		config.Declared = strictTools(t)
		for _, control := range []bool{false, true} {
			if control {
				config.Control = controlsOf(&config)
			}
			test(t, w, config)
		}
	})
}

func TestStrictCalls(t *testing.T) {
	eachForm(t, func(t *testing.T, w written, config Config) {
		free := newFormer(t, config, config.Tools.Form(config.Declared, Choice{}))
		must := newFormer(t, config, config.Tools.Form(config.Declared, Choice{Required: true}))
		single := newFormer(t, config, config.Tools.Form(config.Declared, Choice{Required: true, Single: true}))
		named := newFormer(t, config, config.Tools.Form(config.Declared, Choice{Name: "g"}))
		text := "Hello <b>, [1] \"x\" {y}.\n"
		if config.Tools.bare {
			text = ""
		}
		cases := []struct {
			answer                    string
			free, must, single, named bool
		}{
			{w.call("f", "a"), true, true, true, false},
			{w.call("f", "c"), false, false, false, false},
			{w.empty("f"), false, false, false, false},
			{w.call("g", "b"), true, true, true, true},
			{w.call("g", "c"), true, false, false, false},
			{w.call("h", "a"), config.Tools.bare, false, false, false},
			{w.call("f", "a") + w.joint + w.call("f", "b"), true, true, false, false},
			{w.call("f", "a") + w.joint + w.call("f", "c"), false, false, false, false},
			{w.call("g", "c") + w.joint + w.call("f", "c"), false, false, false, false},
			{w.call("g", "b") + w.joint + w.call("f", "b"), true, true, false, false},
			{text + w.call("f", "a") + "\n and more", true, false, false, false},
			{text + w.call("f", "b")[:len(w.call("f", "b"))-1], config.Tools.Name == "none", false, false, false},
			{"text alone", true, false, false, false},
			{"", true, false, false, false},
		}
		if config.Tools.Name == "minimax" { // whose calls lie in one block, and are several blocks where they are free
			for i := range cases {
				if strings.Count(cases[i].answer, "<minimax:tool_call>") > 1 {
					cases[i].must = false
				}
			}
		}
		for _, c := range cases {
			pieces := atoms(&config, c.answer)
			for name, got := range map[string]struct {
				f    *former
				want bool
			}{"free": {free, c.free}, "required": {must, c.must}, "single": {single, c.single}, "named": {named, c.named}} {
				if ok, fits := got.f.accepts(pieces); ok != got.want {
					t.Errorf("%s, control tokens %v: %q accepted %v, want %v: %q fits", name, config.Control != nil, c.answer, ok, got.want, fits)
				}
			}
		}
	})
}

// TestAnswersOfForms writes answers at random, each a text that a form allows, and reads them.
func TestAnswersOfForms(t *testing.T) {
	eachForm(t, func(t *testing.T, _ written, config Config) {
		for _, choice := range []Choice{{}, {Required: true}, {Required: true, Single: true}, {Name: "f"}} {
			f := newFormer(t, config, config.Tools.Form(config.Declared, choice))
			random := rand.New(rand.NewPCG(1, 2))
			whole := 0
			for range 200 {
				answer, ok := f.random(t, random, 300)
				if !ok {
					continue
				}
				whole++
				checkCalls(t, config, choice, answer)
			}
			if whole < 20 {
				t.Errorf("%+v: %d answers came to an end, want at least 20", choice, whole)
			}
		}
	})
}

// random is an answer of a form; false: it does not end within some tokens.
func (f *former) random(t *testing.T, random *rand.Rand, most int) (answer []atom, whole bool) {
	s := f.grammar.Start()
	mask := make([]uint32, (len(f.tokens)+31)/32)
	for range most {
		if s.Done() && random.IntN(4) == 0 {
			return answer, true
		}
		clear(mask)
		if err := s.Mask(mask); err != nil {
			t.Fatal(err)
		}
		var all, likely []int32
		for id := range f.tokens {
			if mask[id/32]&(1<<(id%32)) != 0 {
				all = append(all, int32(id))
				if id >= 256 || strings.IndexByte("\"}]<>/\n", byte(id)) >= 0 {
					likely = append(likely, int32(id))
				}
			}
		}
		if len(all) == 0 {
			if !s.Done() {
				t.Fatalf("nothing may come behind %q", spelled(answer))
			}
			return answer, true
		}
		if len(likely) > 0 && random.IntN(3) > 0 {
			all = likely
		}
		token := all[random.IntN(len(all))]
		next, ok := s.Next(token)
		if !ok {
			t.Fatalf("token %d may come behind %q, and may not", token, spelled(answer))
		}
		s = next
		if token >= 256 {
			answer = append(answer, atom{f.controls[token-256], true})
		} else {
			answer = append(answer, atom{string([]byte{byte(token)}), false})
		}
	}
	return answer, s.Done()
}

func spelled(answer []atom) (text string) {
	for _, a := range answer {
		text += a.text
	}
	return text
}

// checkCalls reads an answer: what is called is declared, its arguments are an object, those that are held to a schema follow it, and there
// are as many calls as there must be.
func checkCalls(t *testing.T, config Config, choice Choice, answer []atom) {
	t.Helper()
	events, _ := read(config, answer)
	calls := 0
	for _, e := range events {
		if e.Kind != chat.EventToolCall {
			if choice.Required || choice.Name != "" {
				t.Errorf("%+v: %q has text %q", choice, spelled(answer), e.Text)
			}
			continue
		}
		calls++
		var arguments map[string]any
		if err := json.Unmarshal([]byte(e.Call.Arguments), &arguments); err != nil {
			t.Errorf("%+v: %q calls %s with %q: %v", choice, spelled(answer), e.Call.Name, e.Call.Arguments, err)
			continue
		}
		held := e.Call.Name == "f" || choice != Choice{}
		if x := arguments["x"]; held && (len(arguments) != 1 || x != "a" && x != "b") {
			t.Errorf("%+v: %q calls %s with %q", choice, spelled(answer), e.Call.Name, e.Call.Arguments)
		}
		if choice.Name != "" && e.Call.Name != choice.Name {
			t.Errorf("%+v: %q calls %s", choice, spelled(answer), e.Call.Name)
		}
	}
	if least := choice.Required || choice.Name != ""; least && calls == 0 || (choice.Single || choice.Name != "") && calls > 1 {
		t.Errorf("%+v: %q makes %d calls", choice, spelled(answer), calls)
	}
}

func TestLooseTools(t *testing.T) {
	schema, err := jsontree.Decode([]byte(`{"type": "object", "properties": {"x": {"$ref": "https://example.com/schema"}}, "required": ["x"]}`), jsontree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, w written, config Config) {
		config.Declared = []chat.Tool{{Name: "f", Parameters: schema}}
		f := newFormer(t, config, config.Tools.Form(config.Declared, Choice{Required: true}))
		if ok, fits := f.accepts(atoms(&config, w.call("f", "a"))); !ok {
			t.Errorf("%q is refused behind %q", w.call("f", "a"), fits)
		}
		if notes := f.grammar.Notes(); len(notes) == 0 || !strings.Contains(notes[0].String(), "the tool f: any object may come") {
			t.Errorf("notes %v, want one on the tool f", notes)
		}
		config.Declared[0].Strict = true
		v := match.NewVocabulary(f.tokens, func(int32) bool { return false })
		_, err := grammar.Compile(context.Background(), config.Tools.Form(config.Declared, Choice{}), v, grammar.Limits{})
		if err == nil || !strings.HasPrefix(err.Error(), "the parameters of the tool f (schema): ") {
			t.Errorf("a strict tool with a schema that cannot be held: %v, want an error that names it", err)
		}
	})
}

func TestParametersAreObjects(t *testing.T) {
	for _, schema := range []string{`{}`, `{"properties": {"x": {"type": "string"}}}`, `{"type": ["null", "object"]}`, `{"type": "object"}`} {
		parameters, err := jsontree.Decode([]byte(schema), jsontree.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		config := Config{Tools: FindTools("hermes"), Declared: []chat.Tool{{Name: "f", Parameters: parameters, Strict: true}}}
		f := newFormer(t, config, config.Tools.Form(config.Declared, Choice{Required: true}))
		for arguments, want := range map[string]bool{`{}`: true, `{"x": "a"}`: true, `null`: false, `1`: false, `"{}"`: false, `[]`: false} {
			answer := "<tool_call>\n{\"name\": \"f\", \"arguments\": " + arguments + "}\n</tool_call>"
			if got, fits := f.accepts(atoms(&config, answer)); got != want {
				t.Errorf("%s: arguments %s accepted %v, want %v: %q fits", schema, arguments, got, want, fits)
			}
		}
	}
}

func TestThoughtsBeforeForms(t *testing.T) {
	answer := grammar.Spec{Kind: grammar.Choice, Words: []string{"yes", "no"}}
	for _, name := range ReasoningFormats() {
		r := FindReasoning(name)
		for _, control := range []bool{false, true} {
			config := Config{Reasoning: r}
			if control {
				config.Control = controlsOf(&config)
			}
			open := r.Open + r.word
			cases := []struct {
				answer           string
				begun, may, none bool
			}{
				{"yes", false, true, true},
				{"It is {\"so\".\n" + r.Close + "yes", true, false, false},
				{"\nno?\n" + r.Close + "\n\nno", true, false, false},
				{open + "\nyes or no\n" + r.Close + "\n\nyes", true, true, false},
				{open + r.Close + "yes", true, true, false},
				{open + r.Close + "maybe", false, false, false},
				{open + "yes", false, false, false},
				{r.Close + "\n\n\nyes", false, false, false},
			}
			for _, c := range cases {
				for _, form := range []struct {
					begun, may, want bool
				}{{true, false, c.begun}, {true, true, c.begun}, {false, true, c.may}, {false, false, c.none}} {
					f := newFormer(t, config, r.Before(answer, form.begun, form.may))
					if got, fits := f.accepts(atoms(&config, c.answer)); got != form.want {
						t.Errorf("%s, control tokens %v, %+v: %q accepted %v: %q fits", name, control, form, c.answer, got, fits)
					}
				}
			}
		}
	}
	var none *Reasoning
	if got := none.Before(answer, true, true); fmt.Sprint(got) != fmt.Sprint(answer) {
		t.Errorf("without thoughts the form is %v, want %v", got, answer)
	}
}
