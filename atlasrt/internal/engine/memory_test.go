package engine

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// small is SmolLM2-135M: 30 layers of 3 heads of 64.
func small() Need {
	n := Need{
		Layout:      model.Layout{Vocab: 49152, MaxContext: 8192},
		WeightBytes: 200 << 20, ActivationBytes: 10 << 20, ScratchBytes: 1 << 20, MemoryBytes: 1 << 30,
		KVType: op.BF16, BlockSize: 16, MaxContext: 2048, MaxSequences: 8, MaxBatchTokens: 512,
	}
	for range 30 {
		n.Layout.Memory = append(n.Layout.Memory, model.KeysAndValues(3, 64))
	}
	return n
}

// deltaState is the memory of one layer of Qwen3-Next: a window of 8192 channels and a state of 32 heads of 128×128.
func deltaState() model.Memory {
	return model.Memory{Kind: model.PerSequence, Arrays: []model.Array{{Elements: 4 * 8192}, {Elements: 32 * 128 * 128, Type: op.F32}}}
}

// mostlyStates turns three of four layers into ones that keep states.
func mostlyStates(n *Need) {
	for i := range n.Layout.Memory {
		if i%4 != 3 {
			n.Layout.Memory[i] = deltaState()
		}
	}
}

func TestPlan(t *testing.T) {
	const blockBytes = 30 * 2 * 3 * 64 * 16 * 2
	const slotBytes = 23 * (2*4*8192 + 4*32*128*128)
	cases := []struct {
		name   string
		change func(*Need)
		blocks int // -1: as many as the memory holds
		block  int64
		slots  int
		slot   int64
	}{
		{"every sequence at full length", func(n *Need) {}, 8 * 128, blockBytes, 0, 0},
		{"as much as there is", func(n *Need) { n.MemoryBytes = 300 << 20 }, -1, blockBytes, 0, 0},
		{"length that fills no block", func(n *Need) { n.MaxContext, n.MaxSequences = 17, 1 }, 2, blockBytes, 0, 0},
		{"no layer keeps anything", func(n *Need) { n.Layout.Memory = nil }, 8 * 128, 0, 0, 0},
		{"states", mostlyStates, 8 * 128, blockBytes * 7 / 30, 8, slotBytes},
		{"states, as much as there is", func(n *Need) { mostlyStates(n); n.MemoryBytes = 650 << 20 }, -1, blockBytes * 7 / 30, 8, slotBytes},
		{"states, f32 cache", func(n *Need) { mostlyStates(n); n.KVType = op.F32 }, 8 * 128, blockBytes * 7 / 30 * 2, 8, slotBytes + 23*2*4*8192},
		{"states alone", func(n *Need) { n.Layout.Memory = []model.Memory{deltaState()} }, 8 * 128, 0, 8, slotBytes / 23},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			n := small()
			test.change(&n)
			m, err := Plan(n)
			if err != nil {
				t.Fatal(err)
			}
			sum := m.Weights + m.Activations + m.Scratch + m.Inputs + m.Logits + m.Cache + m.States
			if sum != m.Total || m.Total > n.MemoryBytes || m.Cache != int64(m.Blocks)*m.BlockBytes || m.Tokens != m.Blocks*n.BlockSize {
				t.Errorf("the sums do not hold: %+v", m)
			}
			if m.BlockBytes != test.block {
				t.Errorf("bytes of a block: got %d, want %d", m.BlockBytes, test.block)
			}
			if m.Slots != test.slots || m.SlotBytes != test.slot || m.States != int64(m.Slots)*m.SlotBytes {
				t.Errorf("got %d slots of %d bytes, %d in all; want %d of %d", m.Slots, m.SlotBytes, m.States, test.slots, test.slot)
			}
			if test.blocks >= 0 && m.Blocks != test.blocks {
				t.Errorf("blocks: got %d, want %d", m.Blocks, test.blocks)
			}
			if test.blocks < 0 && n.MemoryBytes-m.Total >= m.BlockBytes {
				t.Errorf("%d bytes are left, a block takes %d", n.MemoryBytes-m.Total, m.BlockBytes)
			}
		})
	}
}

