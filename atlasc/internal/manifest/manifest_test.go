package manifest

import (
	"fmt"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
)

const sample = `include = ["../lib/base.toml"]
scheme  = "q8_0"
[[layout]]
name = "x"
bytes = "Rows"
[[kernel]]
op = "Linear"
name = "linear"
body = "lib/linear.h"
const = { kTile = 8, kType = "float" }
needs = ["vnni"]
scratch = "Rows*2"
[[kernel.launch]]
inst = "first"
grid = ["Rows"]
[[kernel.launch]]
inst = "second"
grid = ["Rows", "1", "Cols"]
[[kernel]]
op = "Norm"
name = "norm"
body = "lib/norm.h"
inst = "norm"
grid = ["Rows"]
replace = true
order = "lanes"
`

func TestRead(t *testing.T) {
	var diags diag.List
	m := Read("kernels/a.toml", sample, Parameters{}, &diags)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	linear, norm := &m.Kernels[0], &m.Kernels[1]
	if got := linear.Launches(); len(got) != 2 || got[1].Inst != "second" || len(got[1].Grid) != 3 {
		t.Errorf("launches of linear: got %+v", got)
	}
	if got := norm.Launches(); len(got) != 1 || got[0].Inst != "norm" {
		t.Errorf("launches of norm: got %+v", got)
	}
	cases := []struct {
		got  diag.Pos
		want int
	}{
		{m.At("scheme"), 2}, {m.Layouts[0].At("bytes"), 5}, {linear.At(""), 6}, {linear.At("scratch"), 12},
		{linear.At("when"), 6}, {linear.Launches()[1].At("grid"), 18}, {norm.Launches()[0].At("inst"), 23},
	}
	for i, c := range cases {
		if want := (diag.Pos{File: "kernels/a.toml", Line: c.want}); c.got != want {
			t.Errorf("position %d: got %v, want %v", i, c.got, want)
		}
	}
}

func TestEntriesServeFurtherOperations(t *testing.T) {
	const text = "[[kernel]]\nop = 'Linear'\nname = 'x'\nalso = { %s }\nbody = 'x.h'\ninst = 'x'\ngrid = ['1']\n[[kernel]]\nop = 'Norm'\nname = 'y'\nbody = 'y.h'\ninst = 'y'\ngrid = ['1']\n"
	cases := []struct {
		also     string
		kernels  string
		findings int
	}{
		{"", "[Linear x Norm y]", 0},
		{"add = 'LinearAdd'", "[Linear x LinearAdd x_add Norm y]", 0},
		{"b = 'B', a = 'A'", "[Linear x A x_a B x_b Norm y]", 0},
		{"add = 1", "[Linear x  x_add Norm y]", 1},
		{"Add = 'LinearAdd'", "[Linear x LinearAdd x_Add Norm y]", 1},
	}
	for _, c := range cases {
		var diags diag.List
		var got []string
		for _, k := range Read("a.toml", fmt.Sprintf(text, c.also), Parameters{}, &diags).Kernels {
			if k.At("inst").Line == 0 || k.Also != nil {
				t.Errorf("also = { %s }: %s stands at %v and serves %v besides", c.also, k.Name, k.At("inst"), k.Also)
			}
			got = append(got, k.Op, k.Name)
		}
		if fmt.Sprint(got) != c.kernels || len(diags) != c.findings {
			t.Errorf("also = { %s }: got %v and %v, want %s and %d findings", c.also, got, diags, c.kernels, c.findings)
		}
	}
}

func TestRoundingsAreKnown(t *testing.T) {
	cases := []struct {
		rounds, when string
		findings     int
	}{{"", "Rows > 1", 0}, {"e4m3x128", "Rows > 1 && W.Rounding == RoundingE4M3x128", 0}, {"e4m3x128", "Rows > 1", 1}, {"e4m3", "W.Rounding == RoundingE4M3x128", 1}}
	for _, c := range cases {
		var diags diag.List
		Read("a.toml", "[[kernel]]\nop = \"Linear\"\nname = \"x\"\nbody = \"x.h\"\ninst = \"x\"\ngrid = [\"1\"]\nrounds = \""+c.rounds+"\"\nwhen = \""+c.when+"\"\n", Parameters{}, &diags)
		if len(diags) != c.findings {
			t.Errorf("rounds = %q, when = %q: got %v, want %d findings", c.rounds, c.when, diags, c.findings)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(sample)
	f.Add("[[kernel]]\ngrid = 'x'\n[[kernel.launch]]")
	f.Add("[[0]]")
	f.Add("include = ['{name}.toml']\n[set]\nname = '{NAME}'\nx = 1.5\n[[kernel]]\nmin_blocks = '{blocks}'\nconst = {kTile = '{blocks}'}\ngrid = ['{{name}']")
	f.Add("scheme = '{x}{X}'\n[set]\nx = '{x}{name}'\ny = [1]\n[[kernel]]\nneeds = ['', '{y}']")
	f.Add("kernel = [{op = 'x', launch = [{}]}]\nlayout = [1]")
	f.Fuzz(func(t *testing.T, text string) {
		var diags diag.List
		given := Parameters{"b.toml:1", map[string]string{"name": "x", "blocks": "2"}}
		m := Read("a.toml", text, given, &diags)
		if !m.Fits(given) {
			t.Errorf("%q: does not fit what it was read with", text)
		}
		for _, k := range m.Kernels {
			k.At("when")
			for _, l := range k.Launches() {
				l.At("grid")
			}
		}
		for _, d := range diags {
			if d.Pos.Line < 1 {
				t.Errorf("%q: %v has no line", text, d)
			}
		}
	})
}
