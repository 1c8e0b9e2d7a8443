package nn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Family is a family's config, which embeds Config.
type Family interface {
	// Complete fills what a config may leave out and checks it.
	Complete() error
	// Common is what the configs of all families have.
	Common() *Config
}

// Common implements Family.
func (c *Config) Common() *Config { return c }

// Read decodes a config.json into a family's config and checks it. The config comes with the defaults of the family's class, which stay
// where the file has no value. Errors begin with file.
//
// Null becomes nil in a pointer or slice, and what the tag `null` says elsewhere; without the tag it is refused, as in transformers. A
// number may be written as 32.0 or "32"; where it is a text, Assumed says so.
func Read[C Family](file string, data []byte, config C) (C, error) {
	err := read(data, config)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return config, err
}

func read(data []byte, config Family) error {
	var values map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return err
	}
	c := config.Common()
	r := respeller{config: c}
	known := r.object(values, reflect.TypeOf(config).Elem(), "")
	if err := errors.Join(r.problems...); err != nil {
		return err
	}
	text, err := json.Marshal(known)
	if err == nil {
		err = json.Unmarshal(text, config)
	}
	if err == nil {
		err = config.Complete()
	}
	if err != nil {
		return err
	}
	more, err := refuseUnserved(values, c)
	c.known = append(c.known, more...)
	return err
}

// Keys lists the keys of config.json that this family reads; "object.key" is one inside an object. Keys without effect are left out.
func (c *Config) Keys() []string {
	return slices.DeleteFunc(slices.Clone(c.known), func(key string) bool { return slices.Contains(c.ignored, key) })
}

// assume notes how something was read that the file leaves open.
func (c *Config) assume(format string, arguments ...any) {
	c.Assumed = append(c.Assumed, fmt.Sprintf(format, arguments...))
}

// respeller converts decoded JSON to the types of the fields, where the file spells a value otherwise than Go would.
type respeller struct {
	config   *Config
	problems []error
}

// object converts the values of one JSON object that have a field in t, and notes the keys of all fields as known.
func (r *respeller) object(values map[string]any, t reflect.Type, prefix string) map[string]any {
	known := map[string]any{}
	for key, field := range fields(t) {
		r.config.known = append(r.config.known, prefix+key)
		value, given := values[key]
		if !given {
			continue
		}
		converted, err := r.value(value, field, prefix+key)
		if err != nil {
			r.problems = append(r.problems, fmt.Errorf("%s%s %w", prefix, key, err))
			continue
		}
		known[key] = converted
	}
	return known
}

// fields finds the fields of a struct and of those it embeds by their JSON keys.
func fields(t reflect.Type) map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(t) {
		if key := field.Tag.Get("json"); key != "" && key != "-" {
			all[key] = field
		}
	}
	return all
}

func (r *respeller) value(value any, field reflect.StructField, key string) (any, error) {
	t := field.Type
	if value == nil {
		if instead, ok := field.Tag.Lookup("null"); ok {
			return json.RawMessage(instead), nil
		}
		if t.Kind() != reflect.Pointer && t.Kind() != reflect.Slice {
			return nil, errors.New("is null (give a value or leave it out)")
		}
		return nil, nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	converted, err := r.convert(value, t, key)
	if _, isText := value.(string); err == nil && isText && t.Kind() != reflect.String {
		r.config.assume("%s is the text %q: read as %v", key, value, converted)
	}
	return converted, err
}

func (r *respeller) convert(value any, t reflect.Type, key string) (any, error) {
	switch t.Kind() {
	case reflect.Int32:
		f, ok := number(value)
		if !ok || f != math.Trunc(f) {
			return nil, fmt.Errorf("is %s, wanted an integer", show(value))
		}
		if math.Abs(f) > math.MaxInt32 {
			return nil, fmt.Errorf("is %s, wanted an integer from %d to %d", show(value), -math.MaxInt32, math.MaxInt32)
		}
		return int32(f), nil
	case reflect.Float32, reflect.Float64:
		f, ok := number(value)
		if !ok {
			return nil, fmt.Errorf("is %s, wanted a number", show(value))
		}
		if narrow := float32(f); t.Kind() == reflect.Float32 && (math.IsInf(float64(narrow), 0) || narrow == 0 && f != 0) {
			return nil, fmt.Errorf("is %s, wanted a number that f32 holds", show(value))
		}
		return f, nil
	case reflect.Bool:
		switch value {
		case true, "true", json.Number("1"):
			return true, nil
		case false, "false", json.Number("0"):
			return false, nil
		}
		return nil, fmt.Errorf("is %s, wanted true or false", show(value))
	case reflect.String:
		if text, ok := value.(string); ok {
			return text, nil
		}
		return nil, fmt.Errorf("is %s, wanted a text", show(value))
	case reflect.Slice:
		elements, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("is %s, wanted an array", show(value))
		}
		list := make([]any, len(elements))
		for i, element := range elements {
			var err error
			if list[i], err = r.convert(element, t.Elem(), key); err != nil {
				return nil, fmt.Errorf("has an element that %w", err)
			}
		}
		return list, nil
	case reflect.Struct:
		if object, ok := value.(map[string]any); ok {
			return r.object(object, t, key+"."), nil
		}
		return nil, fmt.Errorf("is %s, wanted an object", show(value))
	}
	panic("BUG: a setting of type " + t.String())
}

// number reads a finite number; it may be written as a text.
func number(value any) (float64, bool) {
	text, _ := value.(string)
	if n, ok := value.(json.Number); ok {
		text = n.String()
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// show writes a value as it stands in the file, cut when it is long.
func show(value any) string {
	text, _ := json.Marshal(value) // it came from JSON
	return fmt.Sprintf("%.60s", text)
}
