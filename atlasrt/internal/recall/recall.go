// Package recall has a drafter for tests: it knows a text, and guesses its tokens.
package recall

import (
	"encoding/binary"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Drafter guesses the tokens of Text by their positions, but for each Wrong-th, for which it guesses token 0. It keeps nothing.
type Drafter struct {
	Device device.Device // that steps run on
	Text   []int32       // of the one sequence, its prompt first
	Wrong  int           // at least 1
}

// Memory implements model.Drafter.
func (*Drafter) Memory() []model.Memory { return nil }

// Draft implements model.Drafter. It works on the host, so that the step must not be recorded.
func (d *Drafter) Draft(q op.Stream, in *model.Drafting) {
	if s, ok := q.(device.Stream); ok {
		if err := s.Sync(); err != nil {
			q.Fail(err)
			return
		}
	}
	for n := range op.Ptr(in.Chunks) {
		last := d.word(q, in.Last+4*n)
		if last < 0 {
			continue
		}
		at := int(d.word(q, in.Step.Positions+op.Ptr(4*last))) + 1 // of the token that was drawn
		for i := range int(in.Drafts) {
			token := int32(0)
			if at+1+i < len(d.Text) && (at+i)%d.Wrong > 0 {
				token = d.Text[at+1+i]
			}
			to := in.Next + op.Ptr(4*in.Pitch*int32(i+1)) + 4*n
			if err := d.Device.CopyIn(to, binary.LittleEndian.AppendUint32(nil, uint32(token))); err != nil {
				q.Fail(err)
			}
		}
	}
}

// word reads an i32 of the device.
func (d *Drafter) word(q op.Stream, p op.Ptr) int32 {
	var bytes [4]byte
	if err := d.Device.CopyOut(bytes[:], p); err != nil {
		q.Fail(err)
	}
	return int32(binary.LittleEndian.Uint32(bytes[:]))
}
