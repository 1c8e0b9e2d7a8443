// Command scripted is the server with a script in place of a model: for tests of clients, and no part of the product.
//
// All but the engine is real: routes, dialects, template, tokenizer, and the chain that makes events of tokens. A line
// "script: NAME" in a user's message picks what is written, and what follows the name is the {word} of its answers; behind it each turn of the assistant takes the script's next answer, so
// that a call and what follows its result can be played. A conversation that picks none gets its own last words back.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"hash/maphash"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/server"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// flags are what the command line says.
type flags struct {
	address, tokenizer, template, scripts string
	reasoning, tools, names, keys         string
	context                               int
	ping                                  time.Duration
}

func main() {
	var f flags
	flag.StringVar(&f.address, "address", "127.0.0.1:8001", "where to listen")
	flag.StringVar(&f.tokenizer, "tokenizer", ".cache/tokenizers/qwen3", "folder of a tokenizer.json")
	flag.StringVar(&f.template, "template", "", "chat template; empty: the tokenizer's own")
	flag.StringVar(&f.scripts, "scripts", "conformance/scripts.json", "what is written, by name")
	flag.StringVar(&f.reasoning, "reasoning", "think", "format of thoughts; empty: they are not split off")
	flag.StringVar(&f.tools, "tools", "hermes", "format of calls; empty: they are not looked for")
	flag.StringVar(&f.names, "names", "scripted", "of the model, with commas")
	flag.StringVar(&f.keys, "keys", "", "that open the API, with commas; empty: everybody may come")
	flag.IntVar(&f.context, "max-context", 32768, "tokens of a prompt and its answer")
	flag.DurationVar(&f.ping, "ping", 0, "after which a silent stream is kept alive; 0: the server's own")
	flag.Parse()
	if err := f.run(); err != nil {
		fmt.Fprintln(os.Stderr, "scripted:", err)
		os.Exit(1)
	}
}

func (f *flags) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	model, err := f.model()
	if err != nil {
		return err
	}
	names := strings.Split(f.names, ",")
	model.Name, model.Aliases = names[0], names[1:]
	config := server.Config{
		Addr: f.address, Model: model, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Limits: server.Limits{PingTime: f.ping, Drain: time.Second},
	}
	if f.keys != "" {
		config.Keys = strings.Split(f.keys, ",")
	}
	s, err := server.New(config)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// model is the model that the scripts play.
func (f *flags) model() (m server.Model, err error) {
	text, err := f.text()
	if err != nil {
		return m, err
	}
	scripts, err := readScripts(f.scripts)
	if err != nil {
		return m, err
	}
	var formats completion.Formats
	if formats.Reasoning = parse.FindReasoning(f.reasoning); formats.Reasoning == nil && f.reasoning != "" {
		return m, fmt.Errorf("there is no format %q of thoughts (there are %s)", f.reasoning, strings.Join(parse.ReasoningFormats(), ", "))
	}
	if formats.Tools = parse.FindTools(f.tools); formats.Tools == nil && f.tools != "" {
		return m, fmt.Errorf("there is no format %q of calls (there are %s)", f.tools, strings.Join(parse.ToolFormats(), ", "))
	}
	b := &book{text: text, scripts: scripts, seed: maphash.MakeSeed(), answers: map[uint64]answer{}}
	if formats.Reasoning != nil {
		b.reasoning = formats.Reasoning.Close
	}
	vocab := int32(text.Tokenizer.VocabSize())
	e := &scripted{book: b, vocab: vocab}
	loaded := &instance.Loaded{Prepared: &instance.Prepared{Sizes: instance.Sizes{MaxContext: f.context}}}
	loaded.Layout.Vocab = vocab
	m.Generator, m.Engine, m.Template = text.Generator(e, loaded), e, b
	m.Generator.Formats = formats
	return m, nil
}

// text reads the tokenizer and the template.
func (f *flags) text() (*instance.Text, error) {
	config, err := weights.ParseConfig("none", []byte(`{}`))
	if err != nil {
		return nil, err
	}
	c := files{config: config}
	for path, text := range map[string]*[]byte{
		filepath.Join(f.tokenizer, "tokenizer.json"):        &c.assets.Tokenizer,
		filepath.Join(f.tokenizer, "tokenizer_config.json"): &c.assets.TokenizerConfig,
		cmp.Or(f.template, os.DevNull):                      &c.assets.ChatTemplate,
	} {
		if *text, err = os.ReadFile(path); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	if f.template == "" {
		c.assets.ChatTemplate = nil
	}
	text, err := instance.OpenText(c)
	switch {
	case err != nil:
		return nil, err
	case text.Template == nil:
		return nil, fmt.Errorf("%s has no chat template (give one with -template)", f.tokenizer)
	case len(text.End) == 0:
		return nil, fmt.Errorf("%s names no token that ends an answer (take another tokenizer)", f.tokenizer)
	}
	return text, nil
}
