package tensor

import (
	"errors"
	"math"
	"testing"
)

func TestBytes(t *testing.T) {
	cases := []struct {
		kind  Type
		shape []int64
		want  int64
		err   error
	}{
		{BF16, nil, 2, nil},
		{F32, []int64{3, 5}, 60, nil},
		{F32, []int64{0, 5}, 0, nil},
		{F4, []int64{3, 4}, 6, nil},
		{F4, []int64{3, 3}, 0, ErrPartial},
		{F6_E2M3, []int64{2, 2}, 3, nil},
		{Q4_0, []int64{2, 64}, 72, nil},
		{Q4_0, []int64{64, 2}, 0, ErrPartial},
		{Q4_0, nil, 0, ErrPartial},
		{U8, []int64{1 << 32, 1 << 32}, 0, ErrOverflow},
		{U8, []int64{1 << 62, 2}, 0, ErrOverflow},
		{F64, []int64{1 << 60}, 0, ErrOverflow},
		{F64, []int64{1 << 32, 1 << 32, 0}, 0, ErrOverflow},
	}
	for _, c := range cases {
		got, err := c.kind.Bytes(c.shape)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v.Bytes(%v) = %d, %v; want %d, %v", c.kind, c.shape, got, err, c.want, c.err)
		}
	}
	if _, err := U8.Bytes([]int64{-1}); err == nil {
		t.Error("U8.Bytes([-1]) gave no error")
	}
}

func TestParseFindsEveryName(t *testing.T) {
	for kind := Type(1); kind < typeCount; kind++ {
		if got, ok := Parse(kind.String()); !ok || got != kind {
			t.Errorf("Parse(%q) = %v, %v; want %d", kind.String(), got, ok, kind)
		}
	}
	if got, ok := Parse("no type"); ok {
		t.Errorf("Parse(no type) = %v; want nothing", got)
	}
}

func TestMatrixView(t *testing.T) {
	cases := []struct {
		shape      []int64
		rows, cols int64
		text       string
	}{
		{nil, 1, 1, "[]"},
		{[]int64{7}, 1, 7, "[7]"},
		{[]int64{2, 3, 5}, 6, 5, "[2, 3, 5]"},
	}
	for _, c := range cases {
		i := Info{Shape: c.shape}
		if i.Rows() != c.rows || i.Cols() != c.cols || FormatShape(c.shape) != c.text {
			t.Errorf("%v: rows %d cols %d text %s; want %d %d %s", c.shape, i.Rows(), i.Cols(), FormatShape(c.shape), c.rows, c.cols, c.text)
		}
	}
}

func TestHalvesRoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		bits := uint16(h)
		f, b := Float16(bits), BFloat16(bits)
		if f == f && ToFloat16(f) != bits {
			t.Fatalf("half %#04x widens to %v, which rounds to %#04x", bits, f, ToFloat16(f))
		}
		if b == b && ToBFloat16(b) != bits {
			t.Fatalf("bfloat16 %#04x widens to %v, which rounds to %#04x", bits, b, ToBFloat16(b))
		}
	}
}

func TestHalvesRoundToNearestEven(t *testing.T) {
	nan := float32(math.NaN())
	cases := []struct {
		in     float32
		half   uint16
		bfloat uint16
	}{
		{1, 0x3c00, 0x3f80},
		{1 + 1.0/2048, 0x3c00, 0x3f80},     // half way for f16: to even
		{1 + 3.0/2048, 0x3c02, 0x3f80},     // half way for f16: to even, up
		{1 + 1.0/256, 0x3c04, 0x3f80},      // half way for bf16
		{1 + 3.0/256, 0x3c0c, 0x3f82},      // half way for bf16, up
		{65519.996, 0x7bff, 0x4780},        // the last that stays finite
		{65520, 0x7c00, 0x4780},            // halfway past the largest half
		{1.0 / (1 << 25), 0x0000, 0x3300},  // half of the smallest subnormal: to even
		{3.0 / (1 << 25), 0x0002, 0x33c0},  // one and a half of it
		{-1.0 / (1 << 24), 0x8001, 0xb380}, // sign kept
		{nan, 0x7e00, 0x7fc0},
	}
	for _, c := range cases {
		if got := ToFloat16(c.in); got != c.half {
			t.Errorf("ToFloat16(%v) = %#04x, want %#04x", c.in, got, c.half)
		}
		if got := ToBFloat16(c.in); got != c.bfloat {
			t.Errorf("ToBFloat16(%v) = %#04x, want %#04x", c.in, got, c.bfloat)
		}
	}
}
