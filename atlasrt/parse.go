package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
)

// parseCommand shows what a server would make of an answer: why a call was not seen, say.
type parseCommand struct {
	modelFlags  `set:"model="`
	answerFlags `embed:""`
	Tokenizer   string `type:"existingfile" help:"A tokenizer.json, in place of a model's. Without either each byte is a token and none is a control token."`
	Text        string `required:"" help:"File with what the model wrote, control tokens and all; - reads standard input." placeholder:"FILE"`
	Tools       string `type:"existingfile" help:"JSON array of the tools of the request; without it, whatever is called is a tool." placeholder:"FILE"`
	PromptThink bool   `name:"prompt-thinking" help:"The prompt ended within the model's thoughts, as where a template opens them."`
	EveryCut    bool   `help:"Also read the text in pieces of each size, and in two at each place, by tokens and by characters, and compare."`
}

// Validate implements kong's check.
func (c *parseCommand) Validate() error {
	if c.Model == "" && c.LoadDummy == "" && c.ToolCallParser == "auto" && c.ReasoningParser == "auto" {
		return errors.New("give --text, and --model, or say with --tool-call-parser and --reasoning-parser how the text is to be read")
	}
	if c.Tokenizer != "" && (c.Model != "" || c.LoadDummy != "") {
		return errors.New("--tokenizer goes without --model, which has a tokenizer")
	}
	return c.answerFlags.Validate()
}

// Run implements the command: a JSON object for each thought, text and call, and for the end, in lines.
func (c *parseCommand) Run() error {
	text, err := c.input()
	if err != nil {
		return err
	}
	return c.print(os.Stdout, text)
}

// input is what --text names.
func (c *parseCommand) input() (string, error) {
	if c.Text == "-" {
		text, err := argument("-", os.Stdin)
		return string(text), err
	}
	text, err := os.ReadFile(c.Text)
	if err != nil {
		return "", fmt.Errorf("--text: %w", err)
	}
	return string(text), nil
}

// print reads a text and prints what is found.
func (c *parseCommand) print(w io.Writer, text string) error {
	g, control, err := c.reader()
	if err != nil {
		return err
	}
	r := completion.Replay{Generator: g, Prompt: completion.Prompt{Thinking: c.PromptThink}, Options: completion.Options{Chat: true}}
	if r.Options.Tools, err = c.tools(); err != nil {
		return err
	}
	tokens := g.Tokenizer.Encode(text, control)
	events, read := r.Tokens(tokens)
	if _, err := io.WriteString(w, lines(events)); err != nil {
		return err
	}
	if read < len(tokens) {
		slog.Warn("the answer is over before the text is", "tokens", read, "of", len(tokens))
	}
	if !c.EveryCut {
		return nil
	}
	cuts, err := everyCut(&r, tokens[:read], events)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, parsedLine{Kind: "cuts", Same: &cuts}.String())
	return err
}

// reader is what reads answers, and whether control tokens are recognised in texts.
func (c *parseCommand) reader() (g *completion.Generator, control bool, err error) {
	switch {
	case c.Model != "" || c.LoadDummy != "":
		checkpoint, err := c.openText(context.Background(), online)
		if err != nil {
			return nil, false, err
		}
		defer checkpoint.Close()
		text, err := c.answerFlags.text(c.modelFlags, checkpoint, slog.Default())
		if err != nil {
			return nil, false, err
		}
		logAnswers(slog.Default(), text)
		return text.Reader(), true, nil
	case c.Tokenizer != "":
		tok, err := tokenizerFiles(c.Tokenizer)
		if err != nil {
			return nil, false, err
		}
		g = &completion.Generator{Tokenizer: tok}
		if id, ok := tok.EOS(); ok {
			g.End = []int32{id}
		}
		control = true
	default:
		config, err := weights.ParseConfig("", []byte(`{"vocab_size": 512}`))
		if err != nil {
			return nil, false, err
		}
		bytes, err := dummy.New(config, nil, dummy.Options{Text: true})
		if err != nil {
			return nil, false, err
		}
		text, err := instance.OpenText(bytes)
		if err != nil {
			return nil, false, err
		}
		g = &completion.Generator{Tokenizer: text.Tokenizer}
	}
	g.Formats = completion.Formats{Reasoning: parse.FindReasoning(c.ReasoningParser), Tools: parse.FindTools(c.ToolCallParser)}
	return g, control, nil
}

// parsedLine is a line of what is printed.
type parsedLine struct {
	Kind      string      `json:"kind"`
	Text      *string     `json:"text,omitempty"`
	Index     *int        `json:"index,omitempty"`
	Name      *string     `json:"name,omitempty"`
	Arguments *string     `json:"arguments,omitempty"`
	Reason    chat.Finish `json:"reason,omitempty"`
	Same      *int        `json:"same,omitempty"`
}

// String is the line as JSON, with its end.
func (l parsedLine) String() string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // marks have angle brackets
	if err := e.Encode(l); err != nil {
		panic("BUG: " + err.Error()) // it has strings and numbers
	}
	return text.String()
}

// lines are events as they are printed.
func lines(events []chat.Event) string {
	text := ""
	for _, e := range events {
		l := parsedLine{Kind: "text", Text: &e.Text}
		switch e.Kind {
		case chat.EventReasoning:
			l.Kind = "reasoning"
		case chat.EventToolCall:
			l = parsedLine{Kind: "tool_call", Index: &e.Call.Index, Name: &e.Call.Name, Arguments: &e.Call.Arguments}
		case chat.EventFinish:
			l = parsedLine{Kind: "finish", Reason: e.Finish}
		}
		text += l.String()
	}
	return text
}
