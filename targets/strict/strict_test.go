package strict

import (
	"reflect"
	"testing"
)

type file struct {
	Title  string            `toml:"title"`
	Kernel []kernel          `toml:"kernel"`
	Limits map[string]limits `toml:"limits"`
}

type kernel struct {
	Name   string           `toml:"name"`
	Grid   []string         `toml:"grid"`
	Const  map[string]int64 `toml:"const"`
	Launch []kernel         `toml:"launch"`
}

type limits struct {
	Bytes int64 `toml:"bytes"`
}

const sample = `title = """
[not a table]
x = 1"""  # [comment]
[[kernel]]
name = "a#[b"
grid = [ # two
  "Rows",
  'Cols',
]
const = { kTile = 8 }

[[kernel]]
name = "c"
[kernel.const]
kWide = 2
[[kernel.launch]]
name = "first"
[[kernel.launch]]
name = "second"
[limits."v3"]
bytes = 3
`

func TestLines(t *testing.T) {
	var f file
	lines, problems := Decode(sample, &f)
	if problems != nil {
		t.Fatalf("problems: %v", problems)
	}
	cases := []struct {
		path string
		want int
	}{
		{"title", 1}, {"kernel[0]", 4}, {"kernel[0].name", 5}, {"kernel[0].grid", 6}, {"kernel[0].const.kTile", 10},
		{"kernel[0].when", 4}, {"kernel[1]", 12}, {"kernel[1].const.kWide", 15}, {"kernel[1].launch[0].name", 17},
		{"kernel[1].launch[1].name", 19}, {"limits.v3.bytes", 21}, {"nothing", 0},
	}
	for _, c := range cases {
		if got := lines.At(c.path); got != c.want {
			t.Errorf("line of %s: got %d, want %d", c.path, got, c.want)
		}
	}
}

func TestProblems(t *testing.T) {
	top := []string{"title", "kernel", "limits"}
	inKernel := []string{"name", "grid", "const", "launch"}
	cases := []struct {
		text string
		want []Problem
	}{
		{"title = 'x'\ntitel = 'y'", []Problem{{2, `unknown key "titel"`, "titel", top}}},
		{"[[kernel]]\nnmae = ''\n[[kernel]]\nname = ''\n[[kernel]]\nnmae = ''", []Problem{
			{2, `unknown key "nmae"`, "nmae", inKernel}, {6, `unknown key "nmae"`, "nmae", inKernel}}},
		{"\n[[kernel]]\n[[kernel.launch]]\nx = 1", []Problem{{4, `unknown key "x"`, "x", inKernel}}},
		{"[other]\na = 1\nb = 1\n[[kernel]]\ngrid = 'Rows'\n[[kernel]]\ngrid = ['Rows', 3]", []Problem{{1, `unknown key "other"`, "other", top}, {Line: 5, Msg: "grid is a string, want a list of strings"}, {Line: 7, Msg: "grid[1] is an integer, want a string"}}},
		{"limits = { a = { byte = 1 } }", []Problem{{1, `unknown key "byte"`, "byte", []string{"bytes"}}}},
		{"\n[[other]]\n[[other]]", []Problem{{2, `unknown key "other"`, "other", top}}},
		{"a = 1\na = 2", []Problem{{Line: 2, Msg: "Key 'a' has already been defined."}}},
		{"title = 1", []Problem{{Line: 1, Msg: "title is an integer, want a string"}}},
	}
	for _, c := range cases {
		var f file
		if _, got := Decode(c.text, &f); !reflect.DeepEqual(got, c.want) {
			t.Errorf("Decode(%q)\n got %v\nwant %v", c.text, got, c.want)
		}
	}
}

func TestFilled(t *testing.T) {
	texts := map[string]string{"<name>": "norm", "<n>": "8", "<text>": "08x"}
	fill := func(key, text string) (string, *Problem) {
		if text == "<key>" {
			return key, nil
		}
		if text == "<bad>" {
			return "", &Problem{Msg: "bad"}
		}
		if filled, ok := texts[text]; ok {
			return filled, nil
		}
		return text, nil
	}
	type into struct {
		Name  string         `toml:"name"`
		Count int64          `toml:"count"`
		List  []string       `toml:"list"`
		Any   map[string]any `toml:"any"`
	}
	cases := []struct {
		text string
		want into
		bad  []Problem
	}{
		{"name = '<name>'\nlist = ['a', '<n>']\ncount = '<n>'", into{Name: "norm", List: []string{"a", "8"}, Count: 8}, nil},
		{"name = '8'\nany = { a = '<n>', b = '<text>', c = '8', d = 8 }", into{Name: "8", Any: map[string]any{"a": int64(8), "b": "08x", "c": "8", "d": int64(8)}}, nil},
		{"any = { a = '<key>' }\nlist = ['a', '<key>']\nname = '<key>'", into{Name: "name", List: []string{"a", "list[1]"}, Any: map[string]any{"a": "any.a"}}, nil},
		{"count = '8'", into{}, []Problem{{Line: 1, Msg: "count is a string, want an integer"}}},
		{"\ncount = '<text>'", into{}, []Problem{{Line: 2, Msg: "count is a string, want an integer"}}},
		{"name = 'x'\nlist = [\n'<bad>']\ncount = '<bad>'", into{Name: "x", List: []string{""}}, []Problem{{Line: 2, Msg: "bad"}, {Line: 4, Msg: "bad"}}},
	}
	for _, c := range cases {
		var got into
		if _, bad := DecodeFilled(c.text, &got, fill); !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(bad, c.bad) {
			t.Errorf("DecodeFilled(%q)\n got %+v %v\nwant %+v %v", c.text, got, bad, c.want, c.bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sample)
	f.Add("x = 1 # comment\n[\"\"]")
	f.Add("a.'b'.c = {d = [1,\n2]}")
	f.Add("x = '''a'''''\ny = \"\\\"\"")
	f.Fuzz(func(t *testing.T, text string) {
		var into file
		lines, _ := Decode(text, &into)
		for path := range lines.line {
			if at := lines.At(path); at < 1 && path != "" {
				t.Errorf("%q: key %q at line %d", text, path, at)
			}
		}
	})
}

// A pointer tells a key that is absent from one that is zero.
func TestPointers(t *testing.T) {
	var f struct {
		There  *float64 `toml:"there"`
		Absent *float64 `toml:"absent"`
	}
	if _, problems := Decode("there = 0.0", &f); problems != nil || f.There == nil || *f.There != 0 || f.Absent != nil {
		t.Errorf("got %v and %v, problems %v; want 0 and none", f.There, f.Absent, problems)
	}
	if _, problems := Decode("there = 'x'", &f); len(problems) != 1 || problems[0].String() != "there is a string, want a number with a fraction" {
		t.Errorf("a string for a number: got %v", problems)
	}
}
