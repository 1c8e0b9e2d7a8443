package repl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Values are what a conversation can change.
type Values struct {
	System    string        // the system message; empty: none
	MaxTokens int           // of an answer; 0: as many as the context leaves
	Seed      int64         // 0: a fresh one for each answer
	Sampling  sample.Params // its seed is not used
}

// Settings are the values of a conversation, and where each comes from.
type Settings struct {
	Values
	initial Values
	from    map[string]string // by name; absent: the default
	changed map[string]bool   // by name: /set has changed it
}

// Setting is one setting as it is shown: its name, its value, and where the value comes from.
type Setting struct{ Name, Value, From string }

// NewSettings begins with values, which must be in range. from says by name where a value comes from; what it does not name is a default.
func NewSettings(v Values, from map[string]string) (*Settings, error) {
	return &Settings{Values: v, initial: v, from: from, changed: map[string]bool{}}, v.check()
}

// System is the system message, empty where there is none.
func (s *Settings) System() string { return s.Values.System }

// field reads and writes one value as text.
type field struct {
	name string
	show func(v *Values) string
	read func(v *Values, text string) error
}

func fields() []field {
	return []field{
		decimal("temperature", func(v *Values) *float32 { return &v.Sampling.Temperature }),
		decimal("top_p", func(v *Values) *float32 { return &v.Sampling.TopP }),
		integer("top_k", 32, func(v *Values) *int32 { return &v.Sampling.TopK }),
		decimal("min_p", func(v *Values) *float32 { return &v.Sampling.MinP }),
		decimal("repetition_penalty", func(v *Values) *float32 { return &v.Sampling.RepetitionPenalty }),
		integer("seed", 64, func(v *Values) *int64 { return &v.Seed }),
		integer("max_tokens", strconv.IntSize, func(v *Values) *int { return &v.MaxTokens }),
		{"system", func(v *Values) string { return v.System }, func(v *Values, text string) error {
			if v.System = text; text == `""` {
				v.System = ""
			}
			return nil
		}},
	}
}

func decimal(name string, at func(*Values) *float32) field {
	return field{name, func(v *Values) string { return strconv.FormatFloat(float64(*at(v)), 'g', -1, 32) }, func(v *Values, text string) error {
		x, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return fmt.Errorf("%s is a number, and %q is none", name, text)
		}
		*at(v) = float32(x)
		return nil
	}}
}

func integer[T int | int32 | int64](name string, bits int, at func(*Values) *T) field {
	return field{name, func(v *Values) string { return strconv.FormatInt(int64(*at(v)), 10) }, func(v *Values, text string) error {
		x, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return fmt.Errorf("%s is a whole number, and %q is none", name, text)
		}
		*at(v) = T(x)
		return nil
	}}
}

// Set changes a setting; the text "default" gives it its first value again. Where the text is no value or is out of range, nothing
// changes and the error says so.
func (s *Settings) Set(name, text string) error {
	for _, f := range fields() {
		if f.name != name {
			continue
		}
		v := s.Values
		if text == "default" {
			text = f.show(&s.initial)
		}
		if err := f.read(&v, text); err != nil {
			return err
		}
		if err := v.check(); err != nil {
			return err
		}
		s.Values = v
		s.changed[name] = f.show(&v) != f.show(&s.initial)
		return nil
	}
	return unknown(name)
}

// check applies the limits that requests over HTTP have, too.
func (v *Values) check() error {
	if v.MaxTokens < 0 {
		return errors.New("max_tokens must be 0, for as many as the context leaves, or more")
	}
	return v.Sampling.Validate(0)
}

// List shows all settings.
func (s *Settings) List() []Setting {
	var list []Setting
	for _, f := range fields() {
		from := s.from[f.name]
		switch {
		case s.changed[f.name]:
			from = "/set"
		case from == "":
			from = "default"
		}
		value := f.show(&s.Values)
		switch {
		case f.name == "seed" && value == "0":
			value = "0 (a fresh one each time)"
		case f.name == "max_tokens" && value == "0":
			value = "0 (as the context leaves)"
		case f.name == "system" && value == "":
			value = "(none)"
		}
		list = append(list, Setting{f.name, value, from})
	}
	return list
}

func unknown(name string) error {
	var names []string
	for _, f := range fields() {
		names = append(names, f.name)
	}
	return fmt.Errorf("there is no setting %q (there are %s)", name, strings.Join(names, ", "))
}
