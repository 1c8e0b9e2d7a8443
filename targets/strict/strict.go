// Package strict reads TOML files that people write: every key must be known, every value of the right type, and
// every key's line is remembered. It reports all that is wrong, not the first.
package strict

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Problem is one thing that is wrong with a file. Unknown names a key that the file may not have, Known those it may.
type Problem struct {
	Line    int    // from 1; 0: the file as a whole
	Msg     string // what is wrong
	Unknown string
	Known   []string
}

// String is the message and, after an unknown key, the known ones.
func (p Problem) String() string {
	if p.Unknown != "" {
		return fmt.Sprintf("%s (known: %s)", p.Msg, strings.Join(p.Known, ", "))
	}
	return p.Msg
}

// Fill gives what a string of a file stands for, or what is wrong with it; the line is not its business. Key is where the
// string stands, as Lines.At has it. Keys of a table come in the order of the struct's fields.
type Fill func(key, text string) (string, *Problem)

// Decode reads text into the struct that into points to, whose fields have toml tags and are strings, integers,
// booleans, any, structs, or slices, maps and pointers of those; a pointer is nil where the key is absent. It returns the line of every key, and all that is wrong.
func Decode(text string, into any) (*Lines, []Problem) {
	return DecodeFilled(text, into, func(_, text string) (string, *Problem) { return text, nil })
}

// DecodeFilled is Decode of a text whose strings stand for others. Where an integer is wanted, one that has become an
// integer is one.
func DecodeFilled(text string, into any, fill Fill) (*Lines, []Problem) {
	var table map[string]any
	if _, err := toml.Decode(text, &table); err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return &Lines{}, []Problem{{Line: max(1, parse.Position.Line), Msg: parse.Message}}
		}
		return &Lines{}, []Problem{{Line: 1, Msg: strings.TrimPrefix(err.Error(), "toml: ")}}
	}
	d := decoder{lines: scan(text), fill: fill}
	d.value("", reflect.ValueOf(into).Elem(), table)
	slices.SortStableFunc(d.problems, func(a, b Problem) int { return a.Line - b.Line })
	return d.lines, d.problems
}

type decoder struct {
	lines    *Lines
	fill     Fill
	problems []Problem
}

// value sets to from the parsed value at a path.
func (d *decoder) value(path string, to reflect.Value, from any) {
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	if text, ok := from.(string); ok {
		if from = d.filled(path, text, to.Kind()); from == nil {
			return
		}
	}
	switch to.Kind() {
	case reflect.Struct:
		if table, ok := from.(map[string]any); ok {
			d.structure(path, to, table)
			return
		}
	case reflect.Map:
		if table, ok := from.(map[string]any); ok {
			to.Set(reflect.MakeMap(to.Type()))
			for _, key := range slices.Sorted(maps.Keys(table)) {
				element := reflect.New(to.Type().Elem()).Elem()
				d.value(path+"."+key, element, table[key])
				to.SetMapIndex(reflect.ValueOf(key), element)
			}
			return
		}
	case reflect.Slice:
		if array := reflect.ValueOf(from); array.Kind() == reflect.Slice {
			to.Set(reflect.MakeSlice(to.Type(), array.Len(), array.Len()))
			for i := range array.Len() {
				d.value(fmt.Sprintf("%s[%d]", path, i), to.Index(i), array.Index(i).Interface())
			}
			return
		}
	default:
		if v := reflect.ValueOf(from); v.Type().AssignableTo(to.Type()) {
			to.Set(v)
			return
		}
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	d.problems = append(d.problems, Problem{Line: max(1, d.lines.At(path)),
		Msg: fmt.Sprintf("%s is %s, want %s", name, describe(reflect.TypeOf(from)), describe(to.Type()))})
}

// filled is what a string at a path stands for; nil where that is not known.
func (d *decoder) filled(path, text string, wanted reflect.Kind) any {
	filled, problem := d.fill(path, text)
	if problem != nil {
		problem.Line = max(1, d.lines.At(path))
		d.problems = append(d.problems, *problem)
		return nil
	}
	if wanted == reflect.Int64 || wanted == reflect.Interface {
		if n, err := strconv.ParseInt(filled, 10, 64); err == nil && filled != text {
			return n
		}
	}
	return filled
}

func (d *decoder) structure(path string, to reflect.Value, table map[string]any) {
	at := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	var known []string
	for _, f := range reflect.VisibleFields(to.Type()) { // those of embedded structs as well
		key := f.Tag.Get("toml")
		if key == "" {
			continue
		}
		known = append(known, key)
		if value, ok := table[key]; ok {
			d.value(at(key), to.FieldByIndex(f.Index), value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if !slices.Contains(known, key) {
			d.problems = append(d.problems, Problem{max(1, d.lines.At(at(key))), fmt.Sprintf("unknown key %q", key), key, known})
		}
	}
}

func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number with a fraction"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "a list of strings"
		}
		if k := t.Elem().Kind(); k == reflect.Struct || k == reflect.Map {
			return "a list of tables"
		}
		return "a list"
	case reflect.Map:
		return "a table"
	}
	if t.PkgPath() == "time" {
		return "a time"
	}
	return "a table"
}
