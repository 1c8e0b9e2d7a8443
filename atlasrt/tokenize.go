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
	return c.files()
}

// files reads a tokenizer.json and what lies beside it.
func (c *tokenizeCommand) files() (*tokenizer.Tokenizer, error) {
	var f tokenizer.Files
	var err error
	if f.Tokenizer, err = os.ReadFile(c.Tokenizer); err != nil {
		return nil, err
	}
	for name, text := range map[string]*[]byte{
		"tokenizer_config.json": &f.Config, "special_tokens_map.json": &f.SpecialTokensMap, "added_tokens.json": &f.AddedTokens,
	} {
		if *text, err = os.ReadFile(filepath.Join(filepath.Dir(c.Tokenizer), name)); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	return tokenizer.FromFiles(f)
}
