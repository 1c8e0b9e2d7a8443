package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/term"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/internal/table"
)

// tokenizeCommand prints ids, for looking at a tokenizer or comparing it with another.
type tokenizeCommand struct {
	modelFlags
	Text      *string `arg:"" optional:"" help:"The text; - reads it from standard input, to the last byte."`
	Texts     string  `type:"existingfile" help:"In place of a text, a file with a JSON array of strings."`
	Tokenizer string  `type:"existingfile" help:"A tokenizer.json, in place of a model's; its tokenizer_config.json is read where it lies beside."`
	JSON      bool    `help:"Print JSON on a terminal, too."`
}

// Validate implements kong's check.
func (c *tokenizeCommand) Validate() error {
	if (c.Text == nil) == (c.Texts == "") {
		return errors.New("give one text, - for standard input, or --texts FILE")
	}
	return nil
}

// Run implements the command. Special tokens are recognised and none is added. A text on a terminal becomes a table of ids and pieces,
// otherwise a JSON array of ids; a file of texts becomes an array of such arrays.
func (c *tokenizeCommand) Run() error {
	if c.Texts != "" {
		return c.file(os.Stdout)
	}
	text, err := argument(*c.Text, os.Stdin)
	if err != nil {
		return err
	}
	tok, err := c.open()
	if err != nil {
		return err
	}
	ids := encode(tok, string(text))
	if c.JSON || !term.IsTerminal(int(os.Stdout.Fd())) {
		return json.NewEncoder(os.Stdout).Encode(ids)
	}
	return printTokens(os.Stdout, tok, ids)
}

// argument is what a command line gives as text: itself, or for - what standard input holds.
func argument(text string, stdin io.Reader) ([]byte, error) {
	if text != "-" {
		return []byte(text), nil
	}
	read, err := io.ReadAll(io.LimitReader(stdin, mostInput+1))
	if err == nil && len(read) > mostInput {
		err = fmt.Errorf("it has more than %s", formatBytes(mostInput))
	}
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return read, nil
}

// mostInput bounds what is read from standard input.
const mostInput = 64 << 20

// file prints one array of ids per string.
func (c *tokenizeCommand) file(w io.Writer) error {
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
		ids[i] = encode(tok, text)
	}
	return json.NewEncoder(w).Encode(ids)
}

// encode never gives nil, which JSON would write as null.
func encode(tok *tokenizer.Tokenizer, text string) []int32 {
	return append([]int32{}, tok.Encode(text, true)...)
}

// printTokens shows each id with its piece, in quotes: pieces hold spaces, line ends and parts of characters.
func printTokens(w io.Writer, tok *tokenizer.Tokenizer, ids []int32) error {
	t := table.New("\tid", "piece", "")
	for _, id := range ids {
		kind := ""
		if tok.IsSpecial(id) {
			kind = "special"
		}
		t.Row(strconv.Itoa(int(id)), strconv.Quote(string(tok.TokenBytes(id))), kind)
	}
	if len(ids) > 0 {
		if err := t.Print(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, counted(len(ids), "token"))
	return err
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
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
	return tokenizerFiles(c.Tokenizer)
}

// tokenizerFiles reads a tokenizer.json and what lies beside it.
func tokenizerFiles(file string) (*tokenizer.Tokenizer, error) {
	var f tokenizer.Files
	var err error
	if f.Tokenizer, err = os.ReadFile(file); err != nil {
		return nil, err
	}
	for name, text := range map[string]*[]byte{
		"tokenizer_config.json": &f.Config, "special_tokens_map.json": &f.SpecialTokensMap, "added_tokens.json": &f.AddedTokens,
	} {
		if *text, err = os.ReadFile(filepath.Join(filepath.Dir(file), name)); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	return tokenizer.FromFiles(f)
}
