package optest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// few is the number of results below which their root mean square says little: all of them may happen to be small.
const few = 16

// scatter says how unevenly rounding errors may be spread over a row.
type scatter struct {
	few  int     // a mean over fewer errors than this is taken as if there were so many
	peak float64 // the largest error of one element, in units of tolerance times the row's root mean square
	own  float64 // the same in units of tolerance times the element's own size, where that is more
}

// compare judges one result by the oracle's. Two errors of each row are computed, and the larger counts, in units of the tolerance: the
// root mean square of the differences, relative to that of the oracle's row; and the largest difference of one element, relative to what
// scatter allows for a single one. Elements that the oracle did not write must hold what they held before.
//
// unrounded, where it is not nil, is the oracle's result before it was rounded to the type of the result. A kernel may round either way
// where both are near, so a difference within that rounding does not count; the rest of it does.
func compare(f field, before, want, got []byte, unrounded *oracle.Unrounded, errors scatter, exact bool) (worst float64, message string) {
	if exact {
		return compareBits(f, want, got)
	}
	size := int(f.dtype.Bytes())
	b, w, g := decoded(before, f.dtype), decoded(want, f.dtype), decoded(got, f.dtype)
	least := least(f, w)
	for i := range f.count {
		for from := i * f.pitch; from < i*f.pitch+f.inner; from += f.cols {
			left := func(at int) bool { return f.role == out && alone(before, want, at, size) }
			sum := 0.0
			for at := from; at < from+f.cols; at++ {
				if !left(at) {
					sum += w[at] * w[at]
				}
			}
			row := difference{at: from, size: max(math.Sqrt(sum/float64(f.cols)), least), scatter: errors}
			for at := from; at < from+f.cols; at++ {
				switch {
				case left(at):
					if !alone(before, got, at, size) {
						return math.Inf(1), fmt.Sprintf("%s was written, which must be left alone", f.at(at))
					}
				case math.IsNaN(g[at] - w[at]):
					return math.Inf(1), fmt.Sprintf("%s is %g, want %g", f.at(at), g[at], w[at])
				case unrounded == nil || math.IsNaN(unrounded.Values[at]):
					row.add(at, w[at], math.Abs(g[at]-w[at]))
				default:
					row.add(at, w[at], off(f.dtype, b[at], unrounded.Values[at], unrounded.Added[at], g[at]))
				}
			}
			if e := row.error(f.cols); e > worst {
				worst, message = e, fmt.Sprintf("%s is %.7g, want %.7g", f.at(row.at), g[row.at], w[row.at])
			}
		}
	}
	return worst, message
}

// decoded are numbers as a buffer holds them; nil of an empty one.
func decoded(data []byte, t op.DType) []float64 {
	if len(data) == 0 {
		return nil
	}
	values := make([]float64, len(data)/int(t.Bytes()))
	oracle.Decode(values, t, data)
	return values
}

// off is how far the oracle's number must be changed so that rounding it gives got. Where a product was rounded and then added to what the
// buffer held, the product may also have been rounded to a neighbour, which costs as far as it is from the numbers that round to that one.
func off(t op.DType, before, unrounded, added, got float64) float64 {
	from := func(x, rounded float64) float64 { return max(math.Abs(rounded-x)-halfStep(x, t), 0) }
	if math.IsNaN(added) {
		return from(unrounded, got)
	}
	least, step := math.Inf(1), 2*halfStep(added, t)
	for i := -1.0; i <= 1; i++ {
		product := (math.RoundToEven(added/step) + i) * step
		least = min(least, from(added, product)+from(product+before, got))
	}
	return least
}

// difference is the difference of two rows.
type difference struct {
	scatter
	size     float64 // root mean square of the oracle's row
	distance float64 // sum of the squares of differences
	highest  float64 // the largest difference of one element, as a share of what is allowed at a tolerance of one
	at       int     // the element that has it
}

func (d *difference) add(at int, want, distance float64) {
	d.distance += distance * distance
	if distance == 0 {
		return
	}
	if share := distance / max(d.peak*d.size, d.own*math.Abs(want)); share > d.highest {
		d.highest, d.at = share, at
	}
}

// halfStep is how far a number may be from its rounding to a type.
func halfStep(x float64, t op.DType) float64 {
	bits, least := 24, -126
	switch t {
	case op.BF16:
		bits = 8
	case op.F16:
		bits, least = 11, -14
	}
	_, exponent := math.Frexp(x) // |x| is at least 2^(exponent-1)
	return math.Ldexp(1, max(exponent-1, least)-bits)
}

// error is the error of the row, relative to its size: see compare.
func (d *difference) error(cols int) float64 {
	if d.highest == 0 {
		return 0
	}
	return max(math.Sqrt(d.distance/float64(max(cols, d.few)))/d.size, d.highest)
}

// least is a lower bound for the root mean square of a row, by which its error is divided. A row of few results may happen to be small,
// and its rounding errors are as large as those of other rows. So the bound is a share of the root mean square of all rows. Where there are
// few results in all, it is a half: inputs are made so that results have a deviation of about one.
func least(f field, values []float64) float64 {
	share := min(max(math.Sqrt(few/float64(max(f.cols, 1))), 0.25), 1)
	if f.count*f.inner < few {
		return max(share*rms(f, values), 0.5)
	}
	return share * rms(f, values)
}

// alone reports whether an element was left alone: it has the same bits before and after.
func alone(before, after []byte, at, size int) bool {
	return bytes.Equal(before[at*size:(at+1)*size], after[at*size:(at+1)*size])
}

// rms is the root mean square of all elements that are numbers.
func rms(f field, values []float64) float64 {
	sum, n := 0.0, 0
	for i := range f.count {
		for _, x := range values[i*f.pitch : i*f.pitch+f.inner] {
			if !math.IsNaN(x) {
				sum += x * x
				n++
			}
		}
	}
	return math.Sqrt(sum / float64(max(n, 1)))
}

// compareBits counts elements that are not the same, and names the first.
func compareBits(f field, want, got []byte) (worst float64, message string) {
	size := int(f.dtype.Bytes())
	for i := range f.count {
		for at := i * f.pitch; at < i*f.pitch+f.inner; at++ {
			if !alone(want, got, at, size) {
				if worst == 0 {
					message = fmt.Sprintf("%s is %s, want %s", f.at(at), f.text(got, at), f.text(want, at))
				}
				worst++
			}
		}
	}
	return worst, message
}

// at names an element by its row and column.
func (f field) at(i int) string {
	if f.cols == 0 || f.count <= 1 && f.inner == f.cols {
		return fmt.Sprintf("%s[%d]", f.name, i)
	}
	rows := f.inner / f.cols
	return fmt.Sprintf("%s[%d,%d]", f.name, i/f.pitch*rows+i%f.pitch/f.cols, i%f.pitch%f.cols)
}

// text shows an element: its value, and the bits that distinguish it.
func (f field) text(data []byte, i int) string {
	size := int(f.dtype.Bytes())
	element := data[i*size : (i+1)*size]
	switch f.dtype {
	case op.I32:
		return fmt.Sprint(get[int32](element)[0])
	case op.F32, op.BF16, op.F16:
		var v [1]float64
		oracle.Decode(v[:], f.dtype, element)
		return fmt.Sprintf("%.9g (bytes %s)", v[0], hex.EncodeToString(element))
	}
	return "bytes " + hex.EncodeToString(element)
}
