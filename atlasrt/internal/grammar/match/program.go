package match

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// program is a grammar, prepared: what can stand in no text is gone, symbols that may be empty are known, and every place of a rule has a
// number. Symbols are numbered anew: terminals come first.
type program struct {
	terminals []regex.Ref // by symbol
	symbols   []symbol    // by symbol, less the number of terminals
	places    []place
	identity  func() uint64 // a number by which programs that are not equal are told apart
}

// symbol is a rule or a repetition.
type symbol struct {
	begins   []int32 // places where it may begin
	nullable bool
}

// place is a dot in a rule. In a repetition, a dot goes with the number of parts before it: the count.
type place struct {
	next   int32 // symbol that is waited for, or none
	then   int32 // place behind it
	adds   int32 // to the count, by what is waited for
	top    int32 // higher counts are as good as this one
	enough int32 // count from which the text may end here, if ends
	most   int32 // count at which nothing is waited for, or none
	ends   bool  // what comes behind the dot may be empty
	skips  bool  // what is waited for may be empty
}

const none = -1

// beyond is a count that no text reaches.
const beyond = math.MaxInt32 - 1

// firstPlace is the dot before the start symbol.
const firstPlace = 0

// compiler makes a program.
type compiler struct {
	source     *rules.Grammar
	productive []bool
	nullable   []bool
	number     []int32 // of a symbol in the program, or none
	order      []rules.Symbol
	program    *program
}

func compile(g *rules.Grammar) (*program, error) {
	c := &compiler{source: g, program: &program{}}
	if err := c.check(); err != nil {
		return nil, err
	}
	alive := make([]bool, len(g.Symbols))
	for s, d := range g.Symbols {
		if d.Kind != rules.Terminal {
			continue
		}
		if g.Regexes.Nullable(d.Regex) {
			return nil, fmt.Errorf("symbol %d of the grammar: a terminal matches the empty text (build it by Match)", s)
		}
		ok, err := g.Regexes.Alive(d.Regex)
		if err != nil {
			return nil, err
		}
		alive[s] = ok
	}
	c.productive = c.fixpoint(alive)
	c.nullable = c.fixpoint(make([]bool, len(g.Symbols)))
	if err := c.checkRepetitions(); err != nil {
		return nil, err
	}
	c.reach()
	c.place()
	c.program.identity = sync.OnceValue(c.program.identify)
	return c.program, nil
}

// check reports symbols that are out of range.
func (c *compiler) check() error {
	valid := func(s rules.Symbol) bool { return s >= 0 && int(s) < len(c.source.Symbols) }
	if !valid(c.source.Start) {
		return fmt.Errorf("the grammar starts with symbol %d and has %d", c.source.Start, len(c.source.Symbols))
	}
	for s, d := range c.source.Symbols {
		ok := true
		for _, a := range d.Alternatives {
			for _, part := range a {
				ok = ok && valid(part)
			}
		}
		if d.Kind == rules.Repetition {
			ok = ok && valid(d.Part) && valid(d.Separator) && d.Min >= 0 && (d.Max >= d.Min || d.Max == rules.Unbounded)
		}
		if !ok {
			return fmt.Errorf("symbol %d of the grammar has a part or a count that is out of range", s)
		}
	}
	return nil
}

// checkRepetitions refuses repetitions in which nothing may come any number of times.
func (c *compiler) checkRepetitions() error {
	for s, d := range c.source.Symbols {
		if d.Kind == rules.Repetition && d.Separator != rules.Empty && c.nullable[d.Part] && c.nullable[d.Separator] {
			return fmt.Errorf("symbol %d of the grammar: both the part of a repetition and its separator may be empty (leave the empty text out of one of them)", s)
		}
	}
	return nil
}

// forms are the sequences of symbols that a symbol may be, as far as it matters for what is reached at all: a repetition is as often as it
// must be.
func (c *compiler) forms(s rules.Symbol) [][]rules.Symbol {
	d := &c.source.Symbols[s]
	switch {
	case d.Kind == rules.Rule:
		return d.Alternatives
	case d.Kind == rules.Terminal:
		return nil
	case d.Min == 0:
		return [][]rules.Symbol{{}}
	case d.Min == 1:
		return [][]rules.Symbol{{d.Part}}
	}
	return [][]rules.Symbol{{d.Part, d.Separator}}
}

// fixpoint is the smallest set of symbols that has the given ones, and each symbol that has a form whose symbols are all in the set.
func (c *compiler) fixpoint(in []bool) []bool {
	type form struct {
		symbol  rules.Symbol
		missing int
	}
	var forms []form
	heads := make([]int32, len(in)+1) // of the forms in which a symbol is, in uses
	for s := range in {
		for _, f := range c.forms(rules.Symbol(s)) {
			for _, part := range f {
				heads[part+1]++
			}
		}
	}
	for i := range in {
		heads[i+1] += heads[i]
	}
	uses := make([]int32, heads[len(in)])
	fill := slices.Clone(heads)
	var todo []rules.Symbol
	add := func(s rules.Symbol) {
		if !in[s] {
			in[s] = true
			todo = append(todo, s)
		}
	}
	for s, is := range in {
		if is {
			todo = append(todo, rules.Symbol(s))
		}
	}
	for s := range in {
		for _, f := range c.forms(rules.Symbol(s)) {
			for _, part := range f {
				uses[fill[part]] = int32(len(forms))
				fill[part]++
			}
			forms = append(forms, form{rules.Symbol(s), len(f)})
			if len(f) == 0 {
				add(rules.Symbol(s))
			}
		}
	}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, use := range uses[heads[s]:heads[s+1]] {
			f := &forms[use]
			if f.missing--; f.missing == 0 {
				add(f.symbol)
			}
		}
	}
	return in
}