// Each way that the error names must make the plan fit, and one step less must not.
func TestPlanSaysWhatToChange(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Need)
		ways   string
	}{
		{"context too long", func(n *Need) { n.MaxContext, n.MemoryBytes = 8192, 340<<20 }, "--max-context --memory"},
		{"too many sequences", func(n *Need) { n.MaxSequences, n.MemoryBytes = 512, 280<<20 }, "--max-sequences --memory"},
		{"f32 cache", func(n *Need) { n.KVType, n.MaxContext, n.MemoryBytes = op.F32, 4096, 360<<20 }, "--max-context --kv-type --memory"},
		{"not even the weights", func(n *Need) { n.MemoryBytes = 100 << 20 }, "--memory"},
		{"states of too many sequences", func(n *Need) { mostlyStates(n); n.MemoryBytes = 400 << 20 }, "--max-sequences --memory"},
		{"states and a context that is too long", func(n *Need) { mostlyStates(n); n.MaxContext, n.MemoryBytes = 8192, 600<<20 }, "--max-context --max-sequences --memory"},
		{"more than is free", func(n *Need) { n.MaxContext, n.MemoryBytes, n.FreeBytes = 8192, 340<<20, 341<<20 }, "--max-context"},
	}
	flag := regexp.MustCompile(`(--[a-z-]+) ([a-z0-9_]+?)(MiB)?[,)]`)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			n := small()
			test.change(&n)
			_, err := Plan(n)
			if err == nil {
				t.Fatal("got no error")
			}
			named := map[string]bool{}
			for _, way := range flag.FindAllStringSubmatch(strings.ReplaceAll(err.Error(), ", or", ","), -1) {
				value, _ := strconv.Atoi(way[2])
				named[way[1]] = true
				set := func(value int) error {
					c := n
					switch way[1] {
					case "--max-context":
						c.MaxContext = value
					case "--max-sequences":
						c.MaxSequences = value
					case "--memory":
						c.MemoryBytes = int64(value) << 20
					case "--kv-type":
						c.KVType = op.BF16 // the only smaller type
					default:
						t.Fatalf("%q names %s", err, way[1])
					}
					_, err := Plan(c)
					return err
				}
				if again := set(value); again != nil {
					t.Errorf("%s: as %q says: %v", way[0], err, again)
				}
				further := map[string]int{"--max-context": 1, "--max-sequences": 1, "--memory": -1}[way[1]]
				if further != 0 && set(value+further) == nil {
					t.Errorf("%s: not the least change", way[0])
				}
			}
			for _, want := range strings.Fields(test.ways) {
				if !named[want] {
					t.Errorf("%q does not name %s", err, want)
				}
			}
		})
	}
}

// Where no change alone makes the plan fit, two together may: fewer states, and a shorter context.
func TestPlanNamesChangesThatFitTogether(t *testing.T) {
	n := small()
	mostlyStates(&n)
	n.MaxContext, n.MemoryBytes, n.FreeBytes = 8192, 285<<20, 290<<20
	_, err := Plan(n)
	if err == nil {
		t.Fatal("got no error")
	}
	_, advice, _ := strings.Cut(err.Error(), "(change to ")
	var context int
	if _, scan := fmt.Sscanf(advice, "--max-sequences 1 with --max-context %d)", &context); scan != nil {
		t.Fatalf("got %v: %v", err, scan)
	}
	for more, want := range []bool{true, false} {
		c := n
		c.MaxSequences, c.MaxContext = 1, context+more
		if _, err := Plan(c); (err == nil) != want {
			t.Errorf("with a context of %d: %v", c.MaxContext, err)
		}
	}
}

// Memory that the device does not have is no way.
func TestPlanNamesOnlyMemoryThatIsThere(t *testing.T) {
	n := small()
	n.MemoryBytes, n.FreeBytes = 90<<20, 100<<20
	_, err := Plan(n)
	if !errors.Is(err, ErrNoRoom) || strings.Contains(err.Error(), "--memory") || !strings.Contains(err.Error(), "smaller model") {
		t.Errorf("got %v, want advice to take a smaller model", err)
	}
}

