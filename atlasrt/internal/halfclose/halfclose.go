// Package halfclose tells a client that has only stopped sending from one that is gone.
//
// A client may close its sending side and still read the answer: netcat -N and some proxies do. net/http takes that for a lost client and
// cancels the request. Behind Handler a request's context ends only when the client is really gone.
//
// How that is found out: a computer whose program is gone answers the next byte with a reset (RFC 9293, section 3.5.2), after which a
// write fails. So probes are sent, bytes that change no answer. Every answer begins with "HTTP/1.": before it begins, these bytes are
// sent one at a time, and the answer is sent without them. Once a streamed answer has begun, Probes asks its handler to send something
// without meaning.
package halfclose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ErrGone is the cause that ends a request's context when its client is gone.
var ErrGone = errors.New("the client went away")

// statusLine begins every answer.
const statusLine = "HTTP/1."

// due is when each byte of statusLine may be sent, counted from when the client stopped sending.
var due = [len(statusLine)]time.Duration{0, 50 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, time.Minute, 4 * time.Minute}

// pauses are the times between two probes of a client that stopped sending; the last one repeats.
var pauses = [...]time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 150 * time.Millisecond, 800 * time.Millisecond, time.Second}

// Listen wraps a listener so that Handler knows its connections. The http.Server needs ConnContext, too.
func Listen(inner net.Listener) net.Listener { return listener{inner} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn is a connection that notes whether its client still sends, and whether an answer has begun.
type conn struct {
	net.Conn
	base    context.Context // of the server
	stopped atomic.Bool     // the client sends no more

	mutex  sync.Mutex
	watch  *watch // of the request that is being answered
	begun  bool   // the answer has begun
	before int    // bytes of statusLine that were sent as probes
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		c.stopped.Store(true)
	}
	return n, err
}

// Write implements net.Conn. It leaves out the bytes that were sent as probes.
func (c *conn) Write(p []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	sent := c.before
	if len(p) < sent || string(p[:sent]) != statusLine[:sent] {
		return 0, fmt.Errorf("halfclose: an answer begins with %q, not with %q", p[:min(len(p), sent)], statusLine[:sent])
	}
	c.begun, c.before = c.begun || !interim(p), 0
	n, err := c.Conn.Write(p[sent:])
	return sent + n, err
}

// interim tells whether p is an interim response such as 100 Continue, and not the answer.
func interim(p []byte) bool {
	const least = len("HTTP/1.1 1")
	return len(p) >= least && string(p[:least]) == "HTTP/1.1 1"
}

// probe returns an error where the client of a request is known to be gone. It may send a byte, whose reset a later call sees. since is
// the time since the client stopped sending.
func (c *conn) probe(w *watch, since time.Duration) error {
	if !c.mutex.TryLock() {
		return nil // the handler is writing, which serves as a probe
	}
	defer c.mutex.Unlock()
	if c.watch != w {
		return nil
	}
	var p []byte // an empty write fails, too, where a reset has come
	if !c.begun && c.before < len(statusLine) && since >= due[c.before] {
		p = []byte{statusLine[c.before]}
	}
	n, err := c.Conn.Write(p)
	c.before += n
	return err
}

// answering says which request is being answered; nil: none is.
func (c *conn) answering(w *watch) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.watch, c.begun = w, false
}

// connKey finds a request's connection in its context, watchKey its watch.
type connKey struct{}
type watchKey struct{}

// ConnContext is for the field of that name of an http.Server.
func ConnContext(ctx context.Context, inner net.Conn) context.Context {
	c, ok := inner.(*conn)
	if !ok {
		return ctx
	}
	c.base = ctx
	return context.WithValue(ctx, connKey{}, c)
}

// watch follows the client of one request.
type watch struct {
	conn   *conn
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when the handler has returned
	probes chan struct{} // see Probes
}

// Handler gives requests a context that ends with their client, or with the context of the server. Requests whose connection
// does not come from Listen keep the context that they have.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) {
		outer := r.Context()
		c, ok := outer.Value(connKey{}).(*conn)
		if !ok {
			next.ServeHTTP(writer, r)
			return
		}
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(outer))
		w := &watch{conn: c, cancel: cancel, ended: make(chan struct{}), probes: make(chan struct{}, 1)}
		c.answering(w)
		stop := context.AfterFunc(outer, func() { w.follow(outer) })
		defer func() {
			stop()
			close(w.ended)
			c.answering(nil)
			cancel(nil)
		}()
		next.ServeHTTP(writer, r.WithContext(context.WithValue(ctx, watchKey{}, w)))
	})
}

// follow runs once net/http has taken a client for lost. It ends with the request.
func (w *watch) follow(outer context.Context) {
	c := w.conn
	switch {
	case c.base.Err() != nil:
		w.cancel(context.Cause(c.base))
		return
	case !c.stopped.Load():
		w.cancel(fmt.Errorf("%w: %w", ErrGone, context.Cause(outer)))
		return
	}
	start := time.Now()
	for i := 0; ; i++ {
		if err := c.probe(w, time.Since(start)); err != nil {
			w.cancel(fmt.Errorf("%w: %w", ErrGone, err))
			return
		}
		select {
		case w.probes <- struct{}{}:
		default: // the handler has not taken the last one
		}
		select {
		case <-w.ended:
			return
		case <-c.base.Done():
			w.cancel(context.Cause(c.base))
			return
		case <-time.After(pauses[min(i, len(pauses)-1)]):
		}
	}
}

// Probes is for handlers that stream, with the context of their request. It gives a value each time the handler should send something
// without meaning, such as a comment, since its client has stopped sending. For requests that did not come through Handler it is nil.
func Probes(request context.Context) <-chan struct{} {
	if w, ok := request.Value(watchKey{}).(*watch); ok {
		return w.probes
	}
	return nil
}
