package engine

import (
	"errors"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

var _ model.Seam = (*pieces)(nil)

// pieces is a stream that a forward pass is queued on where it is replayed in pieces.
//
// The pass runs each time and what it launches is skipped, but for the live parts: they go to the real stream, behind the
// piece that comes before them. A piece is recorded by a pass that skips everything else.
type pieces struct {
	device.Stream
	graphs []device.Graph // to be replayed; nil while a piece is recorded
	record int            // the piece that is recorded
	at     int            // the piece that the pass has come to
	live   bool
	unused [argsLimit]byte // what argument blocks of skipped launches are written to
}

// argsLimit is more than the argument block of any launch.
const argsLimit = 32 << 10

// passes tells whether launches go to the real stream.
func (p *pieces) passes() bool {
	if p.live {
		return p.graphs != nil
	}
	return p.graphs == nil && p.at == p.record
}

// Args implements op.Stream.
func (p *pieces) Args(bytes uintptr) unsafe.Pointer {
	if !p.passes() && bytes <= argsLimit {
		return unsafe.Pointer(&p.unused)
	}
	return p.Stream.Args(bytes)
}

// Launch implements op.Stream.
func (p *pieces) Launch(k op.Kernel, g op.Grid) {
	if p.passes() {
		p.Stream.Launch(k, g)
	}
}

// BeginLive implements model.Seam.
func (p *pieces) BeginLive() {
	p.replay()
	p.live = true
}

// EndLive implements model.Seam.
func (p *pieces) EndLive() {
	p.live = false
	p.at++
}

func (p *pieces) replay() {
	if p.at < len(p.graphs) {
		p.graphs[p.at].Replay(p.Stream)
	}
}

// run replays a pass: graphs are its pieces.
func (p *pieces) run(graphs []device.Graph, pass func(op.Stream)) {
	p.graphs, p.at, p.live = graphs, 0, false
	pass(p)
	p.replay()
}

// capture records every piece of a pass.
func (p *pieces) capture(d device.Grapher, pass func(op.Stream)) (graphs []device.Graph, err error) {
	for p.record = 0; ; p.record++ {
		p.graphs, p.at, p.live = nil, 0, false
		g, err := d.Capture(p.Stream, func() { pass(p) })
		if err != nil {
			return nil, errors.Join(append(closeAll(graphs), err)...)
		}
		if graphs = append(graphs, g); p.record >= p.at {
			return graphs, nil
		}
	}
}
