package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
)

// renderCommand shows what a model is really asked.
type renderCommand struct {
	modelFlags
	Request string `required:"" type:"existingfile" help:"JSON object with messages; further keys are variables of the template."`
	Now     string `help:"Time that the template sees, such as 2026-01-31T12:00:00Z; empty: now."`
}

// Run implements the command: the prompt on standard output, byte for byte.
func (c *renderCommand) Run() error {
	request, err := os.ReadFile(c.Request)
	if err != nil {
		return err
	}
	now := time.Now()
	if c.Now != "" {
		if now, err = time.Parse(time.RFC3339, c.Now); err != nil {
			return fmt.Errorf("--now: %w", err)
		}
	}
	source, err := c.source()
	if err != nil {
		return err
	}
	text, err := chat.RenderRequest(source, request, now)
	if err != nil {
		return c.inTemplate(err)
	}
	_, err = os.Stdout.WriteString(text)
	return err
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
		err = errors.New("the checkpoint has no chat template (give one with --chat-template)")
	}
	return source, err
}
