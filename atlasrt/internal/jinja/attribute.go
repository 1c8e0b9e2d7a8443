package jinja

import (
	"strings"
	"unicode/utf8"
)

// attribute is object.id as the sandbox does it: a method or attribute first, then the entry of a dictionary.
func (r *run) attribute(object Value, id Str) (Value, error) {
	if u, ok := object.(*undefined); ok {
		return nil, u.failure()
	}
	v, err := r.member(object, id.text)
	if v != nil || err != nil {
		return v, err
	}
	if d, ok := object.(*Dict); ok {
		if v, ok := d.Get(id.text); ok {
			return v, nil
		}
	}
	return &undefined{object: object, name: id}, nil
}

// item is object[key]: the element first, then the attribute.
func (r *run) item(object, key Value) (Value, error) {
	r.chargeText(object)
	r.chargeText(key)
	switch o := object.(type) {
	case *undefined:
		return nil, o.failure()
	case *Dict:
		if v, ok, _ := o.lookup(key); ok {
			return v, nil
		}
	case *List:
		if v := at(o.items, key); v != nil {
			return v, nil
		}
	case *Tuple:
		if v := at(o.items, key); v != nil {
			return v, nil
		}
	case *rangeValue:
		if i, ok := smallOf(key); ok {
			if n := int64(o.length()); i >= -n && i < n {
				return Int(o.start + int((i+n)%n)*o.step), nil
			}
		}
	case Str:
		if i, ok := smallOf(key); ok {
			if c, ok := characterAt(o, i); ok {
				return c, nil
			}
		}
	}
	if id, ok := key.(Str); ok {
		if v, err := r.member(object, id.text); v != nil || err != nil {
			return v, err
		}
	}
	return &undefined{object: object, name: key}, nil
}

// at is items[key], nil where there is none.
func at(items []Value, key Value) Value {
	i, ok := smallOf(key)
	if i < 0 {
		i += int64(len(items))
	}
	if !ok || i < 0 || i >= int64(len(items)) {
		return nil
	}
	return items[i]
}

func characterAt(s Str, i int64) (Str, bool) {
	size := int64(len(s.text))
	if !isASCII(s.text) {
		size = int64(utf8.RuneCountInString(s.text))
	}
	if i < 0 {
		i += size
	}
	if i < 0 || i >= size {
		return Str{}, false
	}
	start := byteOffset(s.text, int(i), int(size))
	_, width := utf8.DecodeRuneInString(s.text[start:])
	return s.slice(start, start+width), true
}

// byteOffset is the position in bytes of the character at index, of size characters in all.
func byteOffset(s string, index, size int) int {
	if size == len(s) {
		return index
	}
	if index == size {
		return len(s)
	}
	for offset := range s {
		if index == 0 {
			return offset
		}
		index--
	}
	return len(s)
}

// mutators are the methods that the immutable sandbox refuses.
func mutates(object Value, id string) bool {
	switch object.(type) {
	case *Dict:
		return strings.Contains(" clear pop popitem setdefault update ", " "+id+" ")
	case *List:
		return strings.Contains(" append clear pop reverse insert sort extend remove ", " "+id+" ")
	}
	return false
}

// member is a method or attribute of a value, nil where it has none of this name.
func (r *run) member(object Value, id string) (Value, error) {
	if strings.HasPrefix(id, "__") && isObjectAttribute(id) || mutates(object, id) {
		return &undefined{hint: "access to attribute " + quote(id) + " of " + quote(object.typeName()) + " object is unsafe."}, nil
	}
	if unavailable(object, id) {
		return nil, failf("attribute %s of %s is not available in chat templates", quote(id), object.typeName())
	}
	switch o := object.(type) {
	case Str:
		if m := textMethod(id); m != nil {
			return &method{o, id, func(r *run, a args) (Value, error) {
				r.chargeText(o)
				return m(r, o, a)
			}}, nil
		}
	case *Dict:
		if m := dictMethod(id); m != nil {
			return &method{o, id, func(r *run, a args) (Value, error) { return m(r, o, a) }}, nil
		}
	case *List, *Tuple:
		if m := sequenceMethod(object, id); m != nil {
			return &method{o, id, m}, nil
		}
	case *namespace:
		v, _ := o.attributes.Get(id)
		return v, nil
	case *loopContext:
		v, _, err := o.attribute(id)
		return v, err
	}
	return nil, nil
}

