// Package rules is a context-free grammar as data. Its terminals are regular expressions over bytes; a text belongs to the grammar where
// some way of cutting it into terminals does. There is no longest match: a terminal may end wherever its expression matches.
//
// Front ends (JSON schemas, EBNF, calls of tools) build it, and package match recognises it. Left and right recursion, empty rules and
// ambiguity are all allowed.
package rules

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// Symbol is a part of a text: a terminal, a rule or a repetition. The zero Symbol is Empty.
type Symbol int32

// Symbols that every grammar has.
const (
	Empty   Symbol = iota // the empty text
	Nothing               // no text at all
)

// Unbounded is a Max without a bound.
const Unbounded = -1

// Kind is what a symbol is.
type Kind uint8

// Kinds of symbols.
const (
	Terminal   Kind = iota // a text that Regex matches, which is never empty
	Rule                   // one of the Alternatives
	Repetition             // Part, from Min to Max times, with Separator between two of them
)

// Definition is what a symbol stands for.
type Definition struct {
	Kind         Kind       // which of the fields count
	Name         string     // of a rule, for errors; "" where it has none
	Regex        regex.Ref  // of a terminal, in the grammar's Set
	Alternatives [][]Symbol // of a rule: sequences
	Part         Symbol     // of a repetition; it never matches the empty text
	Separator    Symbol     // of a repetition; Empty where nothing stands between
	Min, Max     int        // of a repetition; Max may be Unbounded
}

// Grammar is a complete grammar.
type Grammar struct {
	Regexes *regex.Set   // that terminals are in
	Symbols []Definition // by Symbol
	Start   Symbol       // what a whole text is
}

// Builder makes a Grammar. Equal terminals are one symbol.
type Builder struct {
	Regexes   *regex.Set // that terminals are made in
	symbols   []Definition
	terminals map[regex.Ref]Symbol
}

// NewBuilder begins a grammar.
func NewBuilder() *Builder {
	return &Builder{
		Regexes:   regex.NewSet(),
		symbols:   []Definition{Empty: {Kind: Rule, Alternatives: [][]Symbol{{}}}, Nothing: {Kind: Rule}},
		terminals: map[regex.Ref]Symbol{},
	}
}

// Size is how many symbols there are: front ends hold it to a limit.
func (b *Builder) Size() int { return len(b.symbols) }

func (b *Builder) add(d Definition) Symbol {
	b.symbols = append(b.symbols, d)
	return Symbol(len(b.symbols) - 1)
}

// Match is a text that a regex matches, which may be empty.
func (b *Builder) Match(r regex.Ref) Symbol {
	if r == regex.Nothing {
		return Nothing
	}
	if r == regex.Empty {
		return Empty
	}
	if b.Regexes.Nullable(r) {
		return b.Either(b.Match(b.Regexes.NonEmpty(r)), Empty)
	}
	s, known := b.terminals[r]
	if !known {
		s = b.add(Definition{Kind: Terminal, Regex: r})
		b.terminals[r] = s
	}
	return s
}

// Literal is a text as it stands.
func (b *Builder) Literal(text string) Symbol { return b.Match(b.Regexes.Literal(text)) }

// Declare is a rule that Define says later, so that it can be part of itself.
func (b *Builder) Declare(name string) Symbol { return b.add(Definition{Kind: Rule, Name: name}) }

// Define says what a declared rule is: one of some symbols.
func (b *Builder) Define(rule Symbol, alternatives ...Symbol) {
	d := &b.symbols[rule]
	for _, a := range alternatives {
		if a != Nothing {
			d.Alternatives = append(d.Alternatives, []Symbol{a})
		}
	}
}

// Sequence is one symbol behind the other.
func (b *Builder) Sequence(parts ...Symbol) Symbol {
	if slices.Contains(parts, Nothing) {
		return Nothing
	}
	parts = slices.DeleteFunc(slices.Clone(parts), func(s Symbol) bool { return s == Empty })
	switch len(parts) {
	case 0:
		return Empty
	case 1:
		return parts[0]
	}
	return b.add(Definition{Kind: Rule, Alternatives: [][]Symbol{parts}})
}

// Either is one of some symbols.
func (b *Builder) Either(alternatives ...Symbol) Symbol {
	alternatives = slices.DeleteFunc(slices.Clone(alternatives), func(s Symbol) bool { return s == Nothing })
	slices.Sort(alternatives)
	alternatives = slices.Compact(alternatives)
	switch len(alternatives) {
	case 0:
		return Nothing
	case 1:
		return alternatives[0]
	}
	rule := b.Declare("")
	b.Define(rule, alternatives...)
	return rule
}

// Optional is a symbol or nothing.
func (b *Builder) Optional(s Symbol) Symbol { return b.Either(s, Empty) }

// Repeat is a part from least to most times, most may be Unbounded, with a separator between two of them. The part must not match the empty
// text.
func (b *Builder) Repeat(part, separator Symbol, least, most int) Symbol {
	switch {
	case most == 0 || part == Empty || part == Nothing && least == 0:
		return Empty
	case part == Nothing || most != Unbounded && most < least:
		return Nothing
	case least == 1 && most == 1:
		return part
	}
	return b.add(Definition{Kind: Repetition, Part: part, Separator: separator, Min: least, Max: most})
}

// Grammar ends the grammar of a start. It reports rules that were declared and never defined.
func (b *Builder) Grammar(start Symbol) (*Grammar, error) {
	for s, d := range b.symbols {
		if d.Kind == Rule && len(d.Alternatives) == 0 && d.Name != "" && Symbol(s) != Nothing {
			return nil, fmt.Errorf("rule %q is used and not defined", d.Name)
		}
	}
	return &Grammar{Regexes: b.Regexes, Symbols: b.symbols, Start: start}, nil
}
