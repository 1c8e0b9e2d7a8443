package load

import (
	"encoding/binary"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// convertChunk is how many weights one goroutine converts at a time; a multiple of every block.
const convertChunk = 1 << 16

// convert writes runs of a stored type in the form of a scheme, one after the other, on all processors. Blocks are repacked to another
// block type, or dequantised and rounded once to bf16.
func convert(to []byte, scheme op.Scheme, kind tensor.Type, runs [][]byte) error {
	block, blockBytes := kind.Block()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, run := range runs {
		n := int64(len(run)) / blockBytes * block
		for start := int64(0); start < n; start += convertChunk {
			end := min(start+convertChunk, n)
			stored, part := run[start/block*blockBytes:end/block*blockBytes], to[scheme.RawBytes(1, start):scheme.RawBytes(1, end)]
			group.Go(func() error {
				return mapping.Guard(func() error {
					if scheme != op.SchemeBF16 {
						return gguf.Repack(part, typeOf(scheme), stored, kind)
					}
					return toBF16(part, stored, kind)
				})
			})
		}
		to = to[scheme.RawBytes(1, n):]
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
