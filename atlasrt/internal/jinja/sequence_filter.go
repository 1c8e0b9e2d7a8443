package jinja

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// sequenceFilter is a filter of sequences and mappings, nil where there is none of this name.
func sequenceFilter(id string) filter {
	switch id {
	case "list":
		return func(r *run, v Value, a args) (Value, error) {
			if _, err := a.bind(id, 0); err != nil {
				return nil, err
			}
			items, err := r.collect(v)
			return &List{items}, err
		}
	case "first":
		return firstFilter
	case "last":
		return lastFilter
	case "join":
		return joinFilter
	case "map":
		return mapFilter
	case "select", "reject", "selectattr", "rejectattr":
		return func(r *run, v Value, a args) (Value, error) { return selectFilter(r, id, v, a) }
	case "sort":
		return sortFilter
	case "dictsort":
		return dictSortFilter
	case "unique":
		return uniqueFilter
	case "min", "max":
		return func(r *run, v Value, a args) (Value, error) { return extremeFilter(r, id, v, a) }
	case "sum":
		return sumFilter
	case "reverse":
		return reverseFilter
	}
	return nil
}

func firstFilter(r *run, v Value, a args) (Value, error) {
	if _, err := a.bind("first", 0); err != nil {
		return nil, err
	}
	it, err := r.iterate(v)
	if err != nil {
		return nil, err
	}
	item, more, err := it.next()
	if !more && err == nil {
		return &undefined{hint: "No first item, sequence was empty."}, nil
	}
	return item, err
}

func lastFilter(r *run, v Value, a args) (Value, error) {
	if _, err := a.bind("last", 0); err != nil {
		return nil, err
	}
	if s, ok := v.(Str); ok && s.text != "" {
		_, size := utf8.DecodeLastRuneInString(s.text)
		return s.slice(len(s.text)-size, len(s.text)), nil
	}
	if g, ok := r.reversed(v); ok {
		if item, more, err := g.next(); more || err != nil {
			return item, err
		}
	} else if _, ok := length(v); !ok {
		return nil, failf("'%s' object is not reversible", v.typeName())
	}
	return &undefined{hint: "No last item, sequence was empty."}, nil
}

func joinFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("join", 0, "d", "attribute")
	if err != nil {
		return nil, err
	}
	separator := Str{}
	if values[0] != nil {
		if separator, err = r.str(values[0]); err != nil {
			return nil, err
		}
	}
	items, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	if _, none := values[1].(None); values[1] != nil && !none {
		get := r.getter(values[1], nil)
		for i := range items {
			if items[i], err = get(items[i]); err != nil {
				return nil, err
			}
		}
	}
	return r.joinAll(separator, items)
}

// getter reads an attribute path such as "function.name" or "0.id"; undefined parts become absent where that is given.
func (r *run) getter(path, absent Value) func(Value) (Value, error) {
	var keys []Value
	switch p := path.(type) {
	case nil, None:
	case Str:
		for _, part := range strings.Split(p.text, ".") {
			if n, size := scanCount(part, 0); size == len(part) && size > 0 {
				keys = append(keys, Int(n))
			} else {
				keys = append(keys, Control(part))
			}
		}
	default:
		keys = append(keys, path)
	}
	return func(v Value) (Value, error) {
		var err error
		for _, key := range keys {
			if v, err = r.item(v, key); err != nil {
				return nil, err
			}
			if _, missing := v.(*undefined); missing && absent != nil {
				v = absent
			}
		}
		return v, r.spend(1)
	}
}

// folded lowers strings, so that comparisons ignore their case.
func (r *run) folded(v Value, caseSensitive bool) Value {
	if s, ok := v.(Str); ok && !caseSensitive {
		return recase(r, "lower", s)
	}
	return v
}

func mapFilter(r *run, v Value, a args) (Value, error) {
	var apply func(Value) (Value, error)
	prepare := func() error {
		path, ok := a.take("attribute")
		if len(a.positional) == 0 && ok {
			absent, _ := a.take("default")
			if _, none := absent.(None); none {
				absent = nil
			}
			if len(a.named) > 0 {
				return failf("Unexpected keyword argument %s", quote(a.named[0].id))
			}
			apply = r.getter(path, absent)
			return nil
		}
		if len(a.positional) == 0 {
			return failf("map requires a filter argument")
		}
		id, _ := a.positional[0].(Str)
		f, ok := filterNamed(id.text)
		if !ok {
			return failf("No filter named %s.", shortRepr(a.positional[0]))
		}
		rest := args{a.positional[1:], a.named}
		apply = func(item Value) (Value, error) { return f(r, item, rest) }
		return nil
	}
	return r.lazily(v, prepare, func(item Value) (Value, bool, error) {
		mapped, err := apply(item)
		return mapped, true, err
	}), nil
}

