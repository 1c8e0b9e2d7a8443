package instance

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/model"
)

// Each sequence of a made-up step has a slot, where layers keep states.
func TestMadeUpStepsHaveSlots(t *testing.T) {
	attention, state := model.KeysAndValues(2, 8), model.Memory{Kind: model.PerSequence, Arrays: []model.Array{{Elements: 5}, {Elements: 6}, {Elements: 7}}}
	cases := []struct {
		name   string
		memory []model.Memory
		slots  int32
	}{
		{"attention", []model.Memory{attention, attention}, 0},
		{"states", []model.Memory{state, attention}, 3},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			p := &Prepared{Layout: model.Layout{Memory: test.memory}}
			p.Sizes.BlockSize = 16
			in := p.inputs(3, 9, 100)
			if in.StateSlots != test.slots || in.Blocks != 3*7 || len(in.Memory) != len(test.memory) {
				t.Fatalf("got %d slots, %d blocks and %d layers, want %d, 21 and %d", in.StateSlots, in.Blocks, len(in.Memory), test.slots, len(test.memory))
			}
			for i, kept := range test.memory {
				if len(in.Memory[i]) != len(kept.Arrays) {
					t.Errorf("layer %d has %d arrays, want %d", i, len(in.Memory[i]), len(kept.Arrays))
				}
			}
		})
	}
}
