package main

import (
	"path/filepath"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
)

func TestPick(t *testing.T) {
	say := func(role, text string) chat.Message {
		return chat.Message{Role: role, Content: chat.Content{Text: text}}
	}
	cases := []struct {
		name     string
		messages []chat.Message
		want     choice
		turn     int
	}{
		{"none", []chat.Message{say("user", "Hello.")}, choice{}, 0},
		{"first turn", []chat.Message{say("system", "script: no"), say("user", "Please.\nscript: yes \nNow.")}, choice{name: "yes"}, 0},
		{"word", []chat.Message{say("user", "script: a of b \nscript")}, choice{"a", "of b"}, 0},
		{"behind a result", []chat.Message{say("user", "script: a"), say("assistant", "script: b"), say("tool", "script: c")}, choice{name: "a"}, 1},
		{"later question", []chat.Message{say("user", "script: a"), say("assistant", ""), say("user", "script: b")}, choice{name: "b"}, 0},
		{"later remark", []chat.Message{say("user", "script: a"), say("assistant", ""), say("user", "Hm."), say("assistant", "")}, choice{name: "a"}, 2},
		{"parts", []chat.Message{{Role: "user", Content: chat.Content{Parts: []chat.Part{{Type: "text", Text: "script: a"}, {Type: "text", Text: "b"}}}}}, choice{name: "a"}, 0},
	}
	for _, c := range cases {
		if got, turn := pick(c.messages); got != c.want || turn != c.turn {
			t.Errorf("%s: got %q, turn %d, want %q, turn %d", c.name, got, turn, c.want, c.turn)
		}
	}
}

func TestThoughtsFitThePrompt(t *testing.T) {
	b := &book{reasoning: "</think>"}
	const thoughts, plain = "<think>\nHm.\n</think>\n\nYes.", "Yes."
	cases := []struct {
		text  string
		begun bool
		on    *bool
		want  string
	}{
		{thoughts, false, nil, thoughts},
		{thoughts, true, nil, "Hm.\n</think>\n\nYes."},
		{thoughts, false, new(false), plain},
		{plain, true, nil, "</think>\n\nYes."},
		{plain, false, new(true), plain},
	}
	for _, c := range cases {
		if got := b.think(c.text, c.begun, c.on); got != c.want {
			t.Errorf("%q, begun %v: got %q, want %q", c.text, c.begun, got, c.want)
		}
	}
}

func TestTurns(t *testing.T) {
	cases := []struct {
		answers []string
		turn    int
		want    string
	}{
		{nil, 0, ""}, {[]string{"a", "b"}, 0, "a"}, {[]string{"a", "b"}, 1, "b"}, {[]string{"a", "b"}, 2, "b"}, {[]string{"{word}, {word}"}, 0, "W, W"},
	}
	for _, c := range cases {
		if got := (&script{Answers: c.answers}).turn(c.turn, "W"); got != c.want {
			t.Errorf("%q, turn %d: got %q, want %q", c.answers, c.turn, got, c.want)
		}
	}
}

// A book forgets old answers, never those of requests that are on their way.
func TestBookForgets(t *testing.T) {
	b := &book{answers: map[uint64]answer{}}
	for key := range uint64(3 * mostAnswers) {
		b.note(key, answer{text: "a"})
		if _, ok := b.noted(key - min(key, mostAnswers-1)); !ok {
			t.Fatalf("at %d the answer of %d before is forgotten", key, mostAnswers-1)
		}
	}
	if _, ok := b.noted(0); ok || len(b.answers)+len(b.older) > 2*mostAnswers {
		t.Errorf("%d and %d answers are remembered, the first %v", len(b.answers), len(b.older), ok)
	}
}

func TestScriptsOfConformance(t *testing.T) {
	if _, err := readScripts(filepath.Join("..", "..", "..", "conformance", "scripts.json")); err != nil {
		t.Error(err)
	}
}

// A script that writes what its request does not allow is an error, and ends are allowed where the text may end.
func TestFollow(t *testing.T) {
	const end = 2
	held, err := grammar.Compile(t.Context(), grammar.Spec{Kind: grammar.Choice, Words: []string{"ab"}},
		match.NewVocabulary([][]byte{[]byte("a"), []byte("b"), []byte("<end>")}, func(id int32) bool { return id == end }), grammar.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		tokens []int32
		fits   int
	}{
		{[]int32{0, 1, end}, 3}, {[]int32{0, end}, 1}, {[]int32{1}, 0}, {[]int32{0, 1, 0}, 2},
	}
	for _, c := range cases {
		form, fits := engine.Following(held.Start()), 0
		for _, token := range c.tokens {
			next, ok := follow(form, []int32{end}, token)
			if !ok {
				break
			}
			form, fits = next, fits+1
		}
		if fits != c.fits {
			t.Errorf("%v: %d tokens fit, want %d", c.tokens, fits, c.fits)
		}
	}
	if _, ok := follow(nil, nil, 1); !ok {
		t.Error("a token is refused where anything may come")
	}
}

func TestCache(t *testing.T) {
	prompt := func(n, last int32) (tokens []int32) {
		for i := range n {
			tokens = append(tokens, i)
		}
		return append(tokens, last)
	}
	var c cache
	cases := []struct {
		salt   string
		tokens []int32
		want   int
	}{
		{"", prompt(40, -1), 0}, {"", prompt(40, -2), 32}, {"other", prompt(40, -2), 0}, {"", prompt(40, -2), 32}, {"", prompt(16, -3), 16}, {"", prompt(15, 15), 0},
	}
	for i, step := range cases {
		if got := c.enter(step.salt, step.tokens); got != step.want {
			t.Errorf("step %d: %d tokens are cached, want %d", i, got, step.want)
		}
	}
}
