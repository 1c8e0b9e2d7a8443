package manifest

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
)

func TestFill(t *testing.T) {
	given := Parameters{values: map[string]string{"scheme": "nvfp4", "units": "2", "up_units": "4", "none": ""}}
	cases := []struct{ text, want, problem string }{
		{"", "", ""},
		{"Rows*2", "Rows*2", ""},
		{"{scheme}", "nvfp4", ""},
		{"linear_{scheme}_{units}", "linear_nvfp4_2", ""},
		{"f<ATLAS_SCHEME_{SCHEME}, {units}, {UP_UNITS}>", "f<ATLAS_SCHEME_NVFP4, 2, 4>", ""},
		{"{none}{units}{units}", "22", ""},
		{"{unit}", "", "parameter {unit} is not set"},
		{"{Scheme}", "", "parameter {Scheme} is not set"},
		{"{ units }", "", "parameter { units } is not set"},
		{"{}", "", "parameter {} is not set"},
		{"{units", "", "do not match"},
		{"units}", "", "do not match"},
		{"}units{", "", "do not match"},
		{"{{units}}", "", "do not match"},
		{"{un{units}its}", "", "do not match"},
	}
	for _, c := range cases {
		got, problem := given.fill(c.text, map[string]bool{})
		if (problem != nil) != (c.problem != "") || problem != nil && !strings.Contains(problem.Msg, c.problem) || problem == nil && got != c.want {
			t.Errorf("fill(%q): got %q and %v, want %q and %q", c.text, got, problem, c.want, c.problem)
		}
	}
}

// Integers may be parameters wherever a manifest has integers, and positions tell who set them.
func TestReadWithParameters(t *testing.T) {
	const text = "include = ['{scheme}.toml']\n[set]\nscheme = '{scheme}'\nunits = '{units}'\n[[kernel]]\nop = 'Linear'\nname = '{scheme}'\n" +
		"body = 'x.h'\ninst = 'x<{SCHEME}>'\ngrid = ['Rows', '{units}*2']\nmin_blocks = '{units}'\ncluster = ['{units}', 1]\nconst = { kUnits = '{units}', kType = '{scheme}' }\n"
	given := Parameters{"b.toml:3", map[string]string{"scheme": "q8_0", "units": "2", "other": "1"}}
	var diags diag.List
	m := Read("a.toml", text, given, &diags)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	k := m.Kernels[0]
	if k.Name != "q8_0" || k.Inst != "x<Q8_0>" || k.Grid[1] != "2*2" || k.MinBlocks != 2 || k.Cluster[0] != 2 || k.Const["kUnits"] != int64(2) || k.Const["kType"] != "q8_0" || m.Include[0] != "q8_0.toml" {
		t.Errorf("got %+v", m)
	}
	if got, want := k.At("min_blocks"), (diag.Pos{File: "a.toml", Line: 11, Set: "b.toml:3"}); got != want {
		t.Errorf("position of min_blocks: got %+v, want %+v", got, want)
	}
	if !m.Uses("units") || !m.Uses("scheme") || m.Uses("other") {
		t.Errorf("used: got %v", m.used)
	}
	passed := m.Parameters()
	if want := (Parameters{"a.toml:2", map[string]string{"scheme": "q8_0", "units": "2"}}); passed.at != want.at || passed.values["units"] != "2" || passed.values["scheme"] != "q8_0" {
		t.Errorf("passed on: got %+v, want %+v", passed, want)
	}
	fits := []struct {
		values map[string]string
		want   bool
	}{
		{map[string]string{"scheme": "q8_0", "units": "2"}, true},
		{map[string]string{"scheme": "q8_0", "units": "2", "more": "3"}, true},
		{map[string]string{"scheme": "q8_0", "units": "3"}, false},
		{map[string]string{"scheme": "q8_0"}, false},
		{nil, false},
	}
	for _, c := range fits {
		if got := m.Fits(Parameters{values: c.values}); got != c.want {
			t.Errorf("fits %v: got %v, want %v", c.values, got, c.want)
		}
	}
}

func TestBadSets(t *testing.T) {
	cases := []struct{ text, want string }{
		{"units = 2\nscheme = 'x'", ""},
		{"units = 2.5", "a.toml:2: parameter units is neither an integer nor a string (write an integer or a string)"},
		{"units = [1]", "a.toml:2: parameter units is neither an integer nor a string (write an integer or a string)"},
		{"a = 1\nunits = true", "a.toml:3: parameter units is neither an integer nor a string (write an integer or a string)"},
		{"Units = 2", "a.toml:2: parameter name \"Units\" is not a word (write small letters and digits with single underscores)"},
		{"units = '{x}'", "a.toml:2: parameter {x} is not set by the manifest that includes this one"},
		{"units = '" + strings.Repeat("x", 257) + "'", "a.toml:2: parameter units has 257 bytes, more than 256"},
	}
	for _, c := range cases {
		var diags diag.List
		Read("a.toml", "[set]\n"+c.text+"\n", Parameters{}, &diags)
		if got := diags.Error(); got != c.want {
			t.Errorf("[set] %s\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}
