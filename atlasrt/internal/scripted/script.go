package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// script is what the model writes in one conversation.
type script struct {
	// Answers are its turns behind the message that picks the script: with control tokens, as the model writes them. The last one
	// is written again and again. Where {word} stands in them, what follows the script's name in the message is written.
	Answers []string `json:"answers"`

	Finish    string `json:"finish"`     // length: the most tokens are used up behind an answer; loop: it begins again; else the turn ends
	WaitMS    int    `json:"wait_ms"`    // milliseconds before the first token
	DelayMS   int    `json:"delay_ms"`   // milliseconds before each further one
	FailAfter int    `json:"fail_after"` // the engine fails behind so many tokens; 0: it does not
	Refuse    bool   `json:"refuse"`     // the engine's queue is full
}

// readScripts reads a file of scripts by their names.
func readScripts(path string) (map[string]script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	scripts := map[string]script{}
	if err := json.Unmarshal(text, &scripts); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for name, s := range scripts {
		if len(s.Answers) == 0 && !s.Refuse {
			return nil, fmt.Errorf("%s: script %q has no answers", path, name)
		}
	}
	return scripts, nil
}

// mark begins the line of a message that picks a script.
const mark = "script: "

// choice is the script that a message picks, and the word that its answers repeat.
type choice struct{ name, word string }

// chosen is what the last line with a mark picks; nothing where there is none.
func chosen(text string) (c choice) {
	if at := strings.LastIndex(text, mark); at >= 0 {
		line, _, _ := strings.Cut(text[at+len(mark):], "\n")
		c.name, c.word, _ = strings.Cut(strings.TrimSpace(line), " ")
	}
	return c
}

// pick is what the last user's message with a mark picks, and how many turns of the assistant came since.
func pick(messages []chat.Message) (c choice, turn int) {
	for i := len(messages) - 1; i >= 0; i-- {
		switch m := messages[i]; m.Role {
		case "assistant":
			turn++
		case "user":
			if c = chosen(said(m)); c.name != "" {
				return c, turn
			}
		}
	}
	return c, 0
}

// turn is an answer of the script, by its number; "" where the script has none.
func (s *script) turn(n int, word string) string {
	if len(s.Answers) == 0 {
		return ""
	}
	return strings.ReplaceAll(s.Answers[min(n, len(s.Answers)-1)], "{word}", word)
}

// said is the text of a message.
func said(m chat.Message) string {
	text := m.Content.Text
	for _, p := range m.Content.Parts {
		text += p.Text + "\n"
	}
	return text
}

// echo is what a model says that has no script: the end of the last user's message.
func echo(messages []chat.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == "user" {
			words := strings.Fields(said(messages[i]))
			return "You said: " + strings.Join(words[max(0, len(words)-echoed):], " ")
		}
	}
	return "Nobody said anything."
}

// echoed is how many words an echo has at most.
const echoed = 32
