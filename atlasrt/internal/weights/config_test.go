package weights

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func config(t *testing.T, text string) *Config {
	t.Helper()
	c, err := ParseConfig("config.json", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// matches reports whether an error is as wanted: none for the empty text, else one that holds it.
func matches(err error, want string) bool {
	return want == "" && err == nil || want != "" && err != nil && strings.Contains(err.Error(), want)
}

func TestParseConfig(t *testing.T) {
	cases := []struct{ text, want string }{
		{`{}`, ""},
		{`{"a": [1, {"b": null}]}`, ""},
		{``, "unexpected EOF"},
		{`[]`, "not a JSON object"},
		{`{} {}`, "text after the end"},
		{"{\n\"a\": 1,\n}", "line 3"},
		{`{"a": 1, "a": 2}`, `key "a" is given twice`},
		{`{"x": {"a": 1, "a": 2}}`, `key "a" is given twice`},
		{"{\n\"a\": NaN}", "line 2: NaN"},
		{`{"a": "NaN, Infinity \" NaN"}`, ""},
		{`{"a": [0.0, Infinity], "b": -Infinity}`, ""},
		{strings.Repeat(`{"a":`, 100), "nested deeper than 64"},
		{`{"a": "` + strings.Repeat("x", 4<<20) + `"}`, "larger than 4194304 bytes"},
		{`{"num_attention_heads": 0}`, "num_attention_heads is 0, wanted a number from 1 to 4096"},
		{`{"text_config": {"num_hidden_layers": 1000000000}}`, "text_config.num_hidden_layers is 1000000000"},
		{`{"hidden_size": 1e999}`, "hidden_size is 1e999"},
		{`{"rope_theta": -1}`, "rope_theta is -1"},
		{`{"rms_norm_eps": Infinity}`, "rms_norm_eps"},
		{`{"num_attention_heads": 9, "num_key_value_heads": 2}`, "num_key_value_heads is 2, which does not divide num_attention_heads, 9"},
		{`{"num_experts": null}`, ""},
		{`{"text_config": null}`, ""},
		{`{"text_config": []}`, "config.json: text_config is [], wanted an object"},
		{`{"hidden_size": 0}`, "hidden_size is 0, wanted a number from 1 to 1048576"},
		{`{"rope_theta": 0}`, "rope_theta is 0, wanted a number from 0.000001 to 1000000000000000000"},
	}
	for _, c := range cases {
		if _, err := ParseConfig("config.json", []byte(c.text)); !matches(err, c.want) {
			t.Errorf("%.60s: got %v, want %q", c.text, err, c.want)
		}
	}
}

func TestConfigGetters(t *testing.T) {
	const text = `{"int": 8, "whole": 8.0, "float": 1e-6, "text": "x", "yes": true, "nothing": null, "big": 1e300, "infinite": Infinity,
		"words": ["a", "b"], "ints": [1, 2], "limits": [0.0, {"__float__": "Infinity"}, -Infinity], "inside": {"int": 3, "text": "y"}}`
	cases := []struct {
		get  func(c *Config) any
		want string
		err  string
	}{
		{func(c *Config) any { return c.Int("int") }, "8", ""},
		{func(c *Config) any { return c.Int("whole") }, "8", ""},
		{func(c *Config) any { return c.Int("none") }, "0", "config.json: none is missing, wanted an integer"},
		{func(c *Config) any { return c.Int("nothing") }, "0", "nothing is missing"},
		{func(c *Config) any { return c.Int("float") }, "0", "config.json: float is 1e-6, wanted an integer"},
		{func(c *Config) any { return c.Int("text") }, "0", `text is "x", wanted an integer`},
		{func(c *Config) any { return c.Int("big") }, "0", "big is 1e300, wanted an integer"},
		{func(c *Config) any { return c.IntOr("none", 5) }, "5", ""},
		{func(c *Config) any { return c.IntOr("nothing", 5) }, "5", ""},
		{func(c *Config) any { return c.IntOr("text", 5) }, "5", "wanted an integer"},
		{func(c *Config) any { return c.Float("int") }, "8", ""},
		{func(c *Config) any { return c.Float("infinite") }, "0", "wanted a finite number"},
		{func(c *Config) any { return c.FloatOr("float", 1) }, "1e-06", ""},
		{func(c *Config) any { return c.Bool("yes") }, "true", ""},
		{func(c *Config) any { return c.BoolOr("none", true) }, "true", ""},
		{func(c *Config) any { return c.Bool("int") }, "false", "int is 8, wanted true or false"},
		{func(c *Config) any { return c.String("text") }, "x", ""},
		{func(c *Config) any { return c.StringOr("int", "z") }, "z", "int is 8, wanted a string"},
		{func(c *Config) any { return c.Strings("words") }, "[a b]", ""},
		{func(c *Config) any { return c.Strings("ints") }, "[]", "ints is [1,2], wanted an array of strings"},
		{func(c *Config) any { return c.Strings("none") == nil }, "true", ""},
		{func(c *Config) any { return c.Ints("ints") }, "[1 2]", ""},
		{func(c *Config) any { return c.Ints("int") }, "[8]", ""},
		{func(c *Config) any { return c.Floats("limits") }, fmt.Sprint([]float64{0, math.Inf(1), math.Inf(-1)}), ""},
		{func(c *Config) any { return c.Object("inside").Int("int") }, "3", ""},
		{func(c *Config) any { return c.Object("inside").Int("text") }, "0", `config.json: inside.text is "y", wanted an integer`},
		{func(c *Config) any { return c.Object("none").IntOr("int", 7) }, "7", ""},
		{func(c *Config) any { return len(c.Object("int").Keys()) }, "0", "int is 8, wanted an object"},
	}
	for _, c := range cases {
		reader := config(t, text)
		if got := fmt.Sprint(c.get(reader)); got != c.want || !matches(reader.Err(), c.err) {
			t.Errorf("got %s, %v; want %s, %q", got, reader.Err(), c.want, c.err)
		}
	}
}

func TestConfigReportsEverything(t *testing.T) {
	c := config(t, `{"a": "x", "b": {"c": 1}, "d": 1}`)
	c.Int("a")
	c.Object("b").String("c")
	c.Int("gone")
	c.Fail("d", "must be even")
	const want = "config.json: a is \"x\", wanted an integer\nconfig.json: b.c is 1, wanted a string\n" +
		"config.json: gone is missing, wanted an integer\nconfig.json: d must be even"
	if err := c.Err(); err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	if got := fmt.Sprint(c.Unread(), c.Fresh().Unread(), c.Fresh().Err()); got != "[d] [d] <nil>" {
		t.Errorf("unread keys: %s", got)
	}
}

func TestUnreadDescends(t *testing.T) {
	c := config(t, `{"a": 1, "b": {"c": 1, "d": {"e": 2}}, "f": {"g": 1}, "h": null}`)
	c.Know("a")
	c.Object("b").Int("c")
	c.Fresh().Object("b").Object("d")
	if got := fmt.Sprint(c.Unread()); got != "[b.d.e f h]" {
		t.Errorf("unread keys: %s", got)
	}
}

func TestNumbersInText(t *testing.T) {
	cases := []struct {
		get           func(c *Config) any
		want, assumed string
	}{
		{func(c *Config) any { return c.Int("int") }, "8", `int is "8": read as an integer`},
		{func(c *Config) any { return c.Float("float") }, "5e-07", `float is "5e-7": read as a finite number`},
		{func(c *Config) any { return c.Bool("on") }, "true", `on is "true": read as true or false`},
		{func(c *Config) any { return c.Ints("ids") }, "[1 2]", `ids is ["1",2]: read as an array of integers`},
		{func(c *Config) any { return c.Object("in").Int("n") }, "3", `in.n is "3": read as an integer`},
		{func(c *Config) any { return c.String("int") }, "8", ""},
		{func(c *Config) any { return c.Strings("texts") }, "[1 2]", ""},
	}
	for _, k := range cases {
		c := config(t, `{"int": "8", "float": "5e-7", "on": "true", "ids": ["1", 2], "in": {"n": "3"}, "texts": ["1", "2"]}`)
		got, again := fmt.Sprint(k.get(c)), fmt.Sprint(k.get(c.Fresh()))
		if assumed := strings.Join(c.Assumed(), "; "); got != k.want || again != k.want || assumed != k.assumed || c.Err() != nil {
			t.Errorf("got %s, %s, %q, %v; want %s, %q", got, again, assumed, c.Err(), k.want, k.assumed)
		}
	}
	for _, text := range []string{"NaN", "Infinity", "0x8p0 x", "", "8 9"} {
		c := config(t, fmt.Sprintf(`{"n": %q}`, text))
		if c.Float("n"); c.Err() == nil {
			t.Errorf("%q is read as a number", text)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add(`{"a": [1, {"b": null}], "rope_scaling": {"factor": Infinity}, "num_attention_heads": 4}`)
	f.Add(`{"a": "\"NaN", "__float__": -Infinity}`)
	f.Add(`{"a\`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConfig("config.json", []byte(text))
		if err != nil {
			return
		}
		for _, key := range c.Keys() {
			c.Int(key)
			c.Float(key)
			c.Strings(key)
			c.Floats(key)
			c.Object(key).Keys()
		}
		c.Unread()
		if c.Err() != nil && c.Err().Error() == "" {
			t.Fatalf("%s: an empty error", text)
		}
	})
}
