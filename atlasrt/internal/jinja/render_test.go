package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/internal/cputime"
)

// sample are the variables of the table cases.
const sample = `{"s": "Hello, World", "u": "Straße 漢字 😀", "n": 7, "f": 2.5, "big": 12345678901234567890, "none": null, "t": true,
"l": [3, 1, 2], "d": {"b": 1, "a": {"x": [1, 2]}, "items": "shadow", "C": 2.0}, "w": "  \t pad \n", "q": "it's \"q\" \\ \n",
"html": "<a href='x'>&amp;</a>", "x": "outer",
"msgs": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "n": 2}, {"role": "user", "content": "yo", "n": 1}]}`

func decode(t testing.TB, text string) *Dict {
	t.Helper()
	tree, err := jsontree.Decode([]byte(text), jsontree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := FromJSON(tree)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Dict)
}

// TestPython compares with what Python's jinja2 3.1.6 makes of many small templates (testdata/python.json).
func TestPython(t *testing.T) {
	data, err := os.ReadFile("testdata/python.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Template string
		OK       *string
		Err      string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	variables := decode(t, sample)
	raises, words := 0, 0
	for _, c := range cases {
		template, err := Parse(c.Template)
		got := ""
		if err == nil {
			got, err = template.Render(variables, Options{Now: goldenNow})
		}
		switch {
		case c.OK != nil && err != nil:
			t.Errorf("%q: got error %v, want %q", c.Template, err, *c.OK)
		case c.OK != nil && got != *c.OK:
			t.Errorf("%q\n got %q\nwant %q", c.Template, got, *c.OK)
		case c.OK == nil && err == nil:
			t.Errorf("%q: got %q, want error %s", c.Template, got, c.Err)
		case c.OK == nil:
			raises++
			if err.(*Error).Message == c.Err {
				words++
			}
		}
	}
	t.Logf("%d cases agree, %d of them errors, %d of those with Python's words", len(cases), raises, words)
}

// Templates that never end, or that make too much, end with an error (T086).
func TestLimits(t *testing.T) {
	cases := []struct{ name, template string }{
		{"nested loops", "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}"},
		{"doubled text", "{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}"},
		{"repeated text", "{{ 'x' * 1000000000 }}"},
		{"repeated list", "{{ ([1] * 1000000000)|length }}"},
		{"doubled list", "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}"},
		{"shared list", "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}"},
		{"shared list compared", "{% set a = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set a.l = [a.l, a.l] %}{% set a.m = [a.m, a.m] %}{% endfor %}{{ a.l == a.m }}"},
		{"shared list as JSON", "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}"},
		{"deep list", "{% set ns = namespace(l=[1]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}"},
		{"deep tuple as key", "{% set ns = namespace(l=(1,)) %}{% for i in range(5000) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ {ns.l: 1} }}"},
		{"endless macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
		{"endless macro in a tall expression", "{% macro m() %}{{ " + strings.Repeat("(1 + ", 150) + "m()|length" + strings.Repeat(")", 150) + " }}{% endmacro %}{{ m() }}"},
		{"generator of generators", "{% set ns = namespace(g=[1]) %}{% for i in range(100000) %}{% set ns.g = ns.g|map('string') %}{% endfor %}{{ ns.g|list }}"},
		{"wide format", "{{ '%999999999d' % 1 }}"},
		{"wide brace format", "{{ '{:999999999}'.format(1) }}"},
		{"precise format", "{{ '%.999999999f' % 1 }}"},
		{"wide justification", "{{ 'x'.ljust(999999999) }}"},
		{"wide zfill", "{{ 'x'.zfill(999999999) }}"},
		{"wide indent", "{{ 'a\nb'|indent(999999999) }}"},
		{"wide JSON", "{{ [1]|tojson(indent=999999999) }}"},
		{"huge power", "{{ 10 ** 1000000000 }}"},
		{"huge product", "{% set ns = namespace(n=10) %}{% for i in range(60) %}{% set ns.n = ns.n * ns.n %}{% endfor %}"},
		{"deep generator", "{% set ns = namespace(g=[1]) %}{% for i in range(100000) %}{% set ns.g = ns.g|map('string') %}{% endfor %}{{ ns.g|first }}"},
	}
	for _, c := range cases {
		template, err := Parse(c.template)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		spent := cputime.Of(func() {
			if got, err := template.Render(NewDict(), Options{}); err == nil {
				t.Errorf("%s: got %d bytes, want an error", c.name, len(got))
			}
		})
		if spent > 5*time.Second {
			t.Errorf("%s: took %v", c.name, spent)
		}
	}
}

// TestLongText repeats one operation on a long text: what an operation reads must count (T086).
func TestLongText(t *testing.T) {
	cases := []string{
		"s|length", "s == r", "s[5]", "s[1:]", "s[::-1]", "s.isupper()", "s is upper", "d[s]", "d.get(s)", "s in d", "s|upper", "s|title", "s.split('y')",
		"'y' in s", "s.find('y')", "s.count('y')", "s|trim", "s.strip('y')", "s|replace('y', 'z')", "s|int", "s|float", "s|first", "s|last",
		"s + r", "s ~ r", "s|tojson", "s|escape", "s|list", "s.startswith('y', 3)", "s < r", "s.partition('y')", "[s]|unique|list",
		"s.splitlines()", "s.rjust(5)", "'%s' % s", "'{}'.format(s)", "s|indent", "[s]|sort", "s|format", "s|string", "s|e",
	}
	for _, c := range cases {
		template, err := Parse("{% for i in range(100000) %}{% set x = " + c + " %}{% endfor %}")
		if err != nil {
			t.Fatal(err)
		}
		variables, d := NewDict(), NewDict()
		for i := range 20 {
			d.Set(Data(strings.Repeat("k", i)), None{})
		}
		variables.Set(Data("s"), Data(strings.Repeat("x", 1<<16)))
		variables.Set(Data("r"), Data(strings.Repeat("x", 1<<16)))
		variables.Set(Data("d"), d)
		if spent := cputime.Of(func() { _, err = template.Render(variables, Options{}) }); spent > 2*time.Second {
			t.Errorf("%s: took %v (error %v)", c, spent, err)
		}
	}
}

// A source that is nested without end is refused before it runs (T086).
func TestDeepSource(t *testing.T) {
	cases := []string{
		"{{ " + strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000) + " }}",
		"{{ " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + " }}",
		"{{ " + strings.Repeat("-", 20_000) + "1 }}",
		"{{ " + strings.Repeat("not ", 20_000) + "1 }}",
		"{{ 1" + strings.Repeat("+1", 20_000) + " }}",
		"{{ 1" + strings.Repeat("|abs", 20_000) + " }}",
		"{{ x" + strings.Repeat(".x", 20_000) + " }}",
		"{{ 1" + strings.Repeat(" if 1 else 1", 20_000) + " }}",
		strings.Repeat("{% if 1 %}", 20_000) + strings.Repeat("{% endif %}", 20_000),
		strings.Repeat("{% for x in y %}", 20_000),
	}
	for _, source := range cases {
		_, err := Parse(source)
		var e *Error
		if !errors.As(err, &e) || e.Kind != Limit {
			t.Errorf("%s…: got %v, want a limit", source[:30], err)
		}
	}
}

func TestErrorLines(t *testing.T) {
	cases := []struct {
		template string
		line     int
		kind     Kind
	}{
		{"a\n{{ x.y.z }}", 2, Runtime},
		{"a\n\n{% if (1 %}", 3, Syntax},
		{"{% if true %}\n\n{{ raise_exception('no') }}{% endif %}", 3, Raised},
		{"{% macro m() %}\n{{ 1 + 'a' }}\n{% endmacro %}\n\n{{ m() }}", 2, Runtime},
		{"\n{% for x in none %}{% endfor %}", 2, Runtime},
		{"\n{{ range(99999)|list * 99 }}", 2, Limit},
	}
	for _, c := range cases {
		template, err := Parse(c.template)
		if err == nil {
			_, err = template.Render(NewDict(), Options{})
		}
		var e *Error
		if !errors.As(err, &e) || e.Line != c.line || e.Kind != c.kind {
			t.Errorf("%q: got %#v, want line %d kind %d", c.template, err, c.line, c.kind)
		}
	}
}

// What Jinja has and chat templates need not is refused by name: it never renders as something else.
func TestUnavailable(t *testing.T) {
	cases := []struct {
		template string
		kind     Kind
		want     string
	}{
		{"{{ x|slice(2) }}", Syntax, "No filter named 'slice'."},
		{"{% filter urlize %}a{% endfilter %}", Syntax, "No filter named 'urlize'."},
		{"{{ x|map('wordcount')|list }}", Runtime, "No filter named 'wordcount'."},
		{"{{ x is filter }}", Syntax, "No test named 'filter'."},
		{"{% include 'a' %}", Syntax, "tag 'include' is not available"},
		{"{% call m() %}{% endcall %}", Syntax, "tag 'call' is not available"},
		{"{% for a in x recursive %}{% endfor %}", Syntax, "recursive loops are not available"},
		{"{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", Runtime, "'caller' is undefined"},
		{"{% macro m() %}{% endmacro %}{{ m.arguments }}", Runtime, "attribute 'arguments' of Macro is not available"},
		{"{{ x[0].real }}", Runtime, "attribute 'real' of int is not available"},
		{"{{ 'a'.center(5) }}", Runtime, "attribute 'center' of str is not available"},
		{"{% for a in x %}{{ loop.changed(a) }}{% endfor %}", Runtime, "no attribute 'changed'"},
		{"{{ cycler('a') }}", Runtime, "'cycler' is undefined"},
		{"{{ '%x' % 255 }}", Runtime, "unsupported format character 'x'"},
		{"{{ '%*d' % (5, 3) }}", Runtime, "unsupported format character '*'"},
		{"{{ '%.3d' % 5 }}", Runtime, "a precision of %d is not supported"},
		{"{{ '{0.a}'.format(x) }}", Runtime, "the field '0.a' is not supported"},
		{"{{ '{:{}}'.format(1, 5) }}", Runtime, "the format specifier '{' is not supported"},
		{"{{ '{:,}'.format(1000) }}", Runtime, "the format specifier ',' is not supported"},
		{"{{ '{:.3}'.format(1.5) }}", Runtime, "a precision without f, e or g is not supported"},
	}
	for _, c := range cases {
		template, err := Parse(c.template)
		if err == nil {
			_, err = template.Render(decode(t, `{"x": [1]}`), Options{})
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s: got %v, want kind %d, %q", c.template, err, c.kind, c.want)
		}
	}
}

func TestConcurrentRender(t *testing.T) {
	template, err := Parse("{% set ns = namespace(n=0) %}{% for m in msgs %}{% set ns.n = ns.n + 1 %}{{ m.role }}{% endfor %}{{ ns.n }}")
	if err != nil {
		t.Fatal(err)
	}
	variables := decode(t, sample)
	results := make(chan string)
	for range 8 {
		go func() {
			text, _ := template.Render(variables, Options{})
			results <- text
		}()
	}
	for range 8 {
		if got, want := <-results, "userassistantuser3"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, source := range []string{
		"{% for m in msgs %}<|{{ m.role }}|>{{ m['content'] | trim }}{% endfor %}",
		"{% macro f(a, b=1) -%} {{ a ~ b ~ varargs }} {%- endmacro %}{{ f(1, 2, 3) }}{{ '{:>5} {x!r}'.format(1, x=2) }}",
		"{% set ns = namespace(x=1) %}{% set ns.x = '%5.2f' % 3 %}{{ ns.x }}{{ '{:>5}'.format('a') }}",
		"{% for a, b in d|dictsort if a %}{{ loop.last }}{{ loop.nextitem }}{% else %}{% endfor %}",
		"{{ u[::-1] }}{{ l[1:] + [1.0, none] }}{{ d | tojson(indent=2) }}{{ s.split(',', 1)|map('upper')|join('-') }}",
		"{#- c -#}{% raw %}{{ }}{% endraw %}{%+ if 1 -%} {{- 1 -}} {%- elif x is not defined +%}{% endif %}",
		"{% filter upper | replace('A', 'b') %}a{% endfilter %}{% with a = 1 %}{{ a }}{% endwith %}{% generation %}g{% endgeneration %}",
		"{{ range(3)|sum }}{{ msgs|map(attribute='role')|unique|list }}{{ strftime_now('%Y %-d') }}{{ 2 ** -3 // 7 % 3 }}",
	} {
		f.Add(source)
	}
	variables := decode(f, sample)
	f.Fuzz(func(t *testing.T, source string) {
		template, err := Parse(source)
		if err != nil {
			return
		}
		limits := Limits{Steps: 20_000, Depth: 50, Text: 1 << 16}
		p, err := template.Prompt(variables, Options{Now: goldenNow, Limits: limits})
		if err != nil {
			return
		}
		if len(p.Text) > limits.Text {
			t.Fatalf("%q: %d bytes of text", source, len(p.Text))
		}
		checkRanges(t, source, p)
	})
}

// checkRanges wants the ranges of a prompt sorted, apart, not empty and within its text.
func checkRanges(t *testing.T, what string, p Prompt) {
	t.Helper()
	last := -1
	for _, r := range p.Data {
		if r.Start <= last || r.Start >= r.End || r.End > len(p.Text) {
			t.Fatalf("%s: bad ranges %v of %d bytes", what, p.Data, len(p.Text))
		}
		last = r.End
	}
}
