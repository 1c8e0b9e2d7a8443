package manifest

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
)

func TestFill(t *testing.T) {
	given := Parameters{values: map[string]string{"scheme": "nvfp4", "units": "2", "up_units": "4", "none": ""}}
	own := map[string]any{"row": "Rows*{x}", "twice": int64(8), "scheme": "q8_0"}
	cases := []struct {
		text          string
		inSet         bool
		want, problem string
	}{
		{"", false, "", ""},
		{"Rows*2", false, "Rows*2", ""},
		{"{units}", false, "2", ""},
		{"linear_{scheme}_{units}", true, "linear_nvfp4_2", ""},
		{"linear_{scheme}_{units}", false, "linear_q8_0_2", ""},
		{"f<ATLAS_SCHEME_{SCHEME}, {units}, {UP_UNITS}>", true, "f<ATLAS_SCHEME_NVFP4, 2, 4>", ""},
		{"{TWICE} + {row}", false, "8 + Rows*{x}", ""},
		{"{none}{units}{units}", false, "22", ""},
		{"{unit}", false, "", "parameter {unit} is not set here or by the manifest that includes this one"},
		{"{unit}", true, "", "parameter {unit} is not set by the manifest that includes this one, and [set] knows no other"},
		{"{row}", true, "", "parameter {row} is not set by the manifest that includes this one, and [set] knows no other"},
		{"{Scheme}", false, "", "parameter {Scheme} is not set"},
		{"{ units }", false, "", "parameter { units } is not set"},
		{"{}", false, "", "parameter {} is not set"},
		{"{units", false, "", "do not match"},
		{"units}", false, "", "do not match"},
		{"}units{", false, "", "do not match"},
		{"{{units}}", true, "", "do not match"},
		{"{un{units}its}", false, "", "do not match"},
	}
	for _, c := range cases {
		m := &Manifest{Set: own, given: given, used: map[string]bool{}, own: map[string]bool{}}
		got, problem := m.fill(c.text, c.inSet)
		if (problem != nil) != (c.problem != "") || problem != nil && !strings.Contains(problem.Msg, c.problem) || problem == nil && got != c.want {
			t.Errorf("fill(%q, %v): got %q and %v, want %q and %q", c.text, c.inSet, got, problem, c.want, c.problem)
		}
	}
}

// A manifest's own values stand in its texts, wherever the table is; they hide what is given by the same name, but for [set]
// itself, which passes it on.
func TestOwnParameters(t *testing.T) {
	const text = "include = ['{file}.toml']\nscheme = '{scheme}'\n[[kernel]]\nop = 'Linear'\nname = 'linear_{of}'\nbody = 'x.h'\ninst = 'x'\n" +
		"scratch = '{row}*{bytes}'\ngrid = ['{row}']\nneeds = ['{needs}', '{tiles}']\nconst = { kTile = '{bytes}' }\n" +
		"[set]\nfile = 'dot'\nof = '{of}_few'\nrow = '(Rows+{units})/8'\nbytes = 40\nneeds = ''\ntiles = 'amx'\nidle = 1\n"
	given := Parameters{"b.toml:3", map[string]string{"scheme": "q8_0", "of": "q8_0", "units": "7", "bytes": "44"}}
	var diags diag.List
	m := Read("a.toml", text, given, &diags)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	k := m.Kernels[0]
	if m.Include[0] != "dot.toml" || m.Scheme != "q8_0" || k.Name != "linear_q8_0_few" || k.Scratch != "(Rows+7)/8*40" || k.Grid[0] != "(Rows+7)/8" ||
		k.Const["kTile"] != int64(40) || len(k.Needs) != 1 || k.Needs[0] != "amx" {
		t.Errorf("got include %q, scheme %s and %+v", m.Include, m.Scheme, k)
	}
	if !m.UsesOwn("row") || m.UsesOwn("idle") || m.UsesOwn("units") || m.Uses("bytes") || !m.Uses("of") || !m.Uses("units") {
		t.Errorf("used: got own %v and given %v", m.own, m.used)
	}
	if passed := m.Parameters().values; passed["of"] != "q8_0_few" || passed["row"] != "(Rows+7)/8" || passed["scheme"] != "" {
		t.Errorf("passed on: got %v", passed)
	}
	given.values["bytes"] = "45"
	if !m.Fits(given) {
		t.Error("a value that is hidden makes a difference")
	}
	only := Read("a.toml", "scheme = '{x}'\n[set]\nx = 'q8_0'\n", given, &diags)
	if got, want := only.At("scheme"), (diag.Pos{File: "a.toml", Line: 1}); got != want || diags != nil {
		t.Errorf("position in a file with its own parameters alone: got %+v and %v, want %+v", got, diags, want)
	}
}

// Integers may be parameters wherever a manifest has integers, and positions tell who set them.
func TestReadWithParameters(t *testing.T) {
	const text = "include = ['{scheme}.toml']\n[set]\nscheme = '{scheme}'\nunits = '{units}'\n[[kernel]]\nop = 'Linear'\nname = '{scheme}'\n" +
		"body = 'x.h'\ninst = 'x{SCHEME}'\ngrid = ['Rows', '{units}*2']\nmin_blocks = '{units}'\ncluster = ['{units}', '1']\nconst = { kUnits = '{units}', kType = '{scheme}' }\n"
	given := Parameters{"b.toml:3", map[string]string{"scheme": "q8_0", "units": "2", "other": "1"}}
	var diags diag.List
	m := Read("a.toml", text, given, &diags)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	k := m.Kernels[0]
	if k.Name != "q8_0" || k.Inst != "xQ8_0" || k.Grid[1] != "2*2" || k.MinBlocks != 2 || k.Cluster[0] != "2" || k.Const["kUnits"] != int64(2) || k.Const["kType"] != "q8_0" || m.Include[0] != "q8_0.toml" {
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
		{"units = '{x}'", "a.toml:2: parameter {x} is not set by the manifest that includes this one, and [set] knows no other"},
		{"units = '{units}'", "a.toml:2: parameter {units} is not set by the manifest that includes this one, and [set] knows no other"},
		{"units = 2\nx = '{units}'", "a.toml:3: parameter {units} is not set by the manifest that includes this one, and [set] knows no other"},
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
