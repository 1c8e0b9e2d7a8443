package hub

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRedirectToPlainText(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/x", http.StatusFound)
	}))
	defer server.Close()
	options := Options{CacheDir: t.TempDir(), Endpoint: server.URL, Transport: server.Client().Transport}
	if _, err := Resolve(context.Background(), model, options); err == nil || !strings.Contains(err.Error(), "not encrypted: refused") {
		t.Errorf("got %v", err)
	}
}

func TestStalledConnection(t *testing.T) {
	h := newHub(t)
	want, _ := parseReference(model)
	stalled := make(chan struct{})
	defer close(stalled)
	h.serve = func(w http.ResponseWriter, r *http.Request, content []byte) {
		w.(http.Flusher).Flush()
		select {
		case <-stalled:
		case <-r.Context().Done():
		}
	}
	_, err := resolve(context.Background(), want, Options{CacheDir: t.TempDir(), Endpoint: h.URL}, patience{time.Millisecond, 50 * time.Millisecond})
	if !errors.Is(err, errStalled) {
		t.Errorf("got %v, want %v", err, errStalled)
	}
}

func TestCancelled(t *testing.T) {
	h := newHub(t)
	ctx, cancel := context.WithCancel(context.Background())
	h.serve = func(w http.ResponseWriter, r *http.Request, content []byte) {
		cancel()
		<-r.Context().Done()
	}
	if _, err := Resolve(ctx, model, Options{CacheDir: t.TempDir(), Endpoint: h.URL}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
