package grammar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/ebnf"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
)

// compiler makes rules of a Spec.
type compiler struct {
	ctx        context.Context
	vocabulary *match.Vocabulary
	limits     Limits
	fronts     map[Kind]front
	b          *rules.Builder
	notes      []Note
	schemas    map[schemaKey]rules.Symbol // that were read: forms of calls have each more than once
	at         Kind                       // that is read, for faults

	bytes, parts int // that were counted
}

// front reads what a kind of Spec has for a text.
type front func(*compiler, *Spec) (rules.Symbol, error)

func fronts() map[Kind]front {
	return map[Kind]front{
		Schema: (*compiler).schema, Regex: (*compiler).regex, Choice: (*compiler).choice, GBNF: (*compiler).gbnf, Lark: (*compiler).lark,
		Literal: (*compiler).literal, Control: (*compiler).control, Free: (*compiler).free,
	}
}

// measure holds a Spec to its limits before it is read.
func (c *compiler) measure(s *Spec, depth int) error {
	tooLarge := func(what string, limit int) error { return &Error{s.Kind, s.Name, &TooLarge{what, limit}} }
	c.parts += 1 + len(s.Words)
	c.bytes += len(s.Text) + len(s.Not)
	for _, w := range s.Words {
		c.bytes += len(w)
	}
	switch {
	case depth > c.limits.Depth:
		return tooLarge("levels of parts", c.limits.Depth)
	case c.parts > c.limits.Parts:
		return tooLarge("parts", c.limits.Parts)
	case c.bytes > c.limits.Bytes:
		return tooLarge("bytes", c.limits.Bytes)
	}
	for i := range s.Parts {
		if err := c.measure(&s.Parts[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// part adds a Spec; name is that of the nearest part with one.
func (c *compiler) part(s *Spec, name string) (rules.Symbol, error) {
	if s.Name != "" {
		name = s.Name
	}
	if err := c.ctx.Err(); err != nil {
		return rules.Nothing, err
	}
	c.at = s.Kind
	if read := c.fronts[s.Kind]; read != nil {
		symbol, err := read(c, s)
		if err == nil {
			err = c.large()
		}
		if err != nil {
			return rules.Nothing, &Error{s.Kind, name, err}
		}
		return symbol, nil
	}
	if s.Kind == Repeat && (len(s.Parts) != 1 || s.Min < 0 || s.Max < s.Min && s.Max != Unbounded) {
		return rules.Nothing, &Error{s.Kind, name, fmt.Errorf("has %d parts, from %d to %d times (want one part, and a least number that is no more than the most)", len(s.Parts), s.Min, s.Max)}
	}
	symbols := make([]rules.Symbol, len(s.Parts))
	for i := range s.Parts {
		var err error
		if symbols[i], err = c.part(&s.Parts[i], name); err != nil {
			return rules.Nothing, err
		}
	}
	switch s.Kind {
	case Sequence:
		return c.b.Sequence(symbols...), nil
	case Either:
		return c.b.Either(symbols...), nil
	case Repeat:
		return c.b.Repeat(symbols[0], rules.Empty, s.Min, s.Max), nil
	}
	return rules.Nothing, &Error{s.Kind, name, errors.New("no such kind of form is known")}
}

// large holds what was made to its limits.
func (c *compiler) large() error {
	switch {
	case c.b.Size() > c.limits.Symbols:
		return &TooLarge{"rules", c.limits.Symbols}
	case c.b.Regexes.Size() > c.limits.Expressions:
		return &TooLarge{"regular expressions", c.limits.Expressions}
	}
	return nil
}

// schemaKey is all that matters of a Schema.
type schemaKey struct {
	text, name string
	notation   Notation
	loose      bool
}

func (c *compiler) schema(s *Spec) (rules.Symbol, error) {
	k := schemaKey{s.Text, s.Name, s.Notation, s.Loose}
	if known, ok := c.schemas[k]; ok {
		return known, nil
	}
	symbol, err := c.newSchema(s)
	if err == nil {
		c.schemas[k] = symbol
	}
	return symbol, err
}

func (c *compiler) newSchema(s *Spec) (rules.Symbol, error) {
	switch s.Notation {
	case "", Compact, Spaced, Flexible, QwenXML, MiniMax, Gemma:
	default:
		return rules.Nothing, fmt.Errorf("the notation %q is not known", s.Notation)
	}
	o := schema.Options{Notation: s.Notation, Mark: c.vocabulary.Spell, Limits: c.limits.Schema}
	symbol, err := schema.Add(c.b, []byte(s.Text), o)
	if err == nil {
		for _, unread := range schema.FindUnread([]byte(s.Text), o.Limits) {
			c.notes = append(c.notes, Note{s.Name, unread})
		}
	}
	if _, unsupported := errors.AsType[*schema.Unsupported](err); !s.Loose || !unsupported {
		return symbol, err
	}
	c.notes = append(c.notes, Note{s.Name, err})
	return schema.Add(c.b, []byte(`{"type":"object"}`), o)
}

func (c *compiler) regex(s *Spec) (rules.Symbol, error) {
	r, err := c.b.Regexes.Parse(s.Text, regex.Syntax{Anchored: true})
	if err != nil {
		return rules.Nothing, err
	}
	if alive, err := c.b.Regexes.Alive(r); err != nil || !alive {
		return rules.Nothing, cmp.Or(err, match.ErrNothing)
	}
	return c.b.Match(r), nil
}

func (c *compiler) choice(s *Spec) (rules.Symbol, error) {
	if len(s.Words) == 0 {
		return rules.Nothing, errors.New("there is nothing to choose from (give at least one text)")
	}
	words := make([]regex.Ref, len(s.Words))
	for i, w := range s.Words {
		if !utf8.ValidString(w) {
			return rules.Nothing, fmt.Errorf("text %d is no valid UTF-8", i)
		}
		words[i] = c.b.Regexes.Literal(w)
	}
	return c.b.Match(c.b.Regexes.Or(words...)), nil
}

func (c *compiler) gbnf(s *Spec) (rules.Symbol, error) { return ebnf.GBNF(c.b, s.Text) }

func (c *compiler) lark(s *Spec) (rules.Symbol, error) { return ebnf.Lark(c.b, s.Text) }

func (c *compiler) literal(s *Spec) (rules.Symbol, error) {
	if !utf8.ValidString(s.Text) {
		return rules.Nothing, errors.New("the text is no valid UTF-8")
	}
	return c.b.Literal(s.Text), nil
}

func (c *compiler) control(s *Spec) (rules.Symbol, error) {
	if err := checkMark(s.Text); err != nil {
		return rules.Nothing, err
	}
	return c.b.Literal(c.vocabulary.Spell(s.Text)), nil
}

func checkMark(text string) error {
	switch {
	case text == "":
		return errors.New("a mark has no text")
	case !utf8.ValidString(text):
		return errors.New("the text is no valid UTF-8")
	}
	return nil
}

func (c *compiler) free(s *Spec) (rules.Symbol, error) {
	set := c.b.Regexes
	control := set.Concat(set.Bytes(match.ControlBegin, match.ControlBegin), set.Repeat(set.Bytes(0, match.ControlEnd-1), 1, Unbounded), set.Bytes(match.ControlEnd, match.ControlEnd))
	text := set.Repeat(set.Or(set.NotRunes(), control), 0, Unbounded)
	if len(s.Words) > 0 {
		words := make([]string, len(s.Words))
		for i, w := range s.Words {
			if err := checkMark(w); err != nil {
				return rules.Nothing, err
			}
			words[i] = c.vocabulary.Spell(w)
		}
		text = set.And(text, set.Without(words...))
	}
	if s.Not != "" {
		begin, err := set.Parse(s.Not, regex.Syntax{Anchored: true})
		if err != nil {
			return rules.Nothing, err
		}
		text = set.And(text, set.Not(set.Concat(begin, set.Repeat(set.Bytes(0, 255), 0, Unbounded))))
	}
	return c.b.Match(text), nil
}
