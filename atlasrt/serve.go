package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/server"
	"github.com/atlas-inference/atlas/internal/version"
)

// serveCommand serves one model over HTTP.
type serveCommand struct {
	speculativeFlags
	engineFlags
	answerFlags
	Host        string        `help:"Address to listen on; anything but a loopback address should have a key." default:"127.0.0.1"`
	Port        int           `help:"Port to listen on; 0: a free one." default:"8000"`
	Hosts       []string      `help:"Further names that the Host header may have on a loopback address; * is all."`
	CORSOrigin  []string      `name:"cors-origin" help:"Origins, such as https://app.example, whose web pages may use the API from a browser; * is all." placeholder:"ORIGIN"`
	APIKey      []string      `name:"api-key" help:"Keys that open the API; better in the environment or a file than on the command line."`
	APIKeyFile  string        `name:"api-key-file" type:"existingfile" help:"File with a key on each line."`
	Name        []string      `name:"served-model-name" aliases:"name" env:"ATLASRT_SERVED_MODEL_NAME,ATLASRT_NAME" help:"Names that clients may ask for, the first one where they ask for none; empty: that of the checkpoint's folder or file."`
	MaxQueue    int           `help:"Most requests that wait." default:"256"`
	QueueTokens int           `help:"Most prompt tokens that wait." default:"2097152"`
	BodyLimit   string        `help:"Largest request body." default:"32MiB"`
	Timeout     time.Duration `help:"Longest time for one request." default:"600s"`
	Drain       time.Duration `help:"Time that running requests have to end after SIGTERM." default:"30s"`
	NoSharing   bool          `help:"Never take a prompt's beginning from the cache."`
	CacheTokens int           `help:"Tokens that the cache keeps before it takes memory that was never used; 0: twice the context on a CPU, on a GPU all that was planned."`
	Reasoning   string        `name:"reasoning-field" help:"Where chat completions have the thoughts of a model: reasoning_content, reasoning, or both with the same text." enum:"both,reasoning_content,reasoning" default:"both"`
	Dump        string        `help:"File to append requests and answers to, of all APIs, as one JSON object a line: all that users and the model say, but no keys." type:"path" placeholder:"FILE"`
	logFlags
}

// Run implements the command: it ends after SIGINT or SIGTERM, or when the device is lost, once running requests have ended. The port is
// taken first, and answers that the model is not ready until it is.
func (c *serveCommand) Run() (err error) {
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(signalled, stop) // so that a second signal ends the process at once
	log := c.logger(os.Stderr)
	config, err := c.config(log)
	if err != nil {
		return err
	}
	if c.Dump != "" {
		if config.Dump, err = server.OpenDump(c.Dump, log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, config.Dump.Close()) }()
		log.Warn("requests and answers are written to a file", "dump", c.Dump)
	}
	gate, err := server.NewGate(config.Limits, log)
	if err != nil {
		return err
	}
	listener, err := server.Listen(signalled, config.Addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; --port 0 takes a free one", err)
		}
		return err
	}
	config.Addr = listening(c.Host, listener.Addr())
	ctx, end := context.WithCancel(signalled)
	defer end()
	served := make(chan error, 1)
	go func() {
		defer end()
		served <- gate.Serve(ctx, listener)
	}()
	log.Info("starting", "address", "http://"+config.Addr, "model", config.Model.Name)
	e, err := c.open(ctx, c.prepare, end, gate, config)
	if err != nil {
		end()
		if failed := <-served; failed != nil {
			return failed
		}
		return err
	}
	defer e.Close()
	return errors.Join(<-served, e.Err())
}

// config is what can be said of the server before there is a model.
func (c *serveCommand) config(log *slog.Logger) (server.Config, error) {
	keys, err := c.keys()
	if err != nil {
		return server.Config{}, err
	}
	body, err := parseBytes("--body-limit", c.BodyLimit)
	if err != nil {
		return server.Config{}, err
	}
	switch {
	case c.Port < 0 || c.Port > 65535:
		return server.Config{}, fmt.Errorf("--port %d is no port (choose 1 to 65535, or 0 for a free one)", c.Port)
	case c.Timeout <= 0:
		return server.Config{}, fmt.Errorf("--timeout %v leaves no time for a request (choose more, such as 600s)", c.Timeout)
	case c.MaxQueue < 1 || c.QueueTokens < 1:
		return server.Config{}, fmt.Errorf("--max-queue %d and --queue-tokens %d must be at least 1 (every request waits for its first step)", c.MaxQueue, c.QueueTokens)
	}
	names := c.names()
	config := server.Config{
		Addr: c.address(), Keys: keys, Hosts: c.Hosts, Origins: c.CORSOrigin, Model: server.Model{Name: names[0], Aliases: names[1:]},
		Reasoning: openai.ReasoningField(c.Reasoning), Version: ownVersion(), Log: log, Limits: server.Limits{BodyBytes: body, RequestTime: c.Timeout, Drain: max(c.Drain, 1)}, // 0 would be the default, not at once
	}
	return config, config.Check()
}

