package plan

import (
	"cmp"
	"slices"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/expr"
)

// Limits of a launch on every GPU (CUDA C++ Programming Guide, technical specifications per compute capability).
const (
	maxThreads  = 1024
	maxThreadsZ = 64
	maxCluster  = 16
)

// LaunchConstants are what a GPU's body knows of each launch besides the entry's constants: the scheme of its weights, where
// the entry serves one alone, how many threads a block has and blocks a cluster, and bytes of dynamic shared memory.
var LaunchConstants = [...]string{"kCluster", "kShared", "kThreads", "kScheme"}

// threads checks what a launch says of blocks of threads: GPUs must know it, other hardware has none.
func (b *builder) threads(e *Entry, l *Launch, scope *expr.Scope) {
	if !b.hardware.Is().Threads {
		if l.Launch.Threads() {
			b.diags.Add(l.At(""), "remove block, shared and the like", "hardware %s has no blocks of threads", b.hardware.Name)
		}
		return
	}
	for _, name := range LaunchConstants {
		if _, taken := e.Const[name]; taken {
			b.diags.Add(e.At("const."+name), "rename it", "constant %s is what every launch says of itself", name)
		}
	}
	l.Block = [3]uint32{1, 1, 1}
	if len(l.Launch.Block) == 0 {
		b.diags.Add(l.At("inst"), `add block = ["128"]`, "hardware %s must know how many threads a block has", b.hardware.Name)
	}
	for i, text := range l.Launch.Block[:min(len(l.Launch.Block), 3)] { // more of them are a finding of form
		l.Block[i] = uint32(b.constant(l, "block", text, scope, 1, maxThreads))
	}
	if l.Threads() > maxThreads || l.Block[2] > maxThreadsZ {
		b.diags.Add(l.At("block"), "", "a block of %v threads is larger than %d in all or %d in z", l.Block, maxThreads, maxThreadsZ)
	}
	most := b.hardware.Constants["kSharedPerBlock"]
	if l.Launch.Shared != "" {
		l.Shared = uint32(b.constant(l, "shared", l.Launch.Shared, scope, 0, most))
	}
	if l.MaxShared > most {
		b.diags.Add(l.At("max_shared"), "lower it", "max_shared is %d, more than the %d bytes that a block of %s can have", l.MaxShared, most, b.hardware.Name)
	}
	b.tiles(e, l, scope)
	if l.Launch.Cluster != nil {
		l.Cluster = [3]uint32{1, 1, 1}
		for i, text := range l.Launch.Cluster[:min(len(l.Launch.Cluster), 3)] {
			l.Cluster[i] = uint32(b.constant(l, "cluster", text, scope, 1, maxCluster))
		}
		if n := l.Cluster[0] * l.Cluster[1] * l.Cluster[2]; n > maxCluster {
			b.diags.Add(l.At("cluster"), "", "a cluster of %d blocks is larger than %d", n, maxCluster)
		}
	}
}

// tiles checks the matrices that the copy engine reads: activations in boxes whose rows are 128 bytes.
func (b *builder) tiles(e *Entry, l *Launch, scope *expr.Scope) {
	for i, t := range l.Launch.Tiles {
		out := Tile{Field: t.Field}
		field := slices.IndexFunc(e.Op.Fields, func(f contract.Field) bool { return f.Name == t.Field && f.Kind == contract.Pointer })
		if field < 0 || e.Op.Fields[field].Elem != "act" || b.hardware.Activations != "bf16" {
			b.diags.Add(l.At("tiles"), "name a pointer to activations, which must be bf16", "tile %d is of field %q of %s", i, t.Field, e.Op.Name)
		}
		for _, part := range []struct {
			to   **expr.Expr
			text string
		}{{&out.Rows, t.Rows}, {&out.Cols, t.Cols}, {&out.Pitch, cmp.Or(t.Pitch, t.Cols)}} {
			var err error
			*part.to, err = scope.Int(part.text)
			b.report(l.At("tiles"), err)
		}
		if len(t.Box) != 2 {
			b.diags.Add(l.At("tiles"), `write box = ["128", "64"]`, "tile %d has a box of %d sides", i, len(t.Box))
			continue
		}
		out.Box[0] = uint32(b.constant(l, "tiles", t.Box[0], scope, 1, maxBox))
		out.Box[1] = uint32(b.constant(l, "tiles", t.Box[1], scope, boxCols, boxCols))
		l.Tiles = append(l.Tiles, out)
	}
}

// Limits of a tile: rows of a box (CUDA driver API, cuTensorMapEncodeTiled), and columns that a swizzle of 128 bytes has.
const (
	maxBox  = 256
	boxCols = 64
)

// constant evaluates an expression that must be a number between low and high.
func (b *builder) constant(l *Launch, key, text string, scope *expr.Scope, low, high int64) int64 {
	e, err := scope.Int(text)
	if b.report(l.At(key), err) {
		return low
	}
	n, ok := e.Constant()
	if !ok {
		b.diags.Add(l.At(key), "use constants only", "%s %q is not the same for every call", key, text)
		return low
	}
	if n < low || n > high {
		b.diags.Add(l.At(key), "", "%s is %d, outside %d to %d", key, n, low, high)
		return low
	}
	return n
}
