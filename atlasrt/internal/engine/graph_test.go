package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

func TestGraphModes(t *testing.T) {
	cases := []struct {
		mode          GraphMode
		decode, mixed Recording
		fails         bool
	}{
		{"", Full, Eager, false},
		{GraphsNone, Eager, Eager, false},
		{GraphsPiecewise, Piecewise, Piecewise, false},
		{GraphsFull, Full, Full, false},
		{GraphsFullDecodeOnly, Full, Eager, false},
		{GraphsFullAndPiecewise, Full, Piecewise, false},
		{"FULL", Eager, Eager, true},
		{"always", Eager, Eager, true},
	}
	for _, test := range cases {
		decode, mixed, err := test.mode.Recordings()
		if decode != test.decode || mixed != test.mixed || err != nil != test.fails {
			t.Errorf("%q: got %v, %v, %v; want %v, %v, an error %v", test.mode, decode, mixed, err, test.decode, test.mixed, test.fails)
		}
	}
}

func TestDecodeSizes(t *testing.T) {
	cases := []struct {
		sequences int
		given     []int
		want      []int
	}{
		{1, nil, []int{1}},
		{12, nil, []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12}},
		{64, []int{32, 1, 8, 1}, []int{1, 8, 32}},
	}
	for _, test := range cases {
		if got := decodeSizes(Config{MaxSequences: test.sequences, Options: Options{GraphSizes: test.given}}); !slices.Equal(got, test.want) {
			t.Errorf("%d sequences, given %v: got %v, want %v", test.sequences, test.given, got, test.want)
		}
	}
}

func TestConfigRefusesGraphs(t *testing.T) {
	d := &tapeDevice{Device: host.New(0)}
	good := Config{Device: d, Set: tapeSampler{oracle.New(op.F32), d}, Model: newFakeModel(d), KVType: op.F32, Blocks: 10, MaxSequences: 4}
	cases := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"mode", func(c *Config) { c.Graphs = "some" }, "set --graph-mode to one of none, piecewise, full, full_decode_only, full_and_piecewise"},
		{"size over the sequences", func(c *Config) { c.GraphSizes = []int{1, 5} }, "decode steps of 5 sequences cannot be recorded"},
		{"size of nothing", func(c *Config) { c.GraphSizes = []int{0} }, "set --graph-capture-sizes to sizes from 1 to --max-sequences, which is 4"},
	}
	for _, test := range cases {
		c := good
		test.change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}

// A step is replayed only where all its sizes repeat.
func TestKeysTellSizesApart(t *testing.T) {
	step := shape{rows: 8, seqs: 4, outputs: 8, drawing: 4, samples: 8, drafts: 1, maxBlocks: 8, recording: Full}
	changes := []func(*shape){
		func(s *shape) { s.rows++ }, func(s *shape) { s.seqs++ }, func(s *shape) { s.outputs++ }, func(s *shape) { s.drawing++ }, func(s *shape) { s.samples++ },
		func(s *shape) { s.drafts++ }, func(s *shape) { s.maxBlocks++ }, func(s *shape) { s.box++ }, func(s *shape) { s.late = true },
	}
	for i, change := range changes {
		other := step
		if change(&other); other.key() == step.key() {
			t.Errorf("change %d: %+v is replayed as %+v", i, other, step)
		}
	}
}

// Every decode step finds its size recorded, from the first one on.
func TestCaptureAtStart(t *testing.T) {
	for _, mode := range []GraphMode{GraphsFull, GraphsPiecewise} {
		t.Run(string(mode), func(t *testing.T) {
			f := newFixture(t, func(c *Config, f *fixture) {
				c.Device, c.Graphs, c.CaptureAtStart, c.MaxSequences, c.MaxContext = f.ahead, mode, true, 3, 100
			})
			before := f.Stats().GraphCaptures
			want := uint64(3 * 3 * 2) // rows of 1, 2 and 3; tables of 8, 16 and 25 blocks; two mailboxes
			if mode == GraphsPiecewise {
				want = 3
			}
			if before != want {
				t.Errorf("recorded %d steps, want %d", before, want)
			}
			var inboxes []*Inbox
			for i := range int32(3) {
				inboxes = append(inboxes, f.submit(t, greedy([]int32{i}, 80)))
			}
			for i, events := range inboxes {
				if got, want := read(events), f.model.greedy([]int32{int32(i)}, 80); !slices.Equal(got.tokens, want) {
					t.Errorf("request %d: got %v, want %v", i, got.tokens, want)
				}
			}
			if s := f.Stats(); s.ReplayedFull+s.ReplayedPiecewise < s.DecodeSteps || mode == GraphsFull && s.GraphCaptures != before {
				t.Errorf("%s: %+v, want every decode step replayed and nothing recorded meanwhile", fmt.Sprint(mode), s)
			}
		})
	}
}

// Tokens that have come are handed out before a step of a new size is recorded.
func TestTokensDoNotWaitForARecording(t *testing.T) {
	var f *fixture
	var waiting []int
	f = newFixture(t, func(c *Config, g *fixture) {
		c.Device, c.BlockSize = g.ahead, 2
		g.graphs.refuse = func(int64) error {
			waiting = append(waiting, len(f.outbox))
			return nil
		}
	})
	read(f.submit(t, greedy([]int32{1}, 30)))
	if !slices.Equal(waiting, []int{0, 0, 0, 0}) { // of the first step and of the first with longer tables, for two mailboxes
		t.Errorf("so many events waited for each recording: %v, want none for four", waiting)
	}
}
