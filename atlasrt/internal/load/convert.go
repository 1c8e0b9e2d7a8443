package load

import (
	"encoding/binary"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// convertChunk is how many weights one goroutine converts at a time; a multiple of every block.
const convertChunk = 1 << 16

// toBF16 dequantises t and rounds once, on all processors.
func toBF16(to []byte, t weights.Tensor) error {
	block, blockBytes := t.Type.Block()
	n := t.Elements()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for start := int64(0); start < n; start += convertChunk {
		group.Go(func() error {
			end := min(start+convertChunk, n)
			values := make([]float32, end-start)
			stored := t.Data[start/block*blockBytes : end/block*blockBytes]
			if err := mapping.Guard(func() error { return gguf.Dequantize(values, t.Type, stored) }); err != nil {
				return err
			}
			for i, v := range values {
				binary.LittleEndian.PutUint16(to[2*(start+int64(i)):], tensor.ToBFloat16(v))
			}
			return nil
		})
	}
	return group.Wait()
}
