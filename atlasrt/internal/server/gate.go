package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/halfclose"
)

// Gate takes connections for a server, which may come later: until Open is called, requests get 503 at once.
type Gate struct {
	log    *slog.Logger
	limits Limits
	server atomic.Pointer[Server]

	mutex    sync.Mutex // over what says that requests are taken
	address  string     // of the listener, once there is one
	announce bool       // whether the server was announced
}

// NewGate makes a gate that is shut and does not listen yet. It has the limits of the server to come, and its log; nil: nobody.
func NewGate(limits Limits, log *slog.Logger) (*Gate, error) {
	limits, err := limits.complete()
	if err != nil {
		return nil, err
	}
	return &Gate{log: cmp.Or(log, slog.New(slog.DiscardHandler)), limits: limits}, nil
}

// Listen takes a port for a gate.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("server: %w (is another server running? choose another address)", err)
	case err != nil:
		return nil, fmt.Errorf("server: %w (choose an address of this machine, and a port that this user may take)", err)
	}
	return listener, nil
}

// Open lets requests through to s from here on, and logs that it is listening.
func (g *Gate) Open(s *Server) {
	g.server.Store(s)
	g.listening()
}

// listening logs that requests are taken, once both a port and a server are there.
func (g *Gate) listening() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	s := g.server.Load()
	if s == nil || g.address == "" || g.announce {
		return
	}
	g.announce = true
	if s.config.Ready != nil {
		s.config.Ready()
	}
	g.log.Info("listening", "address", g.address, "model", s.config.Model.Name, "keys", len(s.keys))
}

// Serve takes requests from a listener, which it closes, until ctx is done. Then the server drains, if there is one: new
// requests are refused, running ones have Limits.Drain to finish, and what is left is cancelled. A clean end is nil.
func (g *Gate) Serve(ctx context.Context, listener net.Listener) error {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(errShutdown)
	h := &http.Server{
		Handler:           halfclose.Handler(g),
		ReadHeaderTimeout: g.limits.HeaderTime,
		IdleTimeout:       g.limits.IdleTime,
		MaxHeaderBytes:    g.limits.HeaderBytes,
		ConnContext:       halfclose.ConnContext,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	g.mutex.Lock()
	g.address = listener.Addr().String() // before the first answer
	g.mutex.Unlock()
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(halfclose.Listen(netutil.LimitListener(listener, g.limits.Connections))) }()
	g.listening()
	select {
	case err := <-failed:
		return fmt.Errorf("server: %w", err)
	case <-ctx.Done():
	}
	if s := g.server.Load(); s != nil {
		s.drain(cancel)
	}
	return g.shutdown(h, cancel)
}

// closeTime is how long answers that are made have to reach their clients.
const closeTime = 5 * time.Second

// shutdown ends the connections.
func (g *Gate) shutdown(h *http.Server, cancel context.CancelCauseFunc) error {
	ctx, stop := context.WithTimeout(context.Background(), closeTime)
	defer stop()
	if err := h.Shutdown(ctx); err != nil {
		cancel(errShutdown)
		if err := h.Close(); err != nil {
			return fmt.Errorf("server: %w", err)
		}
	}
	g.log.Info("stopped")
	return nil
}

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s := g.server.Load(); s != nil {
		s.ServeHTTP(w, r)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(g.limits.WriteTime))
	header := w.Header()
	nameResponse(header, r)
	status, body := loading(r, header.Get(requestID))
	header.Set("Content-Type", jsonType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("X-Content-Type-Options", "nosniff")
	if status != http.StatusOK {
		header.Set("Retry-After", strconv.Itoa(retryLoad))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// loading is what a request gets while there is no server: the process lives, and nothing else works.
func loading(r *http.Request, id string) (status int, body []byte) {
	switch plainPath(r.URL.Path) {
	case "/livez", "/live":
		return http.StatusOK, []byte(healthy)
	case "/health", "/readyz", "/ready":
		return http.StatusServiceUnavailable, unavailable("loading", "Loading model")
	}
	e := &api.Error{Kind: api.KindLoading, RequestID: id, Message: "The model is still being loaded; try again later."}
	status, _, body = errorsOf(r).Problem(e)
	return status, body
}
