package weights

import (
	"slices"
	"testing"
)

func TestLeftOut(t *testing.T) {
	c := openTensors(t, floats("a", nil, 1), floats("mtp.c", nil, 1), floats("mtp.d", nil, 1), floats("mtpx", nil, 1))
	got := LeftOut(c, []Aside{{"mtp.", "a head"}, {"visual.", "a tower"}})
	if want := []string{"2 tensors mtp.… are left out: a head"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
