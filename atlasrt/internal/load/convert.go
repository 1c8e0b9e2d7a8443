package load

import (
	"encoding/binary"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// convertChunk is how many weights one goroutine converts at a time; a multiple of every block.
const convertChunk = 1 << 16

// convert writes t in the form of a scheme, on all processors. Blocks are repacked to another block type, or dequantised and rounded once
// to bf16.
func convert(to []byte, scheme op.Scheme, t weights.Tensor) error {
	block, blockBytes := t.Type.Block()
	n := t.Elements()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for start := int64(0); start < n; start += convertChunk {
		group.Go(func() error {
			end := min(start+convertChunk, n)
			stored, part := t.Data[start/block*blockBytes:end/block*blockBytes], to[scheme.RawBytes(1, start):scheme.RawBytes(1, end)]
			return mapping.Guard(func() error {
				if scheme != op.SchemeBF16 {
					return gguf.Repack(part, typeOf(scheme), stored, t.Type)
				}
				return toBF16(part, stored, t.Type)
			})
		})
	}
	return group.Wait()
}

func toBF16(to, stored []byte, kind tensor.Type) error {
	values := make([]float32, len(to)/2)
	if err := gguf.Dequantize(values, kind, stored); err != nil {
		return err
	}
	for i, v := range values {
		binary.LittleEndian.PutUint16(to[2*i:], tensor.ToBFloat16(v))
	}
	return nil
}
