package tune

import (
	"reflect"
	"testing"
	"time"
)

// tried is a shape that the set's own kernel "own" and others served in so many microseconds.
func tried(rows int64, own float64, noise float64, others map[string]float64) Tried {
	t := Tried{Shape: Shape{Op: "Linear", Args: map[string]int64{"Rows": rows, "W.Rows": 64, "W.Cols": 32, "W.Count": 1}}, Bytes: 1000, Ceiling: 1e9}
	us := func(x float64) time.Duration { return time.Duration(x * 1e3) }
	t.Results = []Measured{{Kernel: "own", Same: true, Time: us(own), Noise: noise}}
	for _, name := range []string{"a", "b"} {
		if x, ok := others[name]; ok {
			t.Results = append(t.Results, Measured{Kernel: name, Same: true, Time: us(x), Noise: 1})
		}
	}
	return t
}

func TestChoose(t *testing.T) {
	cases := []struct {
		name string
		Tried
		want string
	}{
		{"faster", tried(1, 10, 1, map[string]float64{"a": 8, "b": 7}), "b"},
		{"within the least noise", tried(1, 10, 1, map[string]float64{"a": 9.8}), "own"},
		{"within this machine's noise", tried(1, 10, 1.5, map[string]float64{"a": 7}), "own"},
		{"beyond it", tried(1, 10, 1.5, map[string]float64{"a": 6}), "a"},
		{"slower", tried(1, 10, 1, map[string]float64{"a": 11}), "own"},
	}
	for _, c := range cases {
		got, ok := Choose(c.Tried)
		if !ok || got.Kernel != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, got.Kernel, ok, c.want)
		}
	}
	other := tried(1, 10, 1, map[string]float64{"a": 1})
	other.Results[1].Same = false
	if got, _ := Choose(other); got.Kernel != "own" {
		t.Errorf("other bits: got %q, want own", got.Kernel)
	}
	if _, ok := Choose(Tried{}); ok {
		t.Error("nothing measured: got a choice")
	}
}

// What won by chance does not win twice.
func TestConfirm(t *testing.T) {
	r := &Report{Tried: []Tried{tried(1, 1000, 1, map[string]float64{"a": 8}), tried(2, 10, 1, map[string]float64{"a": 5})}}
	r.Confirm(&Report{Tried: []Tried{tried(2, 11, 1, map[string]float64{"a": 6}), tried(1, 9, 1, map[string]float64{"a": 8}), tried(3, 1, 1, nil)}})
	for i, want := range []string{"own", "a"} {
		if got, _ := Choose(r.Tried[i]); got.Kernel != want {
			t.Errorf("shape %d: got %q, want %q (%+v)", i, got.Kernel, want, r.Tried[i].Results)
		}
	}
}

func TestEntries(t *testing.T) {
	var r Record
	for rows, others := range map[int64]map[string]float64{1: {"a": 1}, 2: {"b": 1}, 3: {"a": 1}, 4: {"a": 99}} {
		c, _ := Choose(tried(rows, 10, 1, others))
		r.Shapes = append(r.Shapes, c)
	}
	experts, _ := Choose(tried(1, 10, 1, map[string]float64{"a": 1}))
	experts.Op, experts.Args = "ExpertUp", map[string]int64{"Rows": 1, "W.Rows": 64, "W.Cols": 32, "W.Count": 8, "TopK": 2}
	r.Shapes = append(r.Shapes, experts)
	want := []Entry{
		{"ExpertUp", "a", "tuned_a_8x64x32x2", "W.Rows == 64 && W.Cols == 32 && W.Count == 8 && TopK == 2 && Rows == 1", "instead of own"},
		{"Linear", "a", "tuned_a_64x32", "W.Rows == 64 && W.Cols == 32 && (Rows == 1 || Rows == 3)", "instead of own"},
		{"Linear", "b", "tuned_b_64x32", "W.Rows == 64 && W.Cols == 32 && Rows == 2", "instead of own"},
	}
	if got := r.Entries(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Entries(), want) {
		t.Errorf("read again: got %+v", again.Entries())
	}
	for _, text := range []string{"{", `{"Shapes":[{"Op":"Linear"}]}`} {
		if _, err := Read([]byte(text)); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}
