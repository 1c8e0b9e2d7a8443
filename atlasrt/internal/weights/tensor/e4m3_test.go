package tensor

import (
	"math"
	"testing"
)

// Every code is the nearest one of its own number, and of what lies up to halfway to its neighbours, the even one there.
func TestE4M3RoundsToNearestEven(t *testing.T) {
	for code := range byte(0x7f) {
		v := E4M3(code)
		if got := ToE4M3(v); got != code {
			t.Errorf("%v of code %#x becomes code %#x", v, code, got)
		}
		if got := ToE4M3(-v); got != code|0x80 {
			t.Errorf("%v of code %#x becomes code %#x", -v, code|0x80, got)
		}
		if code == 0x7e {
			continue
		}
		half, even := (v+E4M3(code+1))/2, code+code&1
		for _, c := range []struct {
			value float32
			want  byte
		}{{half, even}, {math.Nextafter32(half, 0), code}, {math.Nextafter32(half, 1000), code + 1}} {
			if got := ToE4M3(c.value); got != c.want {
				t.Errorf("%v becomes code %#x, want %#x", c.value, got, c.want)
			}
		}
	}
	for value, want := range map[float32]byte{449: 0x7e, 1e30: 0x7e, float32(math.Inf(-1)): 0xfe, 1: 0x38, 0.875: 0x36, 0x1p-9: 1, 0x1p-6: 8} {
		if got := ToE4M3(value); got != want {
			t.Errorf("%v becomes code %#x, want %#x", value, got, want)
		}
	}
	if got := ToE4M3(float32(math.NaN())); got&0x7f != 0x7f || !math.IsNaN(float64(E4M3(got))) {
		t.Errorf("NaN becomes code %#x", got)
	}
}
