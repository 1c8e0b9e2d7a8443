package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/repl"
)

// runCommand chats in the terminal.
type runCommand struct {
	speculativeFlags
	answerFlags
	Prompt      string   `arg:"" optional:"" help:"Ask this and stop, with what a file or a pipe gives as standard input after it; without it, talk."`
	System      string   `help:"System message."`
	MaxTokens   int      `help:"Most tokens of an answer; 0: as many as the context leaves."`
	Temperature *float32 `help:"0 takes the likeliest token each time; unset: the model's default."`
	Seed        int64    `help:"Seed of the sampling; 0: a fresh one."`
	Stats       bool     `help:"Print tokens and rates after each answer, on standard error."`
	NoHistory   bool     `help:"Neither read nor keep what was entered."`
	StateHome   string   `help:"Folder of the history, atlasrt/history; empty: ~/.local/state." env:"XDG_STATE_HOME"`
}

// Run implements the command. Standard output has the answers and nothing else.
func (c *runCommand) Run() error {
	question, err := c.question(os.Stdin)
	if err != nil {
		return err
	}
	notes := os.Stderr
	if !term.IsTerminal(int(notes.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) && term.IsTerminal(int(os.Stdin.Fd())) {
		notes = os.Stdout // where somebody sees them
	}
	talks := question == "" && term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(notes.Fd()))
	history := &repl.History{}
	if talks {
		if history, err = c.history(); err != nil {
			return err
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	m, err := c.load(context.Background(), log)
	if err != nil {
		return err
	}
	text, err := c.text(c.modelFlags, m.Checkpoint, log)
	if err != nil {
		return err
	}
	e, err := m.Start(c.draftFlags.set(engine.Options{}))
	if err != nil {
		return err
	}
	defer e.Close()
	settings, err := c.settings(text)
	if err != nil {
		return err
	}
	a := answerer{text: text, generator: text.Generator(e, m), settings: settings, stats: c.Stats}
	talk := &repl.Conversation{Notes: notes, Settings: settings, Answer: a.answer}
	switch {
	case question != "":
		return talk.Ask(question)
	case !talks:
		return talk.Plain(os.Stdin)
	}
	fmt.Fprint(notes, greeting(c.name(), m.Target.Bundle.Hardware, m.Sizes.MaxContext))
	talk.Lines = repl.NewTerminal(screen(notes), history)
	if err := talk.Run(); err != nil {
		return err
	}
	if err := history.Err(); err != nil {
		return fmt.Errorf("the history is not kept: %w (--no-history goes without)", err)
	}
	return nil
}

// greeting is what a talk begins with.
func greeting(model, hardware string, context int) string {
	if model == "" {
		model = "a made-up model"
	}
	return fmt.Sprintf("%s on %s, with a context of %d tokens.\n/help lists the commands; Ctrl-C ends an answer; /bye, or Ctrl-C again, leaves.\n", model, hardware, context)
}

// question is the prompt of the command line with what a file or a pipe holds after it. Other kinds of standard input, such as
// terminals, sockets and /dev/null, are not read, since they may never end.
func (c *runCommand) question(stdin *os.File) (string, error) {
	if c.Prompt == "" {
		return "", nil
	}
	info, err := stdin.Stat()
	if err != nil || !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0 {
		return c.Prompt, nil // closed, too
	}
	more, err := argument("-", stdin)
	if err != nil || strings.TrimSpace(string(more)) == "" {
		return c.Prompt, err
	}
	return c.Prompt + "\n\n" + strings.TrimRight(string(more), "\n"), nil
}

// settings are the model's sampling, and what flags say.
func (c *runCommand) settings(text *instance.Text) (*repl.Settings, error) {
	from := map[string]string{}
	for _, s := range text.Sampling() {
		from[s.Name] = s.From
	}
	v := repl.Values{System: c.System, MaxTokens: c.MaxTokens, Seed: c.Seed, Sampling: text.Params()}
	if c.Temperature != nil {
		v.Sampling.Temperature, from["temperature"] = *c.Temperature, "flag"
	}
	for name, given := range map[string]bool{"system": c.System != "", "max_tokens": c.MaxTokens != 0, "seed": c.Seed != 0} {
		if given {
			from[name] = "flag"
		}
	}
	return repl.NewSettings(v, from)
}

// history is of this and earlier runs.
func (c *runCommand) history() (*repl.History, error) {
	if c.NoHistory {
		return repl.OpenHistory("")
	}
	home := c.StateHome
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("no home folder for the history (set --state-home, or --no-history): %w", err)
		}
		home = filepath.Join(user, ".local", "state")
	}
	return repl.OpenHistory(filepath.Join(home, "atlasrt", "history"))
}

