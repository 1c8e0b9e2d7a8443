package oracle

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Every pattern of a 16-bit type survives the way to float64 and back, and halfway points go to the even neighbour.
func TestSixteenBitTypesRoundTrip(t *testing.T) {
	for _, dtype := range []op.DType{op.BF16, op.F16} {
		value := func(h int) float64 {
			var v [1]float64
			Decode(v[:], dtype, []byte{byte(h), byte(h >> 8)})
			return v[0]
		}
		bits := func(x float64) int {
			var b [2]byte
			Encode(b[:], dtype, []float64{x})
			return int(binary.LittleEndian.Uint16(b[:]))
		}
		for h := range 1 << 16 {
			x := value(h)
			if math.IsNaN(x) {
				if !math.IsNaN(value(bits(x))) {
					t.Fatalf("%s %#04x: a NaN became %g", dtype, h, value(bits(x)))
				}
				continue
			}
			if got := bits(x); got != h {
				t.Fatalf("%s %#04x = %g: got %#04x back", dtype, h, x, got)
			}
			next := value(h + 1)
			if h&0x7fff == 0x7fff || math.IsInf(x, 0) || math.IsInf(next, 0) || math.IsNaN(next) {
				continue
			}
			middle, even := (x+next)/2, h+h&1
			if got := bits(middle); got != even {
				t.Fatalf("%s halfway after %#04x: got %#04x, want %#04x", dtype, h, got, even)
			}
			// Narrowing through float32 first would lose this difference and round the wrong way.
			if got := bits(middle + (next-x)*0x1p-40); got != h+1 {
				t.Fatalf("%s just past halfway after %#04x: got %#04x, want %#04x", dtype, h, got, h+1)
			}
			if got := bits(middle - (next-x)*0x1p-40); got != h {
				t.Fatalf("%s just before halfway after %#04x: got %#04x, want %#04x", dtype, h, got, h)
			}
		}
	}
}

func TestHalfKnownValues(t *testing.T) {
	cases := []struct {
		bits uint16
		want float64
	}{
		{0x3c00, 1}, {0xc000, -2}, {0x7bff, 65504}, {0x0001, 0x1p-24}, {0x0400, 0x1p-14}, {0x3555, 0.333251953125},
		{0x7c00, math.Inf(1)}, {0xfc00, math.Inf(-1)},
	}
	for _, c := range cases {
		if got := half(c.bits); got != c.want {
			t.Errorf("half(%#04x) = %g, want %g", c.bits, got, c.want)
		}
	}
	for _, x := range []float64{65520, 1e9} {
		if got := toHalf(x); got != 0x7c00 {
			t.Errorf("toHalf(%g) = %#04x, want infinity", x, got)
		}
	}
	if got := toHalf(65519.999); got != 0x7bff {
		t.Errorf("toHalf(65519.999) = %#04x, want the largest half", got)
	}
}

func TestSmallFloatsKnownValues(t *testing.T) {
	cases := []struct {
		bits byte
		want float64
	}{
		{0x00, 0}, {0x01, 0x1p-9}, {0x07, 7 * 0x1p-9}, {0x08, 0x1p-6}, {0x38, 1}, {0x39, 1.125}, {0xc0, -2}, {0x7e, 448}, {0xfe, -448},
	}
	for _, c := range cases {
		if got := e4m3(c.bits); got != c.want {
			t.Errorf("e4m3(%#02x) = %g, want %g", c.bits, got, c.want)
		}
	}
	if a, b := e4m3(0x7f), e4m3(0xff); !math.IsNaN(a) || !math.IsNaN(b) {
		t.Errorf("e4m3 of 0x7f and 0xff: got %g and %g, want NaN", a, b)
	}
	for code, want := range []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6} {
		if got, negative := fp4(byte(code)|0xa0), fp4(byte(code)|8); got != want || negative != -want {
			t.Errorf("fp4(%d) = %g and %g, want %g and %g", code, got, negative, want, -want)
		}
	}
}

func TestDequantise(t *testing.T) {
	codes := make([]byte, 16)
	for i := range codes {
		codes[i] = byte(i) | byte(15-i)<<4
	}
	signed := make([]byte, 32)
	for i := range signed {
		signed[i] = byte(int8(i - 16))
	}
	d, m := []byte{0x00, 0x38}, []byte{0x00, 0xc0} // 0.5 and -2
	cases := []struct {
		scheme op.Scheme
		raw    []byte
		want   func(i int) float64
	}{
		{op.SchemeQ8_0, append(d[:2:2], signed...), func(i int) float64 { return 0.5 * float64(i-16) }},
		{op.SchemeQ4_0, append(d[:2:2], codes...), func(i int) float64 { return 0.5 * (float64(min(i, 31-i)) - 8) }},
		{op.SchemeQ4_1, append(append(d[:2:2], m...), codes...), func(i int) float64 { return 0.5*float64(min(i, 31-i)) - 2 }},
	}
	for _, c := range cases {
		got := make([]float64, 32)
		Dequantise(got, c.scheme, c.raw)
		for i, v := range got {
			if v != c.want(i) {
				t.Errorf("%s: weight %d is %g, want %g", c.scheme, i, v, c.want(i))
			}
		}
	}
}

// Every code of e4m3 keeps its value, and what lies between two goes to the nearer, the even one in the middle.
func TestRoundE4M3(t *testing.T) {
	for code := range byte(0x7e) {
		low, high := e4m3(code), e4m3(code+1)
		even := low
		if code%2 == 1 {
			even = high
		}
		cases := []struct{ x, want float64 }{
			{low, low}, {-low, -low}, {(low + high) / 2, even}, {low + (high-low)*0.499, low}, {low + (high-low)*0.501, high},
		}
		for _, c := range cases {
			if got := roundE4M3(c.x); got != c.want {
				t.Errorf("%g after code %#02x: got %g, want %g", c.x, code, got, c.want)
			}
		}
	}
	if got := roundE4M3(-1000); got != -448 {
		t.Errorf("-1000: got %g, want -448", got)
	}
	if got := roundE4M3(math.NaN()); !math.IsNaN(got) {
		t.Errorf("NaN: got %g", got)
	}
}

// Each 128 columns have a scale of their own, which the largest of them fills.
func TestRoundE4M3Blocks(t *testing.T) {
	row := make([]float64, 300)
	row[0], row[1], row[127] = 896, 3, -1.0625
	row[128], row[255] = 7, 0.25
	row[256] = 0x1p-100
	halfway := make([]float64, 128) // in f32, but not to more bits
	halfway[0], halfway[1] = 7.5, 5.625
	whole := []float64{896, 3, 0.01, -500}
	RoundE4M3(row, 128)
	for i, want := range map[int]float64{0: 896, 1: 3, 127: -1, 128: 7, 255: 0.25, 256: 0, 2: 0} {
		if row[i] != want {
			t.Errorf("column %d: got %g, want %g", i, row[i], want)
		}
	}
	RoundE4M3(halfway, 128)
	if want := 320 * float64(float32(7.5)/448); halfway[1] != want {
		t.Errorf("halfway between 320 and 352 scales: got %g, want %g", halfway[1], want)
	}
	RoundE4M3(whole, 4)
	for i, want := range []float64{896, 3, 0x3p-8, -512} {
		if whole[i] != want {
			t.Errorf("one scale for all: column %d: got %g, want %g", i, whole[i], want)
		}
	}
}
