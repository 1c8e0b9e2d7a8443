package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

func TestDirect(t *testing.T) {
	device := &tapeDevice{Device: host.New(0)}
	m := newFakeModel(device)
	d, err := NewDirect(Config{Device: device, Set: tapeSampler{oracle.New(op.F32), device}, Model: m, KVType: op.F32, Blocks: 30, MaxBatchTokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	prompt := random(rand.New(rand.NewPCG(1, 7)), 47)
	for _, chunk := range []int{0, 1, 3, 47, 100} {
		t.Run(fmt.Sprint("chunk ", chunk), func(t *testing.T) {
			for _, all := range []bool{false, true} {
				got, err := d.Logits(prompt, chunk, all)
				if err != nil {
					t.Fatal(err)
				}
				var want []float32
				for i := range prompt {
					if all || i == len(prompt)-1 {
						want = append(want, m.logits(prompt[:i+1])...)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("all %v: %d logits differ from the model's own %d", all, len(got), len(want))
				}
			}
		})
	}
	got, err := d.Greedy(prompt, 25)
	if want := m.greedy(prompt, 25); err != nil || !slices.Equal(got, want) {
		t.Errorf("Greedy: got %v %v, want %v", got, err, want)
	}
	if _, err := d.Greedy(nil, 1); err == nil {
		t.Error("Greedy of nothing: got no error")
	}
	if _, err := d.Greedy(prompt, 1000); err == nil {
		t.Error("Greedy over the context: got no error")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if free, total := device.Memory(); free != total {
		t.Errorf("after Close: %d bytes are not given back", total-free)
	}
}
