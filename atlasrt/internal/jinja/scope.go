package jinja

import (
	"fmt"
	"sort"
)

// place is where a variable lives: the slot of an activation, up function levels outside the current one.
type place struct{ up, slot int }

// function is the part of a template that runs with slots of its own: the whole template, a macro, or a generation
// block.
type function struct {
	parent *function
	slots  map[slotKey]int
}

type slotKey struct {
	level int
	id    string
}

// slot is the number of the variable id of a scope level; scopes of one level share it, since they never run at once.
func (f *function) slot(level int, id string) int {
	key := slotKey{level, id}
	n, ok := f.slots[key]
	if !ok {
		n = len(f.slots)
		f.slots[key] = n
	}
	return n
}

// source says what a variable holds when its scope is entered.
type source int

const (
	fromCaller  source = iota // a parameter or loop variable: the statement sets it
	fromContext               // the variable of the render
	fromOuter                 // the variable of an outer scope
	fromNothing               // undefined until set
)

// cell is a variable of a scope: the function that owns it and its slot there.
type cell struct {
	owner *function
	slot  int
}

type load struct {
	source source
	id     string
	outer  cell
}

// scope holds the variables of a block while it is analysed. The rules are Jinja's own: a variable that a scope writes is local
// to the scope and starts as a copy of the outer one, so what a loop body sets is gone in the next round.
type scope struct {
	base   *scope // the scope that this one is a branch of, nil for a scope of its own
	parent *scope
	owner  *function
	level  int
	refs   map[string]cell
	loads  map[cell]load
	stores map[string]bool

	entry []entryLoad // filled by seal
}

// entryLoad sets one variable when the scope is entered.
type entryLoad struct {
	slot    int
	source  source
	outer   place
	context int
}

func newScope(parent *scope, owner *function) *scope {
	s := &scope{parent: parent, owner: owner}
	if parent != nil {
		s.level = parent.level + 1
	}
	return s
}

// inner is a scope within s, in the same function.
func (s *scope) inner() *scope { return newScope(s, s.owner) }

// innerFunction is a scope within s that runs as a function of its own.
func (s *scope) innerFunction() *scope {
	return newScope(s, &function{parent: s.owner, slots: map[slotKey]int{}})
}

func (s *scope) find(id string) (cell, bool) {
	for ; s != nil; s = s.parent {
		if c, ok := s.own(id); ok {
			return c, true
		}
	}
	return cell{}, false
}

// own is the variable of the scope itself, or of the scope that it is a branch of.
func (s *scope) own(id string) (cell, bool) {
	for ; s != nil; s = s.base {
		if c, ok := s.refs[id]; ok {
			return c, true
		}
	}
	return cell{}, false
}

func (s *scope) writes(id string) bool {
	for ; s != nil; s = s.base {
		if s.stores[id] {
			return true
		}
	}
	return false
}

func (s *scope) define(id string, l load) cell {
	c := cell{s.owner, s.owner.slot(s.level, id)}
	s.setRef(id, c)
	s.setLoad(c, l)
	return c
}

func (s *scope) setRef(id string, c cell) {
	if s.refs == nil {
		s.refs = map[string]cell{}
	}
	s.refs[id] = c
}

func (s *scope) setLoad(c cell, l load) {
	if s.loads == nil {
		s.loads = map[cell]load{}
	}
	s.loads[c] = l
}

func (s *scope) setStore(id string) {
	if s.stores == nil {
		s.stores = map[string]bool{}
	}
	s.stores[id] = true
}

func (s *scope) parameter(id string) {
	s.setStore(id)
	s.define(id, load{source: fromCaller})
}

func (s *scope) load(id string) {
	if _, ok := s.find(id); !ok {
		s.define(id, load{source: fromContext, id: id})
	}
}

func (s *scope) store(id string) {
	s.setStore(id)
	if _, ok := s.own(id); ok {
		return
	}
	if s.parent != nil {
		if outer, ok := s.parent.find(id); ok {
			s.define(id, load{source: fromOuter, outer: outer})
			return
		}
	}
	s.define(id, load{source: fromNothing})
}

