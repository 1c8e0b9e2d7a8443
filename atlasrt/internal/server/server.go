// Package server speaks HTTP: it routes requests to a model's generator, and streams or returns the answers. What requests,
// answers and errors look like is the dialect's of their route (package api).
//
// Every response carries x-request-id. A client that goes away cancels its request, unless that asked to be answered in the
// background. A panic fails one request. Nothing here reads flags or the environment; prompts are never logged. A request starts
// goroutines for answers in the background only (jobs): they end with the answer, and at the latest when the server shuts down.
package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/cors"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/metrics"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// Config says what is served, and how. Fields without a default must be set.
type Config struct {
	Addr  string   // host:port to listen on; "127.0.0.1:8000". An empty host is every interface
	Keys  []string // any of these opens the API, as a Bearer token or as x-api-key; none: everybody may come
	Hosts []string // names that the Host header may have beside those of this machine, or "*" for all; only looked at where Addr is a loopback address

	Origins []string // of web pages that may use the API from a browser, as scheme://host:port; "*" is all, none is none

	Model Model // must be given; see Check

	Reasoning openai.ReasoningField // in which chat completions have thoughts; both
	Dump      *Dump                 // takes all requests for answers, and the answers; nil: none does

	Version string       // that GET /version shows; "unknown"
	Log     *slog.Logger // one line for each request, without its contents; nobody
	Ready   func()       // called once requests are taken; nil: nothing
	Limits  Limits       // what requests may take
}

// Check says what is wrong with the fields that need no model, so that it is known before one is loaded.
func (c *Config) Check() error {
	if slices.Contains(c.Keys, "") {
		return errors.New("server: an API key is empty (leave it out, or no key at all is needed)")
	}
	if err := c.Model.check(); err != nil {
		return err
	}
	if _, _, err := allowedHosts(cmp.Or(c.Addr, defaultAddr), c.Hosts); err != nil {
		return err
	}
	_, err := newOrigins(c.Origins)
	return err
}

// defaultAddr is where a server listens that was told nothing.
const defaultAddr = "127.0.0.1:8000"

// Server is an HTTP server. It is an http.Handler as well.
type Server struct {
	config  Config
	limits  Limits
	request api.Limits
	log     *slog.Logger
	metrics *metrics.Metrics
	router  *gin.Engine
	errors  map[string]api.Errors // how routes that answer in a dialect say what went wrong

	admission *admission
	store     *store.Store
	jobs      *jobs

	keys     [][sha256.Size]byte
	hosts    []string   // allowed, beside those of this machine
	origins  *cors.Cors // nil: browsers keep pages of other origins away
	models   []openai.Model
	draining atomic.Bool

	checksHost bool
}

// New makes a server that does not listen yet.
func New(c Config) (*Server, error) {
	if c.Model.Name == "" || c.Model.Generator == nil || c.Model.Engine == nil {
		return nil, errors.New("server: the model's Name, Generator and Engine must be given")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := c.Model.Generator.Defaults.Validate(c.Model.Generator.Vocab); err != nil {
		return nil, fmt.Errorf("server: the model's default %w", err)
	}
	c.Addr = cmp.Or(c.Addr, defaultAddr)
	c.Version = cmp.Or(c.Version, "unknown")
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	fill(&c.Limits.CountTokens, max(countTokens, c.Model.Generator.MaxContext))
	limits, err := c.Limits.complete()
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, limits: limits, request: limits.request(), log: c.Log, metrics: metrics.New(c.Model.Name, c.Model.Engine), admission: newAdmission(limits),
		store: store.New(store.Limits{Responses: limits.StoredResponses, Bytes: limits.StoredBytes, Age: limits.StoredTime}), jobs: newJobs()}
	for _, key := range c.Keys {
		s.keys = append(s.keys, sha256.Sum256([]byte(key)))
	}
	if s.hosts, s.checksHost, err = allowedHosts(c.Addr, c.Hosts); err != nil {
		return nil, err
	}
	if s.origins, err = newOrigins(c.Origins); err != nil {
		return nil, err
	}
	created := time.Now().Unix()
	for _, name := range c.Model.names() {
		s.models = append(s.models, openai.NewModel(name, created, c.Model.Generator.MaxContext))
	}
	s.router = s.routes()
	return s, nil
}

// Run listens, and serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	listener, err := Listen(ctx, s.config.Addr)
	if err != nil {
		return err
	}
	return s.Serve(ctx, listener)
}

// Serve is Run on a listener, which it closes. See Gate.Serve.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	gate, err := NewGate(s.limits, s.log)
	if err != nil {
		return err
	}
	gate.Open(s)
	return gate.Serve(ctx, listener)
}

// drain refuses new requests and those that wait, and lets running ones end.
func (s *Server) drain(cancel context.CancelCauseFunc) {
	s.draining.Store(true)
	stats := s.config.Model.Engine.Stats()
	s.log.Info("draining", "running", stats.Running, "turned_away", stats.Waiting, "seconds", s.limits.Drain.Seconds())
	ctx, stop := context.WithTimeout(context.Background(), s.limits.Drain)
	defer stop()
	if err := s.config.Model.Engine.Drain(ctx); err != nil {
		s.log.Warn("cancelling what still runs", "error", err)
		cancel(errShutdown)
		s.jobs.stop(errShutdown)
	}
	s.jobs.end()
}
