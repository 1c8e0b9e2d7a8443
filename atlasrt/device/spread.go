package device

import (
	"runtime/debug"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Piece is one copy to a device: the bytes, and the address that they go to.
type Piece struct {
	To   op.Ptr // on the device
	From []byte // may lie in a mapped file
}

// parts cuts pieces into parts, which several goroutines take.
type parts struct {
	mu     sync.Mutex
	pieces []Piece
	most   int // bytes of a part
}

// next takes a part. It is empty when none are left.
func (p *parts) next() Piece {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.pieces) > 0 && len(p.pieces[0].From) == 0 {
		p.pieces = p.pieces[1:]
	}
	if len(p.pieces) == 0 {
		return Piece{}
	}
	from := p.pieces[0].From
	n := min(len(from), p.most)
	part := Piece{p.pieces[0].To, from[:n]}
	p.pieces[0] = Piece{part.To + op.Ptr(n), from[n:]}
	return part
}

// stop drops the parts that nobody has taken.
func (p *parts) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pieces = nil
}

// Spread copies pieces with several goroutines. It cuts them into parts of at most so many bytes; each of workers goroutines, numbered
// from 0, takes a part and calls do until none are left. Parts are taken in no fixed order.
//
// An error ends it and is returned. A panic ends it too and goes on in the caller: reading a page of a mapped file that cannot be
// read is a panic here.
func Spread(pieces []Piece, bytes, workers int, do func(worker int, part Piece) error) error {
	all := parts{pieces: append([]Piece(nil), pieces...), most: bytes}
	errs, panics := make([]error, workers), make([]any, workers)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			debug.SetPanicOnFault(true) // of this goroutine, which ends here
			defer func() {
				if panics[worker] = recover(); panics[worker] != nil || errs[worker] != nil {
					all.stop()
				}
			}()
			for errs[worker] == nil {
				part := all.next()
				if len(part.From) == 0 {
					return
				}
				errs[worker] = do(worker, part)
			}
		})
	}
	group.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
