package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// str is Python's str(v).
func (r *run) str(v Value) (Str, error) {
	switch v := v.(type) {
	case Str:
		v.markup = false
		return v, nil
	case *undefined:
		return Str{}, nil
	case None, Bool, Int, *Big, Float:
		return Str{text: scalarText(v)}, nil
	}
	return r.repr(v)
}

// scalarText is the text of None, a boolean or a number.
func scalarText(v Value) string {
	switch v := v.(type) {
	case None:
		return "None"
	case Bool:
		if v {
			return "True"
		}
		return "False"
	case Int:
		return strconv.FormatInt(int64(v), 10)
	case *Big:
		return v.n.String()
	case Float:
		return floatText(float64(v))
	}
	panic("BUG: not a scalar")
}

// floatText is Python's repr of a float.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		if f < 0 {
			return "-inf"
		}
		return "inf"
	}
	return jsontree.FloatText(f)
}

// repr is Python's repr(v). The text of a container is data.
func (r *run) repr(v Value) (Str, error) {
	switch v := v.(type) {
	case None, Bool, Int, *Big, Float:
		return Str{text: scalarText(v)}, nil
	case *undefined:
		return Str{text: "Undefined"}, nil
	}
	w := &reprWriter{textBuilder{run: r}}
	err := w.write(v, r.maxDepth)
	if err == nil {
		err = r.over
	}
	return Data(string(w.text)), err
}

type reprWriter struct{ textBuilder }

func (w *reprWriter) write(v Value, depth int) error {
	if depth == 0 {
		return depthError()
	}
	if err := w.run.spend(1); err != nil {
		return err
	}
	switch v := v.(type) {
	case None, Bool, Int, *Big, Float:
		w.addControl(scalarText(v))
	case Str:
		if v.markup {
			w.addControl("Markup(" + quote(v.text) + ")")
		} else {
			w.addControl(quote(v.text))
		}
	case *undefined:
		w.addControl("Undefined")
	case *List:
		return w.items("[", v.items, "]", depth)
	case *Tuple:
		if len(v.items) == 1 {
			return w.items("(", v.items, ",)", depth)
		}
		return w.items("(", v.items, ")", depth)
	case *Dict:
		return w.dict(v, depth)
	case *dictView:
		items := make([]Value, v.dict.Len())
		for i := range items {
			items[i] = v.at(i)
		}
		return w.items(v.kind+"([", items, "])", depth)
	case *namespace:
		w.addControl("<Namespace ")
		if err := w.write(v.attributes, depth-1); err != nil {
			return err
		}
		w.addControl(">")
	default:
		w.addControl(opaqueText(v))
	}
	return nil
}

func (w *reprWriter) items(open string, items []Value, end string, depth int) error {
	w.addControl(open)
	for i, item := range items {
		if i > 0 {
			w.addControl(", ")
		}
		if err := w.write(item, depth-1); err != nil {
			return err
		}
	}
	w.addControl(end)
	return nil
}

func (w *reprWriter) dict(d *Dict, depth int) error {
	w.addControl("{")
	for i, e := range d.entries {
		if i > 0 {
			w.addControl(", ")
		}
		if err := w.write(e.key, depth-1); err != nil {
			return err
		}
		w.addControl(": ")
		if err := w.write(e.value, depth-1); err != nil {
			return err
		}
	}
	w.addControl("}")
	return nil
}

// opaqueText prints a value of the interpreter; where Python prints an address, the name of the type must do.
func opaqueText(v Value) string {
	switch v := v.(type) {
	case *macro:
		if v.definition.id == "" {
			return "<Macro anonymous>"
		}
		return "<Macro " + quote(v.definition.id) + ">"
	case *rangeValue:
		s := "range(" + strconv.Itoa(v.start) + ", " + strconv.Itoa(v.stop)
		if v.step != 1 {
			s += ", " + strconv.Itoa(v.step)
		}
		return s + ")"
	case *loopContext:
		n, _ := v.length()
		return "<LoopContext " + strconv.Itoa(v.index0+1) + "/" + strconv.Itoa(n) + ">"
	case *method:
		return "<built-in method " + v.id + ">"
	}
	return "<" + v.typeName() + " object>"
}

// shortRepr is the repr of a key for an error message.
func shortRepr(v Value) string {
	switch v := v.(type) {
	case Str:
		return quote(v.text)
	case None, Bool, Int, *Big, Float:
		return scalarText(v)
	}
	return "<" + v.typeName() + ">"
}

// quote is Python's repr of a string.
func quote(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	out := make([]byte, 0, len(s)+2)
	out = append(out, q)
	for _, c := range s {
		switch {
		case c == rune(q) || c == '\\':
			out = append(out, '\\', byte(c))
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\r':
			out = append(out, `\r`...)
		case c == '\t':
			out = append(out, `\t`...)
		case c == ' ' || c > ' ' && c < 0x7f || c >= utf8.RuneSelf && unicode.IsPrint(c):
			out = utf8.AppendRune(out, c)
		case c < 0x100:
			out = appendHex(append(out, `\x`...), c, 2)
		case c < 0x10000:
			out = appendHex(append(out, `\u`...), c, 4)
		default:
			out = appendHex(append(out, `\U`...), c, 8)
		}
	}
	return string(append(out, q))
}

func appendHex(out []byte, c rune, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		out = append(out, "0123456789abcdef"[c>>shift&15])
	}
	return out
}
