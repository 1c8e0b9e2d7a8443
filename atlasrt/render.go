package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
)

// renderCommand shows what a model is really asked.
type renderCommand struct {
	modelFlags
	Question *string `arg:"" optional:"" help:"What a user asks; - reads a request, as in --request, from standard input."`
	System   string  `help:"System message before the question."`
	Request  string  `type:"existingfile" help:"In place of a question, a JSON object with messages; further keys are variables of the template."`
	Now      string  `help:"Time that the template sees, such as 2026-01-31T12:00:00Z; empty: now."`
}

// Validate implements kong's check.
func (c *renderCommand) Validate() error {
	switch {
	case (c.Question == nil) == (c.Request == ""):
		return errors.New("give a question, - for a request on standard input, or --request FILE")
	case c.System != "" && !c.asks():
		return errors.New("--system goes with a question: a request has its own messages")
	}
	return nil
}

// asks reports whether a question is given, and not a request.
func (c *renderCommand) asks() bool { return c.Question != nil && *c.Question != "-" }

// Run implements the command: the prompt on standard output, byte for byte.
func (c *renderCommand) Run() error {
	now := time.Now()
	if c.Now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, c.Now); err != nil {
			return fmt.Errorf("--now: %w", err)
		}
	}
	text, err := c.render(os.Stdin, now)
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(text)
	return err
}

// render is the prompt of a question as `run` asks it, or of a request as it is.
func (c *renderCommand) render(stdin io.Reader, now time.Time) (string, error) {
	if c.asks() {
		return c.question(*c.Question, now)
	}
	read := func() ([]byte, error) { return argument("-", stdin) }
	if c.Request != "" {
		read = func() ([]byte, error) { return os.ReadFile(c.Request) }
	}
	request, err := read()
	if err != nil {
		return "", err
	}
	source, err := c.source()
	if err != nil {
		return "", err
	}
	text, err := chat.RenderRequest(source, request, now)
	return text, c.inTemplate(err)
}

// question renders one message with the model's special tokens.
func (c *renderCommand) question(question string, now time.Time) (string, error) {
	checkpoint, err := c.openText(context.Background(), online)
	if err != nil {
		return "", err
	}
	defer checkpoint.Close()
	text, err := instance.OpenText(checkpoint)
	if err != nil {
		return "", err
	}
	if text.Template == nil {
		return "", errNoTemplate
	}
	request := &chat.Request{AddGenerationPrompt: true}
	if c.System != "" {
		request.Messages = append(request.Messages, chat.Message{Role: "system", Content: chat.Content{Text: c.System}})
	}
	request.Messages = append(request.Messages, chat.Message{Role: "user", Content: chat.Content{Text: question}})
	prompt, err := text.Template.Prompt(context.Background(), request, now)
	return prompt.Text, c.inTemplate(err)
}

// source is the text of the template.
func (c *renderCommand) source() (string, error) {
	if c.ChatTemplate != "" {
		return c.templateText()
	}
	checkpoint, err := c.openText(context.Background(), online)
	if err != nil {
		return "", err
	}
	defer checkpoint.Close()
	source, err := instance.ChatTemplate(checkpoint)
	if err == nil && source == "" {
		err = errNoTemplate
	}
	return source, err
}

var errNoTemplate = errors.New("the checkpoint has no chat template (give one with --chat-template)")