// fork is a branch of an if in s: what it declares stays its own until join.
func (s *scope) fork() *scope {
	return &scope{base: s, parent: s.parent, owner: s.owner, level: s.level}
}

// join takes in the branches of an if. What any branch first wrote may be unset after it, and then is the outer variable.
func (s *scope) join(branches []*scope) {
	var written []string
	for _, b := range branches {
		for id := range b.stores {
			if !s.writes(id) {
				written = append(written, id)
			}
		}
	}
	for _, b := range branches {
		for id, c := range b.refs {
			s.setRef(id, c)
		}
		for c, l := range b.loads {
			s.setLoad(c, l)
		}
		for id := range b.stores {
			s.setStore(id)
		}
	}
	for _, id := range written {
		c, _ := s.find(id)
		l := load{source: fromContext, id: id}
		if s.parent != nil {
			if outer, ok := s.parent.find(id); ok {
				l = load{source: fromOuter, outer: outer}
			}
		}
		s.setLoad(c, l)
	}
}

// place is where the scope finds a variable that it declared.
func (s *scope) place(id string) place {
	c, ok := s.find(id)
	if !ok {
		panic(fmt.Sprintf("BUG: variable %q was bound before it was declared", id))
	}
	return s.placeOf(c)
}

func (s *scope) placeOf(c cell) place {
	up := 0
	for f := s.owner; f != c.owner; f = f.parent {
		up++
	}
	return place{up, c.slot}
}

// binder gives names their places.
type binder struct {
	scope    *scope
	template *Template
	soft     bool // directly within an if, where an unknown filter fails only when it runs
}

func (b binder) in(s *scope) binder { return binder{scope: s, template: b.template} }

// seal ends the analysis of a scope and fills its entry.
func (b binder) seal() {
	s := b.scope
	s.entry = s.entry[:0]
	for c, l := range s.loads {
		e := entryLoad{slot: c.slot, source: l.source}
		switch l.source {
		case fromCaller:
			continue
		case fromContext:
			e.context = b.template.contextIndex(l.id)
		case fromOuter:
			e.outer = s.placeOf(l.outer)
		}
		s.entry = append(s.entry, e)
	}
	sort.Slice(s.entry, func(i, j int) bool { return s.entry[i].slot < s.entry[j].slot })
}

// declare records the names that an expression reads.
func (s *scope) declare(e expr) {
	if e == nil {
		return
	}
	if n, ok := e.(*name); ok {
		s.load(n.id)
		return
	}
	e.children(s.declare)
}

// declareTarget records the names that an assignment writes.
func (s *scope) declareTarget(e expr, parameter bool) {
	switch e := e.(type) {
	case *name:
		if parameter {
			s.parameter(e.id)
		} else {
			s.store(e.id)
		}
	case *attributeRef:
		s.load(e.object.id)
	case *tupleExpr:
		for _, item := range e.items {
			s.declareTarget(item, parameter)
		}
	}
}

func (s *scope) declareBody(body []stmt) {
	for _, st := range body {
		st.declare(s)
	}
}

// expr binds the names and filters of an expression.
func (b binder) expr(e expr) error {
	switch e := e.(type) {
	case nil:
		return nil
	case *name:
		e.place = b.scope.place(e.id)
		return nil
	case *filterExpr:
		var known bool
		if e.filter, known = filterNamed(e.id); !known && !b.soft {
			return &Error{Kind: Syntax, Line: e.line, Message: "No filter named " + quote(e.id) + "."}
		}
	case *testExpr:
		var known bool
		if e.test, known = testNamed(e.id); !known && !b.soft {
			return &Error{Kind: Syntax, Line: e.line, Message: "No test named " + quote(e.id) + "."}
		}
	case *conditional:
		b.soft = true
	}
	var err error
	e.children(func(c expr) {
		if err == nil {
			err = b.expr(c)
		}
	})
	return err
}

func (b binder) body(body []stmt) error {
	for _, st := range body {
		if err := st.bind(b); err != nil {
			return err
		}
	}
	return nil
}
