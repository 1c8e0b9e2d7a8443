package jinja

import (
	"strings"
	"unicode/utf8"
)

// tojsonFilter is json.dumps(v, ensure_ascii=False) as Hugging Face sets it up. Its text is data.
func tojsonFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("tojson", 0, "ensure_ascii", "indent", "separators", "sort_keys")
	if err != nil {
		return nil, err
	}
	w := &jsonWriter{textBuilder: textBuilder{run: r}, itemSeparator: ", ", keySeparator: ": "}
	w.ascii = values[0] != nil && truth(values[0])
	w.sorted = values[3] != nil && truth(values[3])
	switch indent := values[1].(type) {
	case nil, None:
	case Str:
		w.indented, w.indent, w.itemSeparator = true, indent.text, ","
	default:
		width, err := integerArgument(indent, 0)
		if err != nil {
			return nil, err
		}
		if width > r.maxText {
			r.exceed("text")
			return nil, r.over
		}
		w.indented, w.indent, w.itemSeparator = true, strings.Repeat(" ", max(width, 0)), ","
	}
	if _, none := values[2].(None); values[2] != nil && !none {
		if w.itemSeparator, w.keySeparator, err = r.separators(values[2]); err != nil {
			return nil, err
		}
	}
	if err := w.write(v, 0); err != nil {
		return nil, err
	}
	return Data(string(w.text)), r.over
}

func (r *run) separators(v Value) (item, key string, err error) {
	parts, err := r.collect(v)
	if err != nil {
		return "", "", err
	}
	if len(parts) != 2 {
		return "", "", failf("separators must be two strings")
	}
	first, ok := parts[0].(Str)
	second, ok2 := parts[1].(Str)
	if !ok || !ok2 {
		return "", "", failf("separators must be two strings")
	}
	return first.text, second.text, nil
}

type jsonWriter struct {
	textBuilder
	ascii, sorted, indented             bool
	indent, itemSeparator, keySeparator string
}

func (w *jsonWriter) write(v Value, level int) error {
	if level > w.run.maxDepth {
		return depthError()
	}
	if err := w.run.spend(1); err != nil {
		return err
	}
	switch v := v.(type) {
	case None:
		w.addControl("null")
	case Bool, Int, *Big, Float:
		w.addControl(jsonScalar(v))
	case Str:
		w.quote(v.text)
	case *List:
		return w.list(v.items, level)
	case *Tuple:
		return w.list(v.items, level)
	case *Dict:
		return w.dict(v, level)
	default:
		return failf("Object of type %s is not JSON serializable", v.typeName())
	}
	return nil
}

func jsonScalar(v Value) string {
	switch s := scalarText(v); s {
	case "True":
		return "true"
	case "False":
		return "false"
	case "None":
		return "null"
	case "nan":
		return "NaN"
	case "inf":
		return "Infinity"
	case "-inf":
		return "-Infinity"
	default:
		return s
	}
}

// newline starts a line at a level of indentation.
func (w *jsonWriter) newline(level int) {
	if w.indented {
		w.addControl("\n")
		w.addRepeated(Control(w.indent), level)
	}
}

func (w *jsonWriter) list(items []Value, level int) error {
	if len(items) == 0 {
		w.addControl("[]")
		return nil
	}
	w.addControl("[")
	for i, item := range items {
		if i > 0 {
			w.addControl(w.itemSeparator)
		}
		w.newline(level + 1)
		if err := w.write(item, level+1); err != nil {
			return err
		}
	}
	w.newline(level)
	w.addControl("]")
	return nil
}

func (w *jsonWriter) dict(d *Dict, level int) error {
	if d.Len() == 0 {
		w.addControl("{}")
		return nil
	}
	entries := d.entries
	if w.sorted {
		var err error
		if entries, err = w.sortedEntries(d); err != nil {
			return err
		}
	}
	w.addControl("{")
	for i, e := range entries {
		if i > 0 {
			w.addControl(w.itemSeparator)
		}
		w.newline(level + 1)
		switch key := e.key.(type) {
		case Str:
			w.quote(key.text)
		case None, Bool, Int, *Big, Float:
			w.addControl(`"` + jsonScalar(key) + `"`)
		default:
			return failf("keys must be str, int, float, bool or None, not %s", key.typeName())
		}
		w.addControl(w.keySeparator)
		if err := w.write(e.value, level+1); err != nil {
			return err
		}
	}
	w.newline(level)
	w.addControl("}")
	return nil
}

func (w *jsonWriter) sortedEntries(d *Dict) ([]entry, error) {
	items, keys := make([]Value, d.Len()), make([]Value, d.Len())
	for i, e := range d.entries {
		items[i], keys[i] = Int(i), e.key
	}
	order, err := w.run.sortBy(items, keys, false)
	if err != nil {
		return nil, err
	}
	sorted := make([]entry, len(order))
	for i, n := range order {
		sorted[i] = d.entries[n.(Int)]
	}
	return sorted, nil
}

func (w *jsonWriter) quote(s string) {
	if !w.grow(len(s) + 2) {
		return
	}
	out := append(w.text, '"')
	plain := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' && (c < utf8.RuneSelf || !w.ascii) {
			continue
		}
		out = append(out, s[plain:i]...)
		plain = i + utf8.RuneLen(c)
		switch c {
		case '"', '\\':
			out = append(out, '\\', byte(c))
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		case '\b':
			out = append(out, `\b`...)
		case '\f':
			out = append(out, `\f`...)
		default:
			if c > 0xffff {
				c -= 0x10000
				out = appendHex(append(out, `\u`...), 0xd800|c>>10, 4)
				c = 0xdc00 | c&0x3ff
			}
			out = appendHex(append(out, `\u`...), c, 4)
		}
	}
	w.text = append(append(out, s[plain:]...), '"')
	if len(w.text) > w.run.maxText {
		w.run.exceed("text")
	}
}