// listening is the address that clients use: the host as it was given and the port that was taken.
func listening(host string, taken net.Addr) string {
	_, port, err := net.SplitHostPort(taken.String())
	if err != nil {
		return taken.String()
	}
	return net.JoinHostPort(unbracketed(host), port)
}

// open loads the model that prepare gives, starts its engine and opens the gate to it. lost is called when the device is gone.
func (c *serveCommand) open(ctx context.Context, prepare func(context.Context) (*instance.Prepared, error), lost func(), gate *server.Gate, config server.Config) (*engine.Engine, error) {
	start, log := time.Now(), config.Log
	p, err := prepare(ctx)
	if err != nil {
		return nil, err
	}
	announce(log, p)
	limits, unread := p.Target.Limits()
	if unread != nil {
		log.Warn("a limit of this process is unknown and taken as none", "error", unread)
	}
	if limits.Processors > 0 || limits.Memory.From != "" {
		log.Info("control groups bound this process", "processors", quota(limits), "memory", memoryLimit(limits))
	}
	memory, err := p.Plan()
	if err != nil {
		return nil, err
	}
	p.Progress = logProgress(log)
	m, err := p.Load(ctx)
	if err != nil {
		return nil, err
	}
	text, err := c.text(c.modelFlags, m.Checkpoint, log)
	if err != nil {
		return nil, err
	}
	logAnswers(log, text)
	options := engine.Options{MaxWaiting: c.MaxQueue, MaxWaitingTokens: c.QueueTokens, NoPrefixSharing: c.NoSharing, CacheTokens: c.CacheTokens, Log: log}
	e, err := m.Start(c.engineFlags.set(c.draftFlags.set(options)))
	if err != nil {
		return nil, err
	}
	go func() {
		select {
		case <-e.Lost():
			lost()
		case <-ctx.Done():
		}
	}()
	if c.Kernels != "" {
		if err := m.Target.FollowKernels(ctx, c.Kernels, e, log); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if m.Sizes.Drafts > 0 {
		log.Info("tokens are guessed ahead", "drafts", m.Sizes.Drafts, "fixed", c.NumDrafts > 0)
	}
	config.Model.Generator, config.Model.Engine = text.Generator(e, m), e
	go config.Model.Generator.Prepare() // so that no request waits for it
	if text.Template != nil {
		config.Model.Template = text
	}
	config.Ready = func() {
		log.Info("ready", "model", config.Model.Name, "checkpoint", m.Checkpoint.String(), "hardware", m.Target.Bundle.Hardware, "threads", m.Target.Threads(),
			"memory", formatBytes(memory.Total), "context", m.Sizes.MaxContext, "cached_tokens", memory.Tokens, "states", memory.Slots,
			"address", "http://"+config.Addr, "seconds", math.Round(time.Since(start).Seconds()*100)/100)
		if c.LogFormat == "text" && term.IsTerminal(int(os.Stderr.Fd())) {
			fmt.Fprint(os.Stderr, firstQuestion(config.Addr, config.Model.Name, config.Model.Template != nil, len(config.Keys) > 0))
		}
	}
	s, err := server.New(config)
	if err == nil && ctx.Err() != nil { // stopped meanwhile
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if len(config.Keys) == 0 && !server.Loopback(c.Host) {
		log.Warn("anybody who reaches this address may use the model (set --api-key or --api-key-file)", "address", config.Addr)
	}
	gate.Open(s)
	return e, nil
}

// address is where to listen. An IPv6 address may be in brackets.
func (c *serveCommand) address() string {
	return net.JoinHostPort(unbracketed(c.Host), fmt.Sprint(c.Port))
}

func unbracketed(host string) string { return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]") }

// keys gathers the keys of flags, environment and file.
func (c *serveCommand) keys() ([]string, error) {
	keys := c.APIKey
	if c.APIKeyFile != "" {
		data, err := os.ReadFile(c.APIKeyFile)
		if err != nil {
			return nil, err
		}
		keys = append(keys, strings.Fields(string(data))...)
	}
	if len(keys) == 0 && (c.APIKey != nil || c.APIKeyFile != "") { // who meant to set one must not open the API to everybody
		return nil, errors.New("--api-key and --api-key-file hold no key (give one, or leave them out)")
	}
	for _, key := range keys {
		if len(key) < 8 {
			return nil, fmt.Errorf("an API key has %d characters (use at least 8)", len(key))
		}
	}
	return keys, nil
}

// names are what clients may call the model; the first is shown.
func (c *serveCommand) names() []string {
	if len(c.Name) > 0 {
		return c.Name
	}
	return []string{cmp.Or(c.name(), "dummy")}
}

// ownVersion is the program's.
func ownVersion() string {
	info, _ := debug.ReadBuildInfo() // nil where there is none
	return version.Of(info)
}
