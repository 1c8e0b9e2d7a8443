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
	// is written again and again.
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

// named is the script that the last such line of a text picks; "" where none does.
func named(text string) string {
	at := strings.LastIndex(text, mark)
	if at < 0 {
		return ""
	}
	name, _, _ := strings.Cut(text[at+len(mark):], "\n")
	name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
	return name
}

// pick is the script that the last user's message with a mark picks, and how many turns of the assistant came since.
func pick(messages []chat.Message) (name string, turn int) {
	for i := len(messages) - 1; i >= 0; i-- {
		switch m := messages[i]; m.Role {
		case "assistant":
			turn++
		case "user":
			if name := named(said(m)); name != "" {
				return name, turn
			}
		}
	}
	return "", 0
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
