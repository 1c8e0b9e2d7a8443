package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// network is how the clients of a test reach its servers.
type network interface {
	listen(t testing.TB) net.Listener
	dial(ctx context.Context, address string) (net.Conn, error)
}

// newNetwork is sockets, or pipes where the test runs in a bubble of synctest: there time stands still while anything else can go on, which a socket
// does not tell.
func newNetwork() network {
	if time.Now().Year() == 2000 { // when all bubbles begin
		return &pipes{listeners: map[string]*pipe{}}
	}
	return sockets{}
}

// client speaks HTTP over a network.
func client(n network) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return n.dial(ctx, address) },
	}}
}

type sockets struct{}

func (sockets) listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func (sockets) dial(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// pipes are listeners by their addresses. A pipe keeps nothing: who writes waits until all of it is read.
type pipes struct {
	mutex     sync.Mutex
	listeners map[string]*pipe
}

func (p *pipes) listen(testing.TB) net.Listener {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	l := &pipe{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1 + len(p.listeners)}, make(chan net.Conn), make(chan struct{}), sync.Once{}}
	p.listeners[l.address.String()] = l
	return l
}

func (p *pipes) dial(ctx context.Context, address string) (net.Conn, error) {
	p.mutex.Lock()
	l := p.listeners[address]
	p.mutex.Unlock()
	near, far := net.Pipe()
	select {
	case l.incoming <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipe is a listener.
type pipe struct {
	address  net.Addr
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (l *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipe) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipe) Addr() net.Addr { return l.address }
