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

// Part is bytes that one goroutine copies: those of one or several pieces, or of a stretch of one, which go to one place.
type Part struct {
	To   op.Ptr   // on the device
	From [][]byte // one after the other; may lie in mapped files
}

// Bytes is how many there are.
func (p Part) Bytes() (n int) {
	for _, from := range p.From {
		n += len(from)
	}
	return n
}

// Copy copies them to host memory that has room for all.
func (p Part) Copy(to []byte) {
	for _, from := range p.From {
		to = to[copy(to, from):]
	}
}

// parts cuts pieces into parts, which several goroutines take.
type parts struct {
	mu     sync.Mutex
	pieces []Piece
	most   int // bytes of a part
}

// next takes a part. It is empty when none are left. Pieces that follow each other and whose places do are one part, as far as it has room:
// each part costs a device some calls, however small it is.
func (p *parts) next() (part Part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := p.most
	for len(p.pieces) > 0 && room > 0 {
		from, to := p.pieces[0].From, p.pieces[0].To
		if len(from) == 0 {
			p.pieces = p.pieces[1:]
			continue
		}
		if len(part.From) == 0 {
			part.To = to
		} else if to != part.To+op.Ptr(p.most-room) {
			break
		}
		n := min(len(from), room)
		part.From = append(part.From, from[:n])
		p.pieces[0] = Piece{to + op.Ptr(n), from[n:]}
		room -= n
	}
	return part
}

// stop drops the parts that nobody has taken.
func (p *parts) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pieces = nil
}

// Spread copies pieces with several goroutines. It makes parts of at most so many bytes of them; each of workers goroutines, numbered
// from 0, takes a part and calls do until none are left. Parts are taken in no fixed order.
//
// An error ends it and is returned. A panic ends it too and goes on in the caller: reading a page of a mapped file that cannot be
// read is a panic here.
func Spread(pieces []Piece, bytes, workers int, do func(worker int, part Part) error) error {
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
