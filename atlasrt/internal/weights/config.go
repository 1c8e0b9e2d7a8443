package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Config reads a model's settings: a JSON object under HuggingFace's names. A getter that finds nothing or the wrong type
// returns a zero value and keeps an error that names file, key, wanted type and found value; Err gives all of them, so
// that a family's settings read as a table. A key with null counts as absent. A number may stand in a string: Assumed says
// so. A Config is for one goroutine; what was read and assumed is kept for all readers of a file.
type Config struct {
	file     string // for errors: config.json, or the GGUF file
	prefix   string // "rope_parameters." inside that object
	values   map[string]any
	nested   map[string]bool // keys that stand in text_config
	problems *[]error        // shared with the objects inside
	memory   *memory
}

// Keys that mean more than their value.
const (
	textName = "text_config"
	tieName  = "tie_word_embeddings"
)

// ParseConfig checks the text of a config.json; file names it in errors. The text is one JSON object of at most 4 MiB
// without NaN or doubled keys; the sizes that it gives are in sane ranges.
func ParseConfig(file string, text []byte) (*Config, error) {
	values, err := parseObject(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return newConfig(file, values)
}

func newConfig(file string, values map[string]any) (*Config, error) {
	c := &Config{file: file, values: values, problems: new([]error), memory: &memory{read: map[string]bool{}}}
	if _, isObject := values[textName].(map[string]any); c.Has(textName) && !isObject {
		return nil, c.problem(textName, "is %s, wanted an object", show(values[textName]))
	}
	if err := c.checkRanges(); err != nil {
		return nil, err
	}
	return c, nil
}

// Fresh is a reader of the same settings that has met no error.
func (c *Config) Fresh() *Config {
	fresh := *c
	fresh.problems = new([]error)
	return &fresh
}

// File is what errors call the settings: the path of a config.json or of a GGUF file.
func (c *Config) File() string { return c.file }

// Has reports whether the key is there and not null.
func (c *Config) Has(key string) bool { return c.values[key] != nil }

// Any gives a value as it stands, for those that may be of several types: nil, bool, string, json.Number, []any or map[string]any.
func (c *Config) Any(key string) any {
	c.Know(key)
	return c.values[key]
}

// Keys lists the keys of this object in alphabetical order.
func (c *Config) Keys() []string { return slices.Sorted(maps.Keys(c.values)) }

// Int reads an integer that must be there.
func (c *Config) Int(key string) int { return required(c, key, "an integer", asInt) }

// IntOr reads an integer; absent gives otherwise.
func (c *Config) IntOr(key string, otherwise int) int {
	return optional(c, key, "an integer", asInt, otherwise)
}

// Float reads a finite number that must be there.
func (c *Config) Float(key string) float64 { return required(c, key, "a finite number", asFloat) }

// FloatOr reads a finite number; absent gives otherwise.
func (c *Config) FloatOr(key string, otherwise float64) float64 {
	return optional(c, key, "a finite number", asFloat, otherwise)
}

// Bool reads a bool that must be there.
func (c *Config) Bool(key string) bool { return required(c, key, "true or false", as[bool]) }

// BoolOr reads a bool; absent gives otherwise.
func (c *Config) BoolOr(key string, otherwise bool) bool {
	return optional(c, key, "true or false", as[bool], otherwise)
}

// String reads a string that must be there.
func (c *Config) String(key string) string { return required(c, key, "a string", as[string]) }

// StringOr reads a string; absent gives otherwise.
func (c *Config) StringOr(key, otherwise string) string {
	return optional(c, key, "a string", as[string], otherwise)
}

// Strings reads an array of strings; absent gives nil.
func (c *Config) Strings(key string) []string {
	return optional(c, key, "an array of strings", list(as[string]), nil)
}

// Ints reads an array of integers; absent gives nil. One integer alone counts as an array of one, as in eos_token_id.
func (c *Config) Ints(key string) []int {
	return optional(c, key, "an array of integers", func(value any) ([]int, bool) {
		if n, ok := asInt(value); ok {
			return []int{n}, true
		}
		return list(asInt)(value)
	}, nil)
}

// Floats reads an array of numbers; absent gives nil. Infinities are kept: an upper limit may be one.
func (c *Config) Floats(key string) []float64 {
	return optional(c, key, "an array of numbers", list(number), nil)
}

// Object reads an object; absent gives an empty one. Its errors are part of c.Err.
func (c *Config) Object(key string) *Config {
	values := optional(c, key, "an object", as[map[string]any], nil)
	return &Config{file: c.file, prefix: c.prefix + key + ".", values: values, problems: c.problems, memory: c.memory}
}

// Fail keeps an error about a key, for Err: a value that has the right type but makes no sense.
func (c *Config) Fail(key, format string, arguments ...any) {
	*c.problems = append(*c.problems, c.problem(key, format, arguments...))
}

// Err gives all errors that this reader and the objects inside it have met.
func (c *Config) Err() error { return errors.Join(*c.problems...) }

// prefixOf is what stands before a key in errors.
func (c *Config) prefixOf(key string) string {
	if c.nested[key] {
		return textName + "."
	}
	return c.prefix
}

func (c *Config) problem(key, format string, arguments ...any) error {
	return fmt.Errorf("%s: %s%s %s", c.file, c.prefixOf(key), key, fmt.Sprintf(format, arguments...))
}

func required[T any](c *Config, key, want string, convert func(any) (T, bool)) T {
	if !c.Has(key) {
		c.Know(key)
		c.Fail(key, "is missing, wanted %s", want)
	}
	var zero T
	return optional(c, key, want, convert, zero)
}

func optional[T any](c *Config, key, want string, convert func(any) (T, bool), otherwise T) T {
	c.Know(key)
	value := c.values[key]
	if value == nil {
		return otherwise
	}
	result, ok := convert(value)
	if !ok {
		if result, ok = convert(plain(value)); ok {
			c.Assume("%s%s is %s: read as %s", c.prefixOf(key), key, show(value), want)
			return result
		}
		c.Fail(key, "is %s, wanted %s", show(value), want)
		return otherwise
	}
	return result
}

// show writes a value as it stands in the file, cut when it is long.
func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("a %T", value)
	}
	return fmt.Sprintf("%.60s", text)
}

