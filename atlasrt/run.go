package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
)

// runCommand chats in the terminal.
type runCommand struct {
	loadFlags
	Prompt      string   `arg:"" optional:"" help:"Ask this and stop; without it, read questions from standard input."`
	System      string   `help:"System message."`
	MaxTokens   int      `help:"Most tokens of an answer; 0: as many as the context leaves."`
	Temperature *float32 `help:"0 takes the likeliest token each time; unset: the model's default."`
	Seed        int64    `help:"Seed of the sampling; 0: a fresh one."`
	Stats       bool     `help:"Print tokens and rates after each answer, on standard error."`
}

// Run implements the command.
func (c *runCommand) Run() error {
	m, err := c.load(context.Background(), slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	text, err := c.text(m.Checkpoint, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	e, err := m.Start(instance.EngineOptions{})
	if err != nil {
		return err
	}
	defer e.Close()
	talk := conversation{command: c, text: text, generator: text.Generator(e, m)}
	if c.System != "" {
		talk.add("system", c.System)
	}
	if c.Prompt != "" {
		return talk.ask(c.Prompt)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for fmt.Fprint(os.Stderr, "> "); lines.Scan(); fmt.Fprint(os.Stderr, "> ") {
		if lines.Text() == "" {
			continue
		}
		if err := talk.ask(lines.Text()); err != nil {
			fmt.Fprintln(os.Stderr, "atlasrt:", err)
		}
	}
	fmt.Fprintln(os.Stderr)
	return lines.Err()
}

// conversation is what was said so far.
type conversation struct {
	command   *runCommand
	text      *instance.Text
	generator *completion.Generator
	messages  []chat.Message
}

func (t *conversation) add(role, content string) {
	t.messages = append(t.messages, chat.Message{Role: role, Content: chat.Content{Text: content}})
}

// ask streams the answer to one question. An interrupt ends the answer, not the program.
func (t *conversation) ask(question string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t.add("user", question)
	prompt, err := t.text.Prompt(ctx, &chat.Request{Messages: t.messages, AddGenerationPrompt: true}, time.Now(), math.MaxInt)
	if err != nil {
		return t.forget(err)
	}
	options := completion.Options{MaxTokens: t.command.MaxTokens, Choices: 1, LogProbs: -1, Sampling: t.text.Params()}
	if t.command.Temperature != nil {
		options.Sampling.Temperature = *t.command.Temperature
	}
	if options.Sampling.Seed = t.command.Seed; options.Sampling.Seed == 0 {
		options.Sampling.Seed = rand.Int64()
	}
	start := time.Now()
	stream, err := t.generator.Start(ctx, prompt, options)
	if err != nil {
		return t.forget(err)
	}
	answer, first, err := show(os.Stdout, stream)
	if err != nil && ctx.Err() == nil {
		return t.forget(err)
	}
	t.add("assistant", answer)
	if usage := stream.Usage(); t.command.Stats {
		fmt.Fprintf(os.Stderr, "%d prompt tokens (%d cached), first token after %.0f ms, %d tokens at %.1f per second\n", usage.Prompt, usage.Cached,
			first.Sub(start).Seconds()*1e3, usage.Completion, float64(usage.Completion-1)/time.Since(first).Seconds())
	}
	return nil
}

// forget takes back a question that got no answer.
func (t *conversation) forget(err error) error {
	t.messages = t.messages[:len(t.messages)-1]
	return err
}

// show prints a stream as it comes and returns all of it, and when it began.
func show(w io.Writer, stream *completion.Stream) (answer string, first time.Time, err error) {
	for chunk := range stream.Chunks() {
		if first.IsZero() {
			first = time.Now()
		}
		answer += chunk.Text
		_, printed := io.WriteString(w, chunk.Text)
		err = errors.Join(err, chunk.Err, printed)
	}
	_, printed := io.WriteString(w, "\n")
	return answer, first, errors.Join(err, printed)
}
