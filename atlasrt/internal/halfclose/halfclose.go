// Package halfclose tells a client that has only stopped sending from one that is gone.
//
// A client may close its sending side and still read the answer: netcat -N and some proxies do. net/http takes the end of
// what it reads for a lost client and cancels the request. Behind Handler a request's context lives on until the client
// really is gone: such a client answers the next byte with a reset, and the write after that one fails. So bytes are sent
// that change no answer. Before an answer begins these are the first ones of its status line; once it has begun, Probes asks
// the handler for some.
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

// pauses between looks at the connection of a client that stopped sending; the last one repeats.
var pauses = [...]time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 150 * time.Millisecond, 800 * time.Millisecond, time.Second}

// Listen makes the connections of a listener fit for Handler. The http.Server needs ConnContext, too.
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

// conn is a connection that knows whether its client still sends, and whether an answer has begun.
type conn struct {
	net.Conn
	base    context.Context // of the server
	stopped atomic.Bool     // the client sends no more

	mutex  sync.Mutex
	watch  *watch // of the request that is being answered
	begun  bool   // its answer has
	before int    // bytes of statusLine that were sent ahead of the answer
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		c.stopped.Store(true)
	}
	return n, err
}

// Write implements net.Conn. It leaves out what was sent ahead.
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

// interim tells whether p is 100 Continue or the like, and not the answer.
func interim(p []byte) bool {
	const least = len("HTTP/1.1 1")
	return len(p) >= least && string(p[:least]) == "HTTP/1.1 1"
}

// probe returns an error where the client of a request is gone. It may send a byte, by which a later call learns that.
func (c *conn) probe(w *watch, since time.Duration) error {
	if !c.mutex.TryLock() {
		return nil // a write is on its way, which probes better
	}
	defer c.mutex.Unlock()
	if c.watch != w {
		return nil
	}
	var p []byte // a write of nothing reports that a reset came
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

// watch is over the client of one request.
type watch struct {
	conn   *conn
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when the request was answered
	probes chan struct{}
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

// follow runs once net/http has given a client up. It ends with the request.
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
		default: // the handler has not come to the one before
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

// Probes gives something each time that a handler which streams should send something without a meaning: its client has
// stopped sending. It never does for requests that Handler does not know.
func Probes(request context.Context) <-chan struct{} {
	if w, ok := request.Value(watchKey{}).(*watch); ok {
		return w.probes
	}
	return nil
}
