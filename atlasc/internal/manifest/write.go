package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Instance writes an entry as TOML, with the same body and launches under another name and condition, and chosen among
// others of that name; "" for an entry that is not.
func (k *Kernel) Instance(name, when, choose string) string {
	of := *k
	of.Name, of.When, of.Choose, of.Replace = name, when, choose, false
	if choose == "" {
		of.Cost = ""
	}
	var b strings.Builder
	b.WriteString("[[kernel]]\n")
	table(&b, reflect.ValueOf(of))
	for _, l := range of.Launch {
		b.WriteString("[[kernel.launch]]\n")
		table(&b, reflect.ValueOf(l.Shape))
	}
	return b.String()
}

// table writes the keys of a table that have a value, those of embedded structs too. Lists of tables are left out.
func table(b *strings.Builder, v reflect.Value) {
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		if f.Anonymous && f.IsExported() {
			table(b, value)
			continue
		}
		if key := f.Tag.Get("toml"); key != "" && key != "launch" && !value.IsZero() {
			fmt.Fprintf(b, "%s = %s\n", key, literal(value))
		}
	}
}

// literal is a value on one line of TOML.
func literal(v reflect.Value) string {
	var parts []string
	switch v.Kind() {
	case reflect.Interface:
		return literal(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, literal(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		values := map[string]string{}
		for _, key := range v.MapKeys() {
			values[key.String()] = literal(v.MapIndex(key))
		}
		for _, key := range slices.SortedFunc(maps.Keys(values), cmp.Compare[string]) {
			parts = append(parts, key+" = "+values[key])
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case reflect.Struct:
		for i := range v.NumField() {
			if key := v.Type().Field(i).Tag.Get("toml"); key != "" && !v.Field(i).IsZero() {
				parts = append(parts, key+" = "+literal(v.Field(i)))
			}
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprint(v.Interface())
}