func TestPlanRefusesSizes(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Need)
		want   string
	}{
		{"longer than the model", func(n *Need) { n.MaxContext = 9000 }, "--max-context is 9000 (set it to 1 … 8192)"},
		{"no sequences", func(n *Need) { n.MaxSequences = 0 }, "--max-sequences is 0"},
		{"more sequences than rows", func(n *Need) { n.MaxSequences = 513 }, "--max-sequences is 513 (set it to 1 … 512, or raise --max-batch-tokens)"},
		{"block size", func(n *Need) { n.BlockSize = 0 }, "--block-size is 0"},
		{"batch", func(n *Need) { n.MaxBatchTokens = math.MaxInt }, "--max-batch-tokens is"},
		{"a batch of less than nothing", func(n *Need) { n.MaxBatchTokens, n.MaxSequences = -5, -5 }, "--max-batch-tokens is -5 (set it to 1 … 1048576)"},
		{"fewer rows than a sequence has with drafts", func(n *Need) { n.MaxBatchTokens, n.MaxSequences, n.Draws = 3, 0, 4 },
			"--max-batch-tokens is 3 (set it to 4 … 1048576, or lower --num-drafts: a step computes 4 rows of each sequence)"},
		{"cache of integers", func(n *Need) { n.KVType = op.I32 }, "--kv-type"},
		{"unknown type", func(n *Need) { n.KVType = 99 }, "--kv-type"},
		{"layer without heads", func(n *Need) { n.Layout.Memory[3] = model.KeysAndValues(0, 64) }, "layer 3 keeps arrays of 0 elements"},
		{"states of the drafter alone", func(n *Need) { n.Drafter = []model.Memory{fakeState} }, "the drafter keeps states of sequences"},
		{"a drafter's layer without heads", func(n *Need) { n.Drafter = []model.Memory{model.KeysAndValues(0, 64)} }, "layer 30 keeps arrays of 0 elements"},
		{"unknown kind of memory", func(n *Need) { n.Layout.Memory[2].Kind = 9 }, "layer 2 keeps memory of kind 9"},
		{"vocabulary", func(n *Need) { n.Layout.Vocab = 0 }, "a vocabulary of 0 tokens"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			n := small()
			test.change(&n)
			if _, err := Plan(n); err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, ErrNoRoom) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// boxedDevice overlaps; its mailboxes take memory of the device.
type boxedDevice struct{ *tapeDevice }

func (d boxedDevice) Mailbox(s device.Stream, inputs, results int) (device.Mailbox, error) {
	return host.NewMailbox(d, s, inputs, results)
}

// What is planned is what is taken, to the byte; and where memory ends the engine says so and gives back what it took.
func TestEngineTakesWhatIsPlanned(t *testing.T) {
	for i := range 8 {
		overlaps, states, draws := i%2 == 1, i/2%2 == 1, 1+i/4*3
		t.Run(fmt.Sprintf("overlaps %t, states %t, %d draws", overlaps, states, draws), func(t *testing.T) {
			n := small()
			n.Draws, n.Layout.Drafts = draws, int32(draws-1)
			if draws > 1 {
				n.Drafter = fakeDrafts
			}
			n.WeightBytes, n.ActivationBytes, n.MemoryBytes = 0, 0, 60<<20
			if states {
				n.Layout.Memory = append(n.Layout.Memory, fakeState, model.Memory{Kind: model.PerSequence, Arrays: []model.Array{{Elements: 1000}}})
			}
			m, err := Plan(n)
			if err != nil {
				t.Fatal(err)
			}
			d := &tapeDevice{Device: host.New(m.Total)}
			c := Config{Device: d, Set: tapeSampler{oracle.New(op.F32), d}, Model: &fakeModel{layout: n.Layout, device: d}, KVType: n.KVType, Draws: draws,
				Blocks: m.Blocks, ScratchBytes: n.ScratchBytes, MaxContext: n.MaxContext, MaxSequences: n.MaxSequences}
			if draws > 1 {
				c.Drafter = &fakeDrafter{fakeModel: &fakeModel{device: d}}
				if least := int64(n.MaxSequences * draws * 4 * int(n.Layout.Vocab)); m.Logits < least {
					t.Errorf("%d bytes for logits, want at least %d", m.Logits, least)
				}
			}
			if overlaps { // mailboxes, which a GPU keeps on the host
				d.Device = host.New(m.Total + overlapping*(n.sentBytes()+4*int64(n.resultWords())))
				c.Device = boxedDevice{d}
			}
			e, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if free, _ := d.Memory(); free != 0 {
				t.Errorf("%d of %d planned bytes are not taken", free, m.Total)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			c.Blocks++
			if _, err := New(c); err == nil || !strings.Contains(err.Error(), "for logits") {
				t.Errorf("one block more: got %v, want an error about memory for logits", err)
			}
			if free, total := d.Memory(); free != total {
				t.Errorf("after a failed start %d bytes are not given back", total-free)
			}
		})
	}
}

func TestBuckets(t *testing.T) {
	cases := []struct{ rows, limit, want int }{{1, 64, 1}, {3, 64, 3}, {8, 64, 8}, {9, 64, 10}, {17, 64, 20}, {33, 64, 40}, {63, 64, 64}, {65, 256, 80}, {5, 6, 5}, {17, 18, 18}}
	for _, test := range cases {
		if got := bucketRows(test.rows, test.limit); got != test.want {
			t.Errorf("bucketRows(%d, %d): got %d, want %d", test.rows, test.limit, got, test.want)
		}
	}
	buckets := map[int]bool{}
	for n := 1; n <= 256; n++ {
		got := bucketRows(n, 256)
		buckets[got] = true
		if got < n || 4*(got-n) > n {
			t.Errorf("bucketRows(%d, 256): got %d, want at most a quarter more", n, got)
		}
	}
	if len(buckets) > 32 {
		t.Errorf("%d buckets for 256 rows, want at most 32", len(buckets))
	}
	for n := 1; n < 100; n++ {
		if got := bucketBlocks(n, 99); got < n || got > 99 {
			t.Errorf("bucketBlocks(%d, 99): got %d", n, got)
		}
	}
}
