package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// templated is a checkpoint with another chat template than its own.
type templated struct {
	weights.Checkpoint
	template []byte
}

// Assets implements weights.Checkpoint.
func (t templated) Assets() (weights.Assets, error) {
	assets, err := t.Checkpoint.Assets()
	assets.ChatTemplate = t.template
	return assets, err
}

// withTemplate gives a checkpoint the template that --chat-template names. It takes what opening one returned; on an error of
// its own it closes the checkpoint.
func (f modelFlags) withTemplate(c weights.Checkpoint, err error) (weights.Checkpoint, error) {
	if err != nil {
		return nil, err
	}
	if f.ChatTemplate == "" {
		return c, nil
	}
	text, err := f.templateText()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return templated{c, []byte(text)}, nil
}

// templateText reads the file that --chat-template names.
func (f modelFlags) templateText() (string, error) {
	text, err := os.ReadFile(f.ChatTemplate)
	if err != nil {
		return "", fmt.Errorf("--chat-template: %w", err)
	}
	if len(text) == 0 {
		return "", fmt.Errorf("--chat-template: %s is empty", f.ChatTemplate)
	}
	_, err = chat.ParseTemplate(string(text), nil)
	return string(text), f.inTemplate(err)
}

// inTemplate names file and line of an error in the template that --chat-template names.
func (f modelFlags) inTemplate(err error) error {
	if e, ok := errors.AsType[*chat.Error](err); ok && f.ChatTemplate != "" {
		return fmt.Errorf("%s:%d: %s", f.ChatTemplate, max(e.Line, 1), e.Message)
	}
	return err
}
