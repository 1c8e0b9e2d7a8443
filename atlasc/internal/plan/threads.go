package plan

import (
	"github.com/atlas-inference/atlas/atlasc/internal/expr"
)

// Limits of a launch on every GPU (CUDA C++ Programming Guide, technical specifications per compute capability).
const (
	maxThreads  = 1024
	maxThreadsZ = 64
	maxCluster  = 16
)

// threads checks what a launch says of blocks of threads: GPUs must know it, other hardware has none.
func (b *builder) threads(l *Launch, scope *expr.Scope) {
	if b.hardware.Device != "cuda" {
		if l.Launch.Threads() {
			b.diags.Add(l.At(""), "remove block, shared and the like", "hardware %s has no blocks of threads", b.hardware.Name)
		}
		return
	}
	l.Block = [3]uint32{1, 1, 1}
	if len(l.Launch.Block) == 0 {
		b.diags.Add(l.At("inst"), `add block = ["128"]`, "hardware %s must know how many threads a block has", b.hardware.Name)
	}
	for i, text := range l.Launch.Block {
		l.Block[i] = uint32(b.constant(l, "block", text, scope, 1, maxThreads))
	}
	if l.Threads() > maxThreads || l.Block[2] > maxThreadsZ {
		b.diags.Add(l.At("block"), "", "a block of %v threads is larger than %d in all or %d in z", l.Block, maxThreads, maxThreadsZ)
	}
	if l.Launch.Shared != "" {
		l.Shared = uint32(b.constant(l, "shared", l.Launch.Shared, scope, 0, b.hardware.Constants["kSharedPerBlock"]))
	}
	if l.Launch.Cluster != nil {
		l.Cluster = [3]uint32{1, 1, 1}
		for i, n := range l.Launch.Cluster {
			l.Cluster[i] = uint32(n)
		}
		if n := l.Cluster[0] * l.Cluster[1] * l.Cluster[2]; n > maxCluster {
			b.diags.Add(l.At("cluster"), "", "a cluster of %d blocks is larger than %d", n, maxCluster)
		}
	}
}

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
