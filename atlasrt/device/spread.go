package device

import (
	"runtime/debug"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Piece is bytes and where on a device they go.
type Piece struct {
	To   op.Ptr
	From []byte
}

// parts cuts pieces for those who take them one after the other.
type parts struct {
	mu     sync.Mutex
	pieces []Piece
	most   int // bytes of a part
}

// next takes a part; an empty one when none are left.
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

// stop leaves none for others.
func (p *parts) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pieces = nil
}

// Spread cuts pieces into parts of at most so many bytes, and workers, goroutines that are numbered from 0, call do for one
// part after the other, in no order. The first error ends it. So does a panic, which goes on in the caller; a page of a
// mapping that cannot be read is one.
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
