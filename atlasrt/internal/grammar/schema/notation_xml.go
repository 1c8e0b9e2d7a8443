package schema

import (
	"unicode"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/kind"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// markup is how a family writes parameters with tags.
type markup struct {
	open, nameEnd, before string   // a tag, its end behind the name, and what stands before the value
	behind                string   // the value
	marks                 []string // that a value must not have: its reader would end it there
}

var markups = map[Notation]markup{
	QwenXML: {"<parameter=", ">", "\n", "\n</parameter>\n", []string{"</parameter>", "<parameter=", "</function>", "</tool_call>", "<tool_call>"}},
	MiniMax: {`<parameter name="`, `">`, "", "</parameter>\n", []string{"</parameter>", `<parameter name="`, "</invoke>", "</minimax:tool_call>", "<minimax:tool_call>"}},
}

// parameters is the objects of a node as tags: each member is one, whose value is text as it is or JSON. A reader tells them apart by the types
// that the schema declares for the parameter (package kind), so that no text is written that it would take for another value.
func (w *writer) parameters(n node, options Options) rules.Symbol {
	s := w.rules.Regexes
	m := markups[options.Notation]
	inner := jsonStyle(s, Spaced)
	inner.within = s.Without(m.marks...)
	inner.freeKey = s.And(inner.freeKey, inner.within)
	p := &parameters{writer: w, markup: m, inner: inner, root: w.document.root.schema, words: plainSpeller(s)}
	bare := s.Repeat(s.NotRunes(append(bareExcluded, '>', '>')...), 1, unbounded)
	w.style = &style{
		first: regex.Empty, comma: regex.Empty, colon: regex.Empty, within: anything(s), spell: p.words,
		key: p.name, freeKey: bare,
		keys:   func(names regex.Ref) regex.Ref { return s.And(names, bare) },
		member: p.member,
	}
	var ways []rules.Symbol
	objects := w.read(n).objects
	if len(objects) == 0 && w.err == nil {
		w.at = w.document.root
		w.invalid("the parameters of a tool are an object, and this schema allows none")
	}
	for _, o := range objects {
		for _, v := range w.meetByFields(o) {
			ways = append(ways, w.members(v))
		}
	}
	w.style = inner
	return w.rules.Either(ways...)
}

// parameters writes the parameters of a call.
type parameters struct {
	*writer
	markup markup
	inner  *style // of values in JSON
	root   jsontree.Value
	words  *speller
}

// name is the name of a parameter in a tag.
func (p *parameters) name(name string) regex.Ref {
	s := p.rules.Regexes
	ends := []string{"<", "\n"}
	trimmed := len(name) > 0 && !unicode.IsSpace([]rune(name)[0]) && !unicode.IsSpace([]rune(name)[len([]rune(name))-1])
	if !trimmed || !s.Matches(s.Without(append(ends, p.markup.nameEnd)...), name) {
		p.unsupported("properties", "the model's format has no way to write a parameter of the name "+quote(name)+": give it another name")
	}
	return s.Literal(name)
}

func (p *parameters) member(before, key regex.Ref, name string, value node) rules.Symbol {
	b := p.rules
	s := b.Regexes
	declared := kind.Set(0)
	if name != "" {
		declared = kind.Declared(p.root, name)
	}
	outer := p.style
	p.writer.style = p.inner
	argument := p.argument(p.read(value), declared)
	p.writer.style = outer
	m := p.markup
	return b.Sequence(b.Match(s.Concat(before, s.Literal(m.open), key, s.Literal(m.nameEnd+m.before))), argument, b.Literal(m.behind))
}

// argument is the values of a set that a reader takes for what they are, where it takes the parameter for one of some types.
func (p *parameters) argument(v *set, declared kind.Set) rules.Symbol {
	b := p.rules
	s := b.Regexes
	texts := s.And(p.spelled(p.words, v.text), p.inner.within)
	if declared.OnlyText() {
		return b.Match(texts)
	}
	var scalars, taken []regex.Ref // taken: texts that are read as something else
	add := func(has bool, form regex.Ref) {
		if has {
			scalars = append(scalars, form)
		}
	}
	if declared.Nulls() {
		written := s.Literal("null")
		if declared != kind.String|kind.Null {
			written = s.Or(written, s.Literal("None"))
		}
		add(v.null, written)
		taken = append(taken, p.folded("null"), p.folded("none"))
	}
	if declared&kind.Boolean != 0 {
		add(v.no, s.Or(s.Literal("false"), s.Literal("False")))
		add(v.yes, s.Or(s.Literal("true"), s.Literal("True")))
		taken = append(taken, p.folded("true"), p.folded("false"))
	}
	values := declared.Values()
	if values&kind.Number != 0 {
		add(!v.number.none(), p.written(v.number))
		taken = append(taken, p.forms().all)
	}
	var ways []rules.Symbol
	if values&kind.Array != 0 {
		for _, a := range v.arrays {
			ways = append(ways, p.array(a))
		}
		taken = append(taken, s.Concat(s.Literal("["), s.Text()))
	}
	if values&kind.Object != 0 {
		for _, o := range v.objects {
			ways = append(ways, p.object(o))
		}
		taken = append(taken, s.Concat(s.Literal("{"), s.Text()))
	}
	if texts != regex.Nothing {
		space := s.Repeat(s.Runes(spaces...), 0, unbounded)
		scalars = append(scalars, s.And(texts, s.Not(s.Concat(space, s.Or(taken...), space))))
	}
	return b.Either(append(ways, b.Match(s.Or(scalars...)))...)
}

// folded is a word in upper or lower case.
func (p *parameters) folded(word string) regex.Ref {
	s := p.rules.Regexes
	letters := make([]regex.Ref, 0, len(word))
	for i := range len(word) {
		letters = append(letters, s.Or(s.Literal(word[i:i+1]), s.Bytes(word[i]-'a'+'A', word[i]-'a'+'A')))
	}
	return s.Concat(letters...)
}

// spaces is the characters that readers leave out around a value.
var spaces = func() (pairs []rune) {
	for _, r := range unicode.White_Space.R16 {
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			pairs = append(pairs, c, c)
		}
	}
	return pairs
}()
