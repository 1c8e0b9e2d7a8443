package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
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
	return templateOf(checkpoint)
}

// templateOf finds a checkpoint's chat template in its own file, its GGUF metadata or its tokenizer's settings.
func templateOf(c weights.Checkpoint) (string, error) {
	assets, err := c.Assets()
	if err != nil || len(assets.ChatTemplate) > 0 {
		return string(assets.ChatTemplate), err
	}
	if assets.Tokenizer != nil {
		tok, err := tokenizer.FromJSON(assets.Tokenizer, assets.TokenizerConfig)
		if err != nil {
			return "", err
		}
		if source := tok.ChatTemplate(); source != "" {
			return source, nil
		}
	}
	return "", errors.New("the checkpoint has no chat template (give one with --chat-template)")
}
