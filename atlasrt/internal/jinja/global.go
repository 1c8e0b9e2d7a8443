package jinja

// global is a name that every template knows.
func global(id string) (Value, bool) {
	function := func(run func(r *run, a args) (Value, error)) (Value, bool) { return &method{nil, id, run}, true }
	switch id {
	case "range":
		return function(rangeFunction)
	case "dict":
		return function(func(r *run, a args) (Value, error) { return r.newDict("dict", a) })
	case "namespace":
		return function(func(r *run, a args) (Value, error) {
			d, err := r.newDict("namespace", a)
			return &namespace{d}, err
		})
	case "raise_exception":
		return function(func(r *run, a args) (Value, error) {
			values, err := a.bind(id, 1, "message")
			if err != nil {
				return nil, err
			}
			message, err := r.str(values[0])
			if err != nil {
				return nil, err
			}
			return nil, &Error{Kind: Raised, Message: message.text}
		})
	case "strftime_now":
		return function(func(r *run, a args) (Value, error) {
			values, err := a.bind(id, 1, "format")
			if err != nil {
				return nil, err
			}
			layout, err := textArgument(values[0], Str{})
			if err != nil {
				return nil, err
			}
			return r.strftime(layout), r.over
		})
	}
	return nil, false
}

// maxRange is the sandbox's bound on range().
const maxRange = 100_000

func rangeFunction(_ *run, a args) (Value, error) {
	if len(a.positional) == 0 || len(a.positional) > 3 || len(a.named) > 0 {
		return nil, failf("range expected at least 1 argument and at most 3, got %d", len(a.positional))
	}
	bounds := []int{0, 0, 1}
	for i, v := range a.positional {
		n, err := integerArgument(v, 0)
		if err != nil {
			return nil, err
		}
		bounds[i] = n
	}
	if len(a.positional) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	if bounds[2] == 0 {
		return nil, failf("range() arg 3 must not be zero")
	}
	v := &rangeValue{bounds[0], bounds[1], bounds[2]}
	if n := v.length(); n > maxRange || n < 0 {
		return nil, failf("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return v, nil
}

// newDict is Python's dict(mapping or pairs, **named).
func (r *run) newDict(function string, a args) (*Dict, error) {
	d := NewDict()
	if len(a.positional) > 1 {
		return nil, failf("%s expected at most 1 argument, got %d", function, len(a.positional))
	}
	if len(a.positional) == 1 {
		if source, ok := a.positional[0].(*Dict); ok {
			d = source.copy()
		} else if err := r.putPairs(d, a.positional[0]); err != nil {
			return nil, err
		}
	}
	for _, k := range a.named {
		if err := d.put(Control(k.id), k.value); err != nil {
			return nil, err
		}
	}
	return d, r.spend(d.Len())
}

func (r *run) putPairs(d *Dict, pairs Value) error {
	items, err := r.collect(pairs)
	if err != nil {
		return err
	}
	for i, item := range items {
		pair, err := r.collect(item)
		if err != nil {
			return failf("cannot convert dictionary update sequence element #%d to a sequence", i)
		}
		if len(pair) != 2 {
			return failf("dictionary update sequence element #%d has length %d; 2 is required", i, len(pair))
		}
		if err := d.put(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// namespace is the one value that a template can change.
type namespace struct{ attributes *Dict }

func (*namespace) typeName() string { return "Namespace" }