// unavailable says whether Python has an attribute that is missing here, so that undefined would be wrong.
func unavailable(object Value, id string) bool {
	switch object.(type) {
	case *macro:
		return strings.Contains(" name arguments caller catch_kwargs catch_varargs ", " "+id+" ")
	case Bool, Int, *Big, Float:
		return strings.Contains(" real imag numerator denominator is_integer ", " "+id+" ")
	case Str:
		return strings.Contains(" casefold center encode expandtabs format_map isidentifier isprintable istitle maketrans swapcase translate ", " "+id+" ")
	}
	return false
}

// isObjectAttribute says whether every Python object has the attribute, so that reading it is unsafe and not undefined.
func isObjectAttribute(id string) bool {
	return strings.Contains(" __class__ __doc__ __init__ __new__ __dir__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __repr__ __str__ "+
		"__format__ __getattribute__ __setattr__ __delattr__ __reduce__ __reduce_ex__ __sizeof__ __subclasshook__ __init_subclass__ ", " "+id+" ")
}

// sliceOf is object[start:stop:step].
func (r *run) sliceOf(object Value, bounds [3]Value) (Value, error) {
	if u, ok := object.(*undefined); ok {
		return nil, u.failure()
	}
	size, _ := length(object)
	r.chargeText(object)
	switch o := object.(type) {
	case Str:
		start, _, step, count, err := sliceBounds(bounds, size)
		if err != nil {
			return nil, err
		}
		return r.sliceText(o, size, start, step, count)
	case *List:
		items, err := r.sliceItems(o.items, bounds)
		return &List{items}, err
	case *Tuple:
		items, err := r.sliceItems(o.items, bounds)
		return &Tuple{items: items}, err
	case *rangeValue:
		start, stop, step, _, err := sliceBounds(bounds, size)
		return &rangeValue{o.start + start*o.step, o.start + stop*o.step, o.step * step}, err
	case *Dict:
		return nil, failf("unhashable type: 'slice'")
	}
	return nil, failf("'%s' object is not subscriptable", object.typeName())
}

func (r *run) sliceItems(items []Value, bounds [3]Value) ([]Value, error) {
	start, _, step, count, err := sliceBounds(bounds, len(items))
	if err != nil {
		return nil, err
	}
	if err := r.spend(count); err != nil {
		return nil, err
	}
	if step == 1 {
		return items[start : start+count : start+count], nil
	}
	out := make([]Value, count)
	for i := range out {
		out[i] = items[start+i*step]
	}
	return out, nil
}

func (r *run) sliceText(s Str, size, start, step, count int) (Value, error) {
	if step == 1 {
		from := byteOffset(s.text, start, size)
		to := from + byteOffset(s.text[from:], count, size-start)
		return s.slice(from, to), nil
	}
	b := textBuilder{run: r}
	if err := r.spend(size + count); err != nil {
		return nil, err
	}
	offsets := make([]int, 0, size+1)
	for i := range s.text {
		offsets = append(offsets, i)
	}
	offsets = append(offsets, len(s.text))
	for i := range count {
		at := start + i*step
		b.add(s.slice(offsets[at], offsets[at+1]))
	}
	out := b.str()
	out.markup = s.markup
	return out, r.over
}

// sliceBounds resolves the bounds of a slice of size elements; count elements are taken.
func sliceBounds(bounds [3]Value, size int) (start, stop, step, count int, err error) {
	index := func(v Value, absent int) (int, error) {
		switch n := v.(type) {
		case nil, None:
			return absent, nil
		case *Big:
			if n.n.Sign() < 0 {
				return -size - 1, nil
			}
			return size + 1, nil
		}
		n, ok := smallOf(v)
		if !ok {
			return 0, failf("slice indices must be integers or None or have an __index__ method")
		}
		return int(max(min(n, 1<<40), -1<<40)), nil
	}
	if step, err = index(bounds[2], 1); err != nil {
		return
	}
	if step == 0 {
		return 0, 0, 0, 0, failf("slice step cannot be zero")
	}
	low, high := 0, size
	if step < 0 {
		low, high = -1, size-1
	}
	first, last := low, high
	if step < 0 {
		first, last = high, low
	}
	clamp := func(v Value, absent int) (int, error) {
		n, err := index(v, absent)
		if _, none := v.(None); v == nil || none || err != nil {
			return absent, err
		}
		if n < 0 {
			n += size
		}
		return max(low, min(n, high)), nil
	}
	if start, err = clamp(bounds[0], first); err != nil {
		return
	}
	if stop, err = clamp(bounds[1], last); err != nil {
		return
	}
	if step > 0 && start < stop {
		count = (stop-start-1)/step + 1
	} else if step < 0 && start > stop {
		count = (start-stop-1)/-step + 1
	}
	if count == 0 {
		start = max(min(start, size), 0)
	}
	return
}