// lazily is a generator over v that calls prepare before the first element, and yields what keep lets pass.
func (r *run) lazily(v Value, prepare func() error, keep func(Value) (Value, bool, error)) *generator {
	var it iterator
	return r.lazy(func() (Value, bool, error) {
		if it == nil {
			if !truth(v) {
				return nil, false, nil
			}
			if err := prepare(); err != nil {
				return nil, false, err
			}
			var err error
			if it, err = r.iterate(v); err != nil {
				return nil, false, err
			}
		}
		for {
			item, more, err := it.next()
			if err != nil || !more {
				return nil, false, err
			}
			if err := r.spend(1); err != nil {
				return nil, false, err
			}
			kept, ok, err := keep(item)
			if ok || err != nil {
				return kept, ok, err
			}
		}
	})
}

func selectFilter(r *run, id string, v Value, a args) (Value, error) {
	wanted := strings.HasPrefix(id, "select")
	get := func(v Value) (Value, error) { return v, nil }
	test := func(v Value) (Value, error) { return v, nil }
	prepare := func() error {
		if strings.HasSuffix(id, "attr") {
			if len(a.positional) == 0 {
				return failf("Missing parameter for attribute name")
			}
			get = r.getter(a.positional[0], nil)
			a.positional = a.positional[1:]
		}
		if len(a.positional) == 0 {
			return nil
		}
		name, _ := a.positional[0].(Str)
		run, ok := testNamed(name.text)
		if !ok {
			return failf("No test named %s.", shortRepr(a.positional[0]))
		}
		rest := args{a.positional[1:], a.named}
		test = func(v Value) (Value, error) { return run(r, v, rest) }
		return nil
	}
	return r.lazily(v, prepare, func(item Value) (Value, bool, error) {
		v, err := get(item)
		if err != nil {
			return nil, false, err
		}
		holds, err := test(v)
		if err != nil {
			return nil, false, err
		}
		return item, truth(holds) == wanted, nil
	}), nil
}

// sortBy sorts items by their keys, keeping the order of equal ones.
func (r *run) sortBy(items, keys []Value, reverse bool) ([]Value, error) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	var failed error
	sort.SliceStable(order, func(i, j int) bool {
		if failed != nil {
			return false
		}
		a, b := keys[order[i]], keys[order[j]]
		if reverse {
			a, b = b, a
		}
		if failed = r.spend(1); failed != nil {
			return false
		}
		less, err := r.ordered("<", a, b, r.maxDepth)
		failed = err
		return less
	})
	if failed != nil {
		return nil, failed
	}
	sorted := make([]Value, len(items))
	for i, n := range order {
		sorted[i] = items[n]
	}
	return sorted, nil
}

func sortFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("sort", 0, "reverse", "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	items, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	paths := []Value{values[2]}
	if s, ok := values[2].(Str); ok {
		paths = nil
		for _, p := range strings.Split(s.text, ",") {
			paths = append(paths, Control(p))
		}
	}
	caseSensitive := values[1] != nil && truth(values[1])
	keys := make([]Value, len(items))
	for i, item := range items {
		key := &List{}
		for _, path := range paths {
			k, err := r.getter(path, nil)(item)
			if err != nil {
				return nil, err
			}
			key.items = append(key.items, r.folded(k, caseSensitive))
		}
		keys[i] = key
	}
	sorted, err := r.sortBy(items, keys, values[0] != nil && truth(values[0]))
	return &List{sorted}, err
}

func dictSortFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("dictsort", 0, "case_sensitive", "by", "reverse")
	if err != nil {
		return nil, err
	}
	by, err := textArgument(values[1], Control("key"))
	if err != nil || by.text != "key" && by.text != "value" {
		return nil, failf(`You can only sort by either "key" or "value"`)
	}
	d, ok := v.(*Dict)
	if !ok {
		if u, ok := v.(*undefined); ok {
			return nil, u.failure()
		}
		return nil, failf("'%s' object has no attribute 'items'", v.typeName())
	}
	if err := r.spend(d.Len()); err != nil {
		return nil, err
	}
	view := &dictView{d, "dict_items"}
	items, keys := make([]Value, d.Len()), make([]Value, d.Len())
	for i, e := range d.entries {
		items[i], keys[i] = view.at(i), e.key
		if by.text == "value" {
			keys[i] = e.value
		}
		keys[i] = r.folded(keys[i], values[0] != nil && truth(values[0]))
	}
	sorted, err := r.sortBy(items, keys, values[2] != nil && truth(values[2]))
	return &List{sorted}, err
}

func reverseFilter(r *run, v Value, a args) (Value, error) {
	if _, err := a.bind("reverse", 0); err != nil {
		return nil, err
	}
	if s, ok := v.(Str); ok {
		return r.sliceOf(s, [3]Value{nil, nil, Int(-1)})
	}
	if g, ok := r.reversed(v); ok {
		return g, nil
	}
	items, err := r.collect(v)
	if err != nil {
		return nil, failf("argument must be iterable")
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return &List{items}, nil
}
