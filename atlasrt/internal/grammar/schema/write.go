package schema

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// writer writes nodes in a style.
type writer struct {
	*compiler
	*style
	symbols map[node]rules.Symbol
	queue   []node // whose rules are declared and not yet defined
}

// write is the symbol of a node in a notation.
func (c *compiler) write(n node, options Options) rules.Symbol {
	w := &writer{compiler: c, symbols: map[node]rules.Symbol{}}
	var start rules.Symbol
	switch options.Notation {
	case "", Compact, Spaced, Flexible:
		w.style = jsonStyle(c.rules.Regexes, options.Notation)
		start = w.value(n)
	case Gemma:
		w.style = gemmaStyle(c.rules.Regexes, options.mark)
		start = w.value(n)
	case QwenXML, MiniMax:
		start = w.parameters(n, options)
	default:
		c.at = c.document.root
		c.invalid("there is no notation " + quote(string(options.Notation)))
		return rules.Nothing
	}
	w.drain()
	return start
}

// drain defines what was declared.
func (w *writer) drain() {
	for len(w.queue) > 0 && w.err == nil {
		n := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		w.at = w.placeOf(n)
		v := w.read(n)
		alternatives := []rules.Symbol{w.rules.Match(w.scalars(v))}
		for _, a := range v.arrays {
			alternatives = append(alternatives, w.array(a))
		}
		for _, o := range v.objects {
			alternatives = append(alternatives, w.object(o))
		}
		w.rules.Define(w.symbols[n], alternatives...)
		if w.rules.Size() > w.limits.Symbols {
			w.unsupported("", "its grammar is larger than is granted to one schema: make it smaller")
		}
	}
}

// placeOf is the schema that a node is of, or one of them.
func (c *compiler) placeOf(n node) place {
	for {
		e := &c.nodes[n]
		switch {
		case e.kind == leaf && e.place.path != nil:
			return e.place
		case len(e.parts) == 0:
			return c.document.root
		}
		n = e.parts[0]
	}
}

// value is the symbol of a node. Scalars are one terminal.
func (w *writer) value(n node) rules.Symbol {
	if n == never || w.err != nil {
		return rules.Nothing
	}
	if s, known := w.symbols[n]; known {
		return s
	}
	v := w.read(n)
	var s rules.Symbol
	if v.scalar() {
		s = w.rules.Match(w.scalars(v))
	} else {
		s = w.rules.Declare("")
		w.queue = append(w.queue, n)
	}
	w.symbols[n] = s
	return s
}

// scalars is what a set has but for arrays and objects.
func (w *writer) scalars(v *set) regex.Ref {
	s := w.rules.Regexes
	forms := make([]regex.Ref, 0, 5)
	if v.null {
		forms = append(forms, w.null)
	}
	if v.no {
		forms = append(forms, w.no)
	}
	if v.yes {
		forms = append(forms, w.yes)
	}
	if !v.number.none() {
		forms = append(forms, w.written(v.number))
	}
	if v.text != nil {
		forms = append(forms, s.Concat(w.quote, w.text(v.text), w.quoteEnd))
	}
	return s.Or(forms...)
}

// text is what stands between the quotes of a string.
func (w *writer) text(t *texts) regex.Ref {
	if t == anyText {
		return w.rules.Regexes.And(w.free, w.within)
	}
	return w.rules.Regexes.And(w.spelled(w.spell, t), w.within)
}

func (w *writer) spelled(s *speller, t *texts) regex.Ref {
	r, err := s.form(t)
	if err != nil {
		w.unsupported("pattern", err.Error())
	}
	return r
}