func as[T any](value any) (T, bool) {
	result, ok := value.(T)
	return result, ok
}

// asInt accepts 8 and 8.0, up to 2^53.
func asInt(value any) (int, bool) {
	f, ok := number(value)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int(f), true
}

func asFloat(value any) (float64, bool) {
	f, ok := number(value)
	return f, ok && !math.IsInf(f, 0)
}

// number reads a number, infinite ones too: transformers writes those as {"__float__": "Infinity"}.
func number(value any) (float64, bool) {
	if object, ok := value.(map[string]any); ok && len(object) == 1 {
		switch object["__float__"] {
		case "Infinity":
			return math.Inf(1), true
		case "-Infinity":
			return math.Inf(-1), true
		}
	}
	text, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(text.String(), 64)
	if errors.Is(err, strconv.ErrRange) { // f is infinite
		err = nil
	}
	return f, err == nil
}

// plain gives the value that stands in a text, "5e-7" or "true", also for the elements of an array.
func plain(value any) any {
	switch value := value.(type) {
	case string:
		if f, err := strconv.ParseFloat(value, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return json.Number(value)
		}
		if value == "true" || value == "false" {
			return value == "true"
		}
	case []any:
		elements := make([]any, len(value))
		for i := range value {
			elements[i] = plain(value[i])
		}
		return elements
	}
	return value
}

// list converts every element of an array.
func list[T any](convert func(any) (T, bool)) func(any) ([]T, bool) {
	return func(value any) ([]T, bool) {
		elements, ok := value.([]any)
		if !ok {
			return nil, false
		}
		result := make([]T, len(elements))
		for i, element := range elements {
			if result[i], ok = convert(element); !ok {
				return nil, false
			}
		}
		return result, true
	}
}

// JSON is the object as text again, for a family that decodes it into a struct of its own.
func (c *Config) JSON() ([]byte, error) { return json.Marshal(c.values) }
