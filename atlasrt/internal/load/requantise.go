package load

import (
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Another is how a matrix is kept that the checkpoint keeps otherwise, or under another name.
type Another struct {
	Of     string    // the tensor; "": the matrix is what it is
	Scheme op.Scheme // SchemeF8 or SchemeNVFP4, which elements are quantised to when they are loaded; 0: as the checkpoint keeps them
}

// Requantised is stored but for matrices that instead says something of. Matrices that are quantised already stay as they are, and so do those
// whose columns do not fill the blocks of a scheme.
func Requantised(stored func(name string) (Storage, bool), instead func(name string) Another) func(name string) (Storage, bool) {
	return func(name string) (Storage, bool) {
		to := instead(name)
		if to.Of == "" {
			return stored(name)
		}
		s, ok := stored(to.Of)
		if ok && to.Scheme != 0 && s.problem == "" && isFloat(s.Type) && len(s.Shape) == 2 && s.Shape[1]%to.Scheme.Block() == 0 {
			s.Scheme, s.quantises = to.Scheme, true
		}
		return s, ok
	}
}

// Largest numbers of e4m3 and of e2m1.
const (
	mostE4M3 = 448
	mostE2M1 = 6
)

// quantised adds the codes of one part and their block scales, quantised, and returns the scales of its rows. The largest number of a row, or
// of a block of NVFP4, becomes the largest of its format.
func (l *Loader) quantised(b *batch, s Storage, p model.Part, code, scale op.Ptr, cols int64) ([]float32, error) {
	t, err := l.checkpoint.Tensor(s.Name)
	if err != nil {
		return nil, err
	}
	defer l.checkpoint.Release(t)
	codeBytes, scaleBytes := split(s.Scheme, int64(p.Rows), cols)
	codes, scales, factors := make([]byte, codeBytes), make([]byte, scaleBytes), make([]float32, p.Rows)
	one := quantiser{scheme: s.Scheme, cols: cols, codes: codeBytes / int64(p.Rows), scales: scaleBytes / int64(p.Rows)}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	first := int64(0)
	for _, run := range runs(t.Data, p) {
		const together = 64 // rows that one goroutine takes
		bytes := int64(len(t.Data)) / storedRows(p)
		for rows := int64(len(run)) / bytes; rows > 0; rows -= together {
			n, from := min(together, rows), first
			part := run[:n*bytes]
			run, first = run[len(part):], first+n
			group.Go(func() error {
				values := make([]float32, n*cols)
				if err := mapping.Guard(func() error { return gguf.Dequantize(values, t.Type, part) }); err != nil {
					return wrap(t, err)
				}
				one.rows(codes[from*one.codes:], scales[from*one.scales:], factors[from:from+n], values)
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	b.add(code, codes)
	if len(scales) > 0 {
		b.add(scale, scales)
	}
	return factors, nil
}

// quantiser quantises rows of so many columns to a scheme, in which a row has so many bytes of codes and of block scales.
type quantiser struct {
	scheme              op.Scheme
	cols, codes, scales int64
}

// rows writes the codes and the block scales of rows, and their own scales.
func (q quantiser) rows(codes, scales []byte, factors, values []float32) {
	for i := range factors {
		row := values[int64(i)*q.cols:][:q.cols]
		to := codes[int64(i)*q.codes:][:q.codes]
		if q.scheme == op.SchemeF8 {
			factors[i] = quantiseF8(to, row)
		} else {
			factors[i] = quantiseFP4(to, scales[int64(i)*q.scales:][:q.scales], row)
		}
	}
}

// quantiseF8 writes a row as e4m3 and returns its scale.
func quantiseF8(codes []byte, row []float32) float32 {
	factor := largest(row) / mostE4M3
	for i, v := range row {
		codes[i] = tensor.ToE4M3(over(v, factor))
	}
	return factor
}

// quantiseFP4 writes a row as e2m1 with an e4m3 scale for each 16, and returns its own scale.
func quantiseFP4(codes, scales []byte, row []float32) float32 {
	factor := largest(row) / (mostE4M3 * mostE2M1)
	for i := range scales {
		block := row[16*i : 16*i+16]
		scales[i] = tensor.ToE4M3(over(largest(block)/mostE2M1, factor))
		scale := tensor.E4M3(scales[i]) * factor
		for j := 0; j < len(block); j += 2 {
			codes[8*i+j/2] = toE2M1(over(block[j], scale)) | toE2M1(over(block[j+1], scale))<<4
		}
	}
	return factor
}

func largest(values []float32) (most float32) {
	for _, v := range values {
		most = max(most, float32(math.Abs(float64(v))))
	}
	return most
}

// over is a quotient; 0 by 0 is 0.
func over(v, scale float32) float32 {
	if scale == 0 {
		return 0
	}
	return v / scale
}

// toE2M1 is the code of the nearest number: 0, 0.5, 1, 1.5, 2, 3, 4 or 6 with its sign. Of two that are as near it is the even code's.
func toE2M1(v float32) byte {
	magnitude, code := math.Abs(float64(v)), byte(0)
	for _, half := range []struct {
		way    float64 // between a number and the next
		passes bool    // itself goes to the next
	}{{0.25, false}, {0.75, true}, {1.25, false}, {1.75, true}, {2.5, false}, {3.5, true}, {5, false}} {
		if magnitude > half.way || magnitude == half.way && half.passes {
			code++
		}
	}
	if math.Signbit(float64(v)) {
		code |= 8
	}
	return code
}
