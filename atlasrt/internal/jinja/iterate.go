package jinja

import "unicode/utf8"

// iterator yields values one by one; more is false at the end.
type iterator interface {
	next() (v Value, more bool, err error)
}

// generator is an iterator as a value: it can be read once.
type generator struct {
	run    *run
	kind   string // Python's name of the type
	source iterator
}

func (g *generator) typeName() string { return g.kind }

// next counts as a call, for generators read from generators.
func (g *generator) next() (Value, bool, error) {
	leave, err := g.run.enter()
	if err != nil {
		return nil, false, err
	}
	defer leave()
	return g.source.next()
}

// pull is an iterator made of a function.
type pull func() (Value, bool, error)

func (p pull) next() (Value, bool, error) { return p() }

func (r *run) lazy(next func() (Value, bool, error)) *generator {
	return &generator{r, "generator", pull(next)}
}

type sliceIterator struct {
	run   *run
	items []Value
	pos   int
}

func (it *sliceIterator) next() (Value, bool, error) {
	if it.pos == len(it.items) {
		return nil, false, nil
	}
	it.pos++
	return it.items[it.pos-1], true, nil
}

// textIterator yields the characters of a string.
type textIterator struct {
	rest Str
}

func (it *textIterator) next() (Value, bool, error) {
	if it.rest.text == "" {
		return nil, false, nil
	}
	_, size := utf8.DecodeRuneInString(it.rest.text)
	c := it.rest.slice(0, size)
	c.markup = false
	it.rest = it.rest.slice(size, len(it.rest.text))
	return c, true, nil
}

// iterate is Python's iter(v).
func (r *run) iterate(v Value) (iterator, error) {
	switch v := v.(type) {
	case *List:
		return &sliceIterator{run: r, items: v.items}, nil
	case *Tuple:
		return &sliceIterator{run: r, items: v.items}, nil
	case Str:
		return &textIterator{v}, nil
	case *Dict:
		return (&dictView{v, "dict_keys"}).iterator(), nil
	case *dictView:
		return v.iterator(), nil
	case *rangeValue:
		return v.iterator(), nil
	case *generator:
		return v, nil
	case *undefined:
		return &sliceIterator{run: r}, nil
	case *loopContext:
		return pull(func() (Value, bool, error) {
			item, more, err := v.advance()
			return &Tuple{items: []Value{item, v}}, more, err
		}), nil
	}
	return nil, failf("'%s' object is not iterable", v.typeName())
}

// collect is Python's list(v), its own copy.
func (r *run) collect(v Value) ([]Value, error) {
	if items, ok := sequence(v); ok {
		return append([]Value(nil), items...), r.spend(len(items))
	}
	it, err := r.iterate(v)
	if err != nil {
		return nil, err
	}
	return r.collectFrom(it)
}

func (r *run) collectFrom(it iterator) ([]Value, error) {
	var items []Value
	for {
		item, more, err := it.next()
		if err != nil || !more {
			return items, err
		}
		if err := r.spend(1); err != nil {
			return nil, err
		}
		items = append(items, item)
	}
}

// dictView is the result of dict.keys(), dict.values() or dict.items().
type dictView struct {
	dict *Dict
	kind string
}

func (v *dictView) typeName() string { return v.kind }

func (v *dictView) at(i int) Value {
	e := v.dict.entries[i]
	switch v.kind {
	case "dict_keys":
		return e.key
	case "dict_values":
		return e.value
	}
	return &Tuple{items: []Value{e.key, e.value}}
}

func (v *dictView) iterator() iterator {
	i := -1
	return pull(func() (Value, bool, error) {
		i++
		if i >= len(v.dict.entries) {
			return nil, false, nil
		}
		return v.at(i), true, nil
	})
}

// rangeValue is the result of range().
type rangeValue struct{ start, stop, step int }

func (*rangeValue) typeName() string { return "range" }

func (v *rangeValue) length() int {
	switch {
	case v.step > 0 && v.start < v.stop:
		return int((uint64(v.stop)-uint64(v.start)-1)/uint64(v.step)) + 1
	case v.step < 0 && v.start > v.stop:
		return int((uint64(v.start)-uint64(v.stop)-1)/(-uint64(v.step))) + 1
	}
	return 0
}

func (v *rangeValue) iterator() iterator {
	i, size := 0, v.length()
	return pull(func() (Value, bool, error) {
		if i >= size {
			return nil, false, nil
		}
		i++
		return Int(v.start + (i-1)*v.step), true, nil
	})
}

// reversed is Python's reversed(v).
func (r *run) reversed(v Value) (*generator, bool) {
	var size int
	var at func(int) Value
	kind := "reversed"
	switch v := v.(type) {
	case *List:
		size, at, kind = len(v.items), func(i int) Value { return v.items[i] }, "list_reverseiterator"
	case *Tuple:
		size, at = len(v.items), func(i int) Value { return v.items[i] }
	case *Dict:
		size, at, kind = v.Len(), func(i int) Value { return v.entries[i].key }, "dict_reversekeyiterator"
	case *dictView:
		size, at, kind = v.dict.Len(), v.at, "dict_reverseitemiterator"
	case *rangeValue:
		size, at, kind = v.length(), func(i int) Value { return Int(v.start + i*v.step) }, "range_iterator"
	default:
		return nil, false
	}
	return &generator{r, kind, pull(func() (Value, bool, error) {
		size--
		if size < 0 {
			return nil, false, nil
		}
		return at(size), true, nil
	})}, true
}
