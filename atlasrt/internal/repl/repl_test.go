package repl

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// entered is a line as an editor gives it.
type entered struct {
	line   string
	pasted bool
	err    error
}

// script gives lines, then the end.
type script []entered

func (s *script) Line(string) (string, bool, error) {
	if len(*s) == 0 {
		return "", false, io.EOF
	}
	next := (*s)[0]
	*s = (*s)[1:]
	return next.line, next.pasted, next.err
}

func lines(all ...string) script {
	var s script
	for _, line := range all {
		s = append(s, entered{line: line})
	}
	return s
}

// talk runs a conversation with an echo and returns what the model was asked each time, and the notes.
func talk(t *testing.T, s script) (asked []string, notes string, left script) {
	t.Helper()
	settings, err := NewSettings(Values{Sampling: sample.Defaults()}, map[string]string{"top_p": "generation_config.json"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	c := Conversation{Lines: &s, Notes: &out, Settings: settings}
	c.Answer = func(messages []chat.Message) (chat.Message, error) {
		var all []string
		for _, m := range messages {
			all = append(all, m.Role+":"+m.Content.Text)
		}
		asked = append(asked, strings.Join(all, "|"))
		last := messages[len(messages)-1].Content.Text
		if last == "fail" {
			return chat.Message{}, errors.New("no answer")
		}
		return message("assistant", "re "+last), nil
	}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	return asked, out.String(), s
}

func TestConversation(t *testing.T) {
	cases := []struct {
		what  string
		lines script
		asked string // with a space-less separator
		notes string // a piece
		left  int    // lines that nobody read
	}{
		{"two questions", lines("a", "b"), "user:a # user:a|assistant:re a|user:b", "", 0},
		{"empty lines", lines("", "  ", "a"), "user:a", "", 0},
		{"bye", lines("a", "/bye", "b"), "user:a", "", 1},
		{"Ctrl-C", script{{line: "a"}, {err: ErrInterrupt}, {line: "b"}}, "user:a", "", 1},
		{"a dropped line", script{{err: ErrDropped}, {line: "b"}}, "user:b", "", 0},
		{"a dropped text", script{{line: `"""x`}, {err: ErrDropped}, {line: "b"}}, "user:b", "", 0},
		{"help", lines("/help"), "", "/clear", 0},
		{"clear", lines("a", "/clear", "b"), "user:a # user:b", "forgotten", 0},
		{"unknown command", lines("/clera", "/etc/hosts?"), "", `"/clera"`, 0},
		{"a slash that is asked", lines(" /etc/hosts?"), "user: /etc/hosts?", "", 0},
		{"system", lines("/set system Be brief.", "a"), "system:Be brief.|user:a", "Be brief.", 0},
		{"no system", lines("/set system x", `/set system ""`, "a"), "user:a", "(none)", 0},
		{"several lines", lines(`"""one`, "", "two", `three"""`), "user:one\n\ntwo\nthree", "", 0},
		{"quotes alone", lines(`"""`, "/bye", `"""`), "user:/bye", "", 0},
		{"quotes on one line", lines(`"""one"""`), "user:one", "", 0},
		{"quotes that end nowhere", lines(`"""one`, "two"), "", "", 0},
		{"pasted", script{{"/one", true, nil}, {"two", true, nil}, {"", false, nil}}, "user:/one\ntwo", "", 0},
		{"pasted, and finished by hand", script{{"one", true, nil}, {"two", false, nil}}, "user:one\ntwo", "", 0},
		{"a question without an answer", lines("fail", "a"), "user:fail # user:a", "no answer", 0},
	}
	for _, c := range cases {
		asked, notes, left := talk(t, c.lines)
		if got := strings.Join(asked, " # "); got != c.asked || !strings.Contains(notes, c.notes) || len(left) != c.left {
			t.Errorf("%s: got %q, notes %q, %d lines left; want %q, %q, %d", c.what, got, notes, len(left), c.asked, c.notes, c.left)
		}
	}
}

func TestSet(t *testing.T) {
	cases := []struct{ commands, want string }{ // pieces of the last note
		{"/set", "temperature"},
		{"/set top_p", "generation_config.json"},
		{"/set temperature 0.5", "0.5 /set"},
		{"/set temperature 0.5;/set temperature default", "1 default"},
		{"/set temperature -1;/set temperature", "1 default"},
		{"/set temperature -1", "temperature is -1"},
		{"/set temperature hot", "temperature is a number"},
		{"/set temperature NaN", "temperature is NaN"},
		{"/set top_p 0.25", "0.25 /set"},
		{"/set top_k 40", "40 /set"},
		{"/set top_k 1.5", "top_k is a whole number"},
		{"/set top_k 99999999999", "top_k is a whole number"},
		{"/set min_p 2", "min_p is 2"},
		{"/set repetition_penalty 1.1", "1.1 /set"},
		{"/set seed 7", "7 /set"},
		{"/set seed", "a fresh one"},
		{"/set max_tokens 5", "5 /set"},
		{"/set max_tokens -5", "max_tokens must be"},
		{"/set tempo 5", "there are temperature, top_p"},
		{"/set tempo", "there are temperature, top_p"},
	}
	for _, c := range cases {
		commands := strings.Split(c.commands, ";")
		_, before, _ := talk(t, lines(commands[:len(commands)-1]...))
		_, notes, _ := talk(t, lines(commands...))
		last := strings.Join(strings.Fields(strings.TrimPrefix(notes, strings.TrimSuffix(before, "\n"))), " ")
		if !strings.Contains(last, c.want) {
			t.Errorf("%s: got %q, want %q", c.commands, last, c.want)
		}
	}
}

// A text that is no terminal has no commands.
func TestPlain(t *testing.T) {
	settings, err := NewSettings(Values{Sampling: sample.Defaults()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	var notes strings.Builder
	c := Conversation{Notes: &notes, Settings: settings, Answer: func(m []chat.Message) (chat.Message, error) {
		asked = append(asked, m[len(m)-1].Content.Text)
		return chat.Message{}, nil
	}}
	if err := c.Plain(strings.NewReader("a\n\n/help\n\"\"\"x")); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(asked, "|"), `a|/help|"""x`; got != want || notes.Len() > 0 {
		t.Errorf("got %q, notes %q; want %q and none", got, notes.String(), want)
	}
}

// The model's thoughts stay with its answers.
func TestThoughtsAreKept(t *testing.T) {
	settings, err := NewSettings(Values{Sampling: sample.Defaults()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := chat.Message{Role: "assistant", Content: chat.Content{Text: "yes"}, Reasoning: "Hm."}
	var before []chat.Message
	c := Conversation{Notes: &strings.Builder{}, Settings: settings, Answer: func(m []chat.Message) (chat.Message, error) {
		before = m
		return answer, nil
	}}
	for range 2 {
		if err := c.Ask("so?"); err != nil {
			t.Fatal(err)
		}
	}
	if len(before) != 3 || before[1].Reasoning != answer.Reasoning || before[1].Role != answer.Role {
		t.Errorf("the second question came with %+v", before)
	}
}
