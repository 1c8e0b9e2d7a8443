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
	if got := fmt.Sprint(c.Unread(), c.Fresh().Unread(), c.Fresh().Err()); got != "[d] [a b d] <nil>" {
		t.Errorf("unread keys: %s", got)
	}
}

func TestRope(t *testing.T) {
	cases := []struct {
		text, layer     string
		theta           float64
		kind            string
		factor, partial float64
	}{
		{`{}`, "", 10000, "default", 0, 1},
		{`{"rope_theta": 500000.0, "rope_scaling": null}`, "", 500000, "default", 0, 1},
		{`{"rope_theta": 1000000, "rope_scaling": {"type": "yarn", "factor": 4.0}}`, "", 1e6, "yarn", 4, 1},
		{`{"rope_theta": 500000, "rope_scaling": {"rope_type": "llama3", "factor": 8}}`, "", 500000, "llama3", 8, 1},
		{`{"rope_parameters": {"rope_theta": 500000, "rope_type": "llama3", "factor": 8}}`, "", 500000, "llama3", 8, 1},
		{`{"partial_rotary_factor": 0.5, "rope_parameters": {"rope_theta": 7, "partial_rotary_factor": 0.25}}`, "", 7, "default", 0, 0.25},
		{`{"partial_rotary_factor": 0.5, "rope_theta": 7}`, "", 7, "default", 0, 0.5},
		{`{"rope_parameters": {"full_attention": {"rope_theta": 1e6, "rope_type": "proportional"}, "sliding_attention": {"rope_theta": 3}}}`,
			"full_attention", 1e6, "proportional", 0, 1},
		{`{"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 3}}}`, "sliding_attention", 3, "default", 0, 1},
	}
	for _, c := range cases {
		reader := config(t, c.text)
		rope := reader.Rope(c.layer)
		theta, kind := rope.FloatOr("rope_theta", 10000), rope.String("rope_type")
		factor, partial := rope.FloatOr("factor", 0), rope.FloatOr("partial_rotary_factor", 1)
		if theta != c.theta || kind != c.kind || factor != c.factor || partial != c.partial || reader.Err() != nil || len(reader.Unread()) > 0 {
			t.Errorf("%s: theta %v type %s factor %v partial %v; want %v %s %v %v (%v, unread %v)",
				c.text, theta, kind, factor, partial, c.theta, c.kind, c.factor, c.partial, reader.Err(), reader.Unread())
		}
	}
	reader := config(t, `{"rope_scaling": {"type": "yarn", "factor": "four"}}`)
	reader.Rope("").Float("factor")
	if err := reader.Err(); !matches(err, `config.json: rope_scaling.factor is "four"`) {
		t.Errorf("got %v", err)
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
		c.Rope("full_attention").String("rope_type")
		if c.Err() != nil && c.Err().Error() == "" {
			t.Fatalf("%s: an empty error", text)
		}
	})
}
