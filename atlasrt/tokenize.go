package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// tokenizeCommand prints ids, for comparing tokenizers.
type tokenizeCommand struct {
	modelFlags
	Tokenizer string `type:"existingfile" help:"A tokenizer.json, in place of a model's; its tokenizer_config.json is read where it lies beside."`
	Texts     string `required:"" type:"existingfile" help:"JSON array of strings."`
}

// Run implements the command: one array of ids per string; special tokens are recognised and none is added.
func (c *tokenizeCommand) Run() error {
	data, err := os.ReadFile(c.Texts)
	if err != nil {
		return err
	}
	var texts []string
	if err := json.Unmarshal(data, &texts); err != nil {
		return fmt.Errorf("%s must hold a JSON array of strings: %w", c.Texts, err)
	}
	tok, err := c.open()
	if err != nil {
		return err
	}
	ids := make([][]int32, len(texts))
	for i, text := range texts {
		if ids[i] = tok.Encode(text, true); ids[i] == nil {
			ids[i] = []int32{}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(ids)
}

func (c *tokenizeCommand) open() (*tokenizer.Tokenizer, error) {
	if c.Tokenizer == "" {
		checkpoint, err := c.openText(context.Background(), online)
		if err != nil {
			return nil, err
		}
		defer checkpoint.Close()
		text, err := instance.OpenText(checkpoint)
		if err != nil {
			return nil, err
		}
		return text.Tokenizer, nil
	}
	model, err := os.ReadFile(c.Tokenizer)
	if err != nil {
		return nil, err
	}
	config, err := os.ReadFile(filepath.Join(filepath.Dir(c.Tokenizer), "tokenizer_config.json"))
	if os.IsNotExist(err) {
		config, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	return tokenizer.FromJSON(model, config)
}