// counts are a repetition's bounds; most may be none.
func (c *compiler) counts(d *rules.Definition) (least, most int32) {
	least, most = int32(min(d.Min, beyond)), none
	if d.Max != rules.Unbounded {
		most = int32(min(d.Max, beyond))
	}
	switch {
	case !c.productive[d.Part]:
		most = 0
	case !c.productive[d.Separator] && most != 0:
		most = 1
	}
	if d.Separator == rules.Empty && c.nullable[d.Part] {
		least = 0 // empty parts make up for those that are missing
	}
	return least, most
}

// parts are the symbols that a symbol is made of, where they can be part of a text.
func (c *compiler) parts(s rules.Symbol, visit func(rules.Symbol)) {
	d := &c.source.Symbols[s]
	switch d.Kind {
	case rules.Rule:
		for _, a := range d.Alternatives {
			if c.possible(a) {
				for _, part := range a {
					visit(part)
				}
			}
		}
	case rules.Repetition:
		_, most := c.counts(d)
		if most != 0 {
			visit(d.Part)
		}
		if most != 0 && most != 1 {
			visit(d.Separator)
		}
	}
}

func (c *compiler) possible(sequence []rules.Symbol) bool {
	for _, s := range sequence {
		if !c.productive[s] {
			return false
		}
	}
	return true
}

// reach numbers the symbols that the start symbol leads to.
func (c *compiler) reach() {
	g := c.source
	c.number = make([]int32, len(g.Symbols))
	for i := range c.number {
		c.number[i] = none
	}
	var found []rules.Symbol
	visit := func(s rules.Symbol) {
		if c.number[s] == none {
			c.number[s] = 0
			found = append(found, s)
		}
	}
	if c.productive[g.Start] {
		visit(g.Start)
	}
	for i := 0; i < len(found); i++ {
		c.parts(found[i], visit)
	}
	for _, terminals := range []bool{true, false} {
		for _, s := range found {
			if (g.Symbols[s].Kind == rules.Terminal) == terminals {
				c.number[s] = int32(len(c.order))
				c.order = append(c.order, s)
			}
		}
	}
	for _, s := range c.order {
		if g.Symbols[s].Kind == rules.Terminal {
			c.program.terminals = append(c.program.terminals, g.Symbols[s].Regex)
		}
	}
}

// place makes the places of all symbols.
func (c *compiler) place() {
	p := c.program
	if c.productive[c.source.Start] {
		c.sequence([]rules.Symbol{c.source.Start})
	} else {
		p.places = append(p.places, place{next: none, most: none})
	}
	for _, s := range c.order[len(p.terminals):] {
		d := &c.source.Symbols[s]
		made := symbol{nullable: c.nullable[s]}
		if d.Kind == rules.Repetition {
			if least, most := c.counts(d); most != 0 {
				made.begins = []int32{c.repetition(d, least, most)}
				made.nullable = made.nullable || least == 0
			}
		} else {
			for _, a := range d.Alternatives {
				if len(a) > 0 && c.possible(a) {
					made.begins = append(made.begins, c.sequence(a))
				}
			}
		}
		p.symbols = append(p.symbols, made)
	}
}

// sequence makes the places of a sequence and returns the first.
func (c *compiler) sequence(parts []rules.Symbol) int32 {
	p := c.program
	first := int32(len(p.places))
	for _, s := range parts {
		here := int32(len(p.places))
		p.places = append(p.places, place{next: c.number[s], then: here + 1, most: none, skips: c.nullable[s]})
	}
	p.places = append(p.places, place{next: none, most: none, ends: true})
	for i := len(p.places) - 2; i >= int(first); i-- {
		p.places[i].ends = p.places[i].skips && p.places[i+1].ends
	}
	return first
}

// repetition makes the places of a repetition: before the first part, behind a part, and behind a separator. It returns the first.
func (c *compiler) repetition(d *rules.Definition, least, most int32) int32 {
	p := c.program
	begin := int32(len(p.places))
	behind, between := begin+1, begin+2
	part := place{next: c.number[d.Part], then: behind, adds: 1, top: least, most: most}
	if most != none {
		part.top = most
	}
	separator := part
	if d.Separator != rules.Empty {
		part.skips, part.ends, part.enough = c.nullable[d.Part], c.nullable[d.Part], max(least-1, 0)
		separator.next, separator.then, separator.adds = none, between, 0
		if most != 1 {
			separator.next, separator.skips = c.number[d.Separator], c.nullable[d.Separator]
		}
	}
	separator.ends, separator.enough = true, least
	p.places = append(p.places, part, separator, part)
	return begin
}

// item is a place that a text has reached in a symbol.
type item struct {
	place int32
	count int32
	caller
}

// caller is where a symbol was expected: what comes behind it goes on there.
type caller struct {
	row    *row // nil: behind the whole text
	symbol int32
}

// waits is the symbol that an item waits for, or none.
func (p *program) waits(i *item) int32 {
	at := &p.places[i.place]
	if at.most != none && i.count >= at.most {
		return none
	}
	return at.next
}

// advance is an item behind the symbol that it waits for.
func (p *program) advance(i *item) item {
	at := &p.places[i.place]
	return item{at.then, min(i.count+at.adds, at.top), i.caller}
}

// ends reports whether the item's symbol may end where it is.
func (p *program) ends(i *item) bool {
	at := &p.places[i.place]
	return at.ends && i.count >= at.enough
}