// screen is the terminal that the program was started in. While keys come one by one, a signal that ends the program leaves the
// terminal as it was.
func screen(draw *os.File) repl.Screen {
	fd := int(os.Stdin.Fd())
	return repl.Screen{Keys: os.Stdin, Draw: draw, Size: func() (int, int, error) { return term.GetSize(fd) }, Raw: func() (func() error, error) {
		before, err := term.MakeRaw(fd)
		if err != nil {
			return nil, err
		}
		ends, done := make(chan os.Signal, 1), make(chan struct{})
		signal.Notify(ends, syscall.SIGTERM, syscall.SIGHUP)
		go func() {
			select {
			case <-ends:
				_ = term.Restore(fd, before)
				os.Exit(3)
			case <-done:
			}
		}()
		return func() error {
			signal.Stop(ends)
			close(done)
			return term.Restore(fd, before)
		}, nil
	}}
}

// answerer answers with a model.
type answerer struct {
	text      *instance.Text
	generator *completion.Generator
	settings  *repl.Settings
	stats     bool
}

// answer streams an answer. An interrupt ends it, a second one the program.
func (a answerer) answer(messages []chat.Message) (chat.Message, error) {
	var none chat.Message
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop)
	thinking := a.generator.Resolve(chat.Thinking{}, a.settings.MaxTokens)
	prompt, err := a.text.Prompt(ctx, &chat.Request{Messages: messages, AddGenerationPrompt: true, Thinking: thinking}, time.Now(), math.MaxInt)
	if err != nil {
		return none, err
	}
	a.generator.Defaults, a.generator.Plain = a.settings.Sampling, nil // all of them may be set
	a.generator.Defaults.Seed = cmp.Or(a.settings.Seed, rand.Int64())
	options := completion.Options{MaxTokens: a.settings.MaxTokens, Choices: 1, LogProbs: -1, Chat: true, Thinking: thinking}
	start := time.Now()
	stream, err := a.generator.Start(ctx, []completion.Prompt{prompt}, options)
	if long, ok := errors.AsType[*completion.TooLong](err); ok {
		return none, fmt.Errorf("what was said and the question have %d tokens, and the context %d (/clear begins anew)", long.Tokens, long.Limit)
	}
	if err != nil {
		return none, err
	}
	defer stream.Close()
	width := 0
	if columns, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		width = columns
	}
	var first time.Time
	s := newScreenful(os.Stdout, width)
	for events, failed := range stream.All() {
		if first.IsZero() {
			first = time.Now()
		}
		err = errors.Join(err, failed, s.show(events))
	}
	if err = errors.Join(err, s.end()); err != nil && ctx.Err() == nil {
		return none, err
	}
	if usage := stream.Usage(); a.stats {
		fmt.Fprintf(os.Stderr, "%d prompt tokens (%d cached), first token after %.0f ms, %d tokens at %.1f per second\n", usage.Prompt, usage.Cached,
			first.Sub(start).Seconds()*1e3, usage.Output, float64(usage.Output-1)/time.Since(first).Seconds())
	}
	return s.said, nil
}
