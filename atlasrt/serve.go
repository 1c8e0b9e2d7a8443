package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/server"
)

// serveCommand serves one model over HTTP.
type serveCommand struct {
	loadFlags
	engineFlags
	Host        string        `help:"Address to listen on; anything but a loopback address should have a key." default:"127.0.0.1"`
	Port        int           `help:"Port to listen on." default:"8000"`
	Hosts       []string      `help:"Further names that the Host header may have on a loopback address; * is all."`
	CORSOrigin  []string      `name:"cors-origin" help:"Origins, such as https://app.example, whose web pages may use the API from a browser; * is all." placeholder:"ORIGIN"`
	APIKey      []string      `name:"api-key" help:"Keys that open the API; better in the environment or a file than on the command line."`
	APIKeyFile  string        `name:"api-key-file" type:"existingfile" help:"File with a key on each line."`
	Name        []string      `name:"served-model-name" aliases:"name" env:"ATLASRT_SERVED_MODEL_NAME,ATLASRT_NAME" help:"Names that clients may ask for, the first one where they ask for none; empty: the checkpoint's."`
	MaxQueue    int           `help:"Most requests that wait." default:"256"`
	QueueTokens int           `help:"Most prompt tokens that wait." default:"2097152"`
	BodyLimit   string        `help:"Largest request body." default:"32MiB"`
	Timeout     time.Duration `help:"Longest time for one request." default:"600s"`
	Drain       time.Duration `help:"Time that running requests have to end after SIGTERM." default:"30s"`
	NoSharing   bool          `help:"Never take a prompt's beginning from the cache."`
	logFlags
}

// Run implements the command: it ends after SIGINT or SIGTERM, or when the device is lost, once running requests have ended.
func (c *serveCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	log := c.logger(os.Stderr)
	start := time.Now()
	keys, err := c.keys()
	if err != nil {
		return err
	}
	body, err := parseBytes(c.BodyLimit)
	if err != nil {
		return err
	}
	p, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	for _, note := range p.Checkpoint.Notes() {
		log.Warn(note)
	}
	for _, line := range p.Counter.Converted() {
		log.Info(line)
	}
	memory, err := engine.Plan(p.Need())
	if err != nil {
		return err
	}
	m, err := p.Load(ctx)
	if err != nil {
		return err
	}
	text, err := instance.OpenText(m.Checkpoint)
	if err != nil {
		return err
	}
	e, err := m.Start(c.set(instance.EngineOptions{MaxWaiting: c.MaxQueue, MaxWaitingTokens: c.QueueTokens, NoPrefixSharing: c.NoSharing, Log: log}))
	if err != nil {
		return err
	}
	defer e.Close()
	go func() {
		select {
		case <-e.Lost():
			stop()
		case <-ctx.Done():
		}
	}()
	if c.Kernels != "" {
		if err := m.Target.FollowKernels(ctx, c.Kernels, e, log); err != nil {
			return err
		}
	}
	names := c.names()
	config := server.Config{
		Addr: c.address(), Keys: keys, Hosts: c.Hosts, Origins: c.CORSOrigin, ModelName: names[0], Aliases: names[1:],
		Generator: text.Generator(e, m), Engine: e, Defaults: text.Defaults.Params(), Version: version(), Log: log,
		Limits: server.Limits{BodyBytes: body, RequestTime: c.Timeout, Drain: c.Drain},
	}
	if text.Template != nil {
		config.Template = text
	}
	s, err := server.New(config)
	if err != nil {
		return err
	}
	if len(keys) == 0 && !server.Loopback(c.Host) {
		log.Warn("anybody who reaches this address may use the model (set --api-key or --api-key-file)", "address", config.Addr)
	}
	log.Info("ready", "model", names[0], "checkpoint", m.Checkpoint.String(), "hardware", m.Target.Bundle.Hardware, "threads", m.Target.Threads(),
		"memory", formatBytes(memory.Total), "context", m.Sizes.MaxContext, "cached_tokens", memory.Tokens,
		"address", "http://"+config.Addr, "seconds", fmt.Sprintf("%.2f", time.Since(start).Seconds()))
	return errors.Join(s.Run(ctx), e.Err())
}

// address is where to listen. An IPv6 address may be in brackets.
func (c *serveCommand) address() string {
	return net.JoinHostPort(strings.TrimSuffix(strings.TrimPrefix(c.Host, "["), "]"), fmt.Sprint(c.Port))
}

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
	name := c.Model
	if c.LoadDummy != "" {
		name = "dummy"
	}
	if base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)); strings.HasSuffix(name, ".gguf") || filepath.IsAbs(name) {
		name = base
	}
	return []string{name}
}

// version is the module's, as the Go toolchain recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
