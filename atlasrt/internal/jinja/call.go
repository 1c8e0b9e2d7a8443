package jinja

import "fmt"

// args are the evaluated arguments of a call.
type args struct {
	positional []Value
	named      []keyword
}

type keyword struct {
	id    string
	value Value
}

// filter is a filter or test: it gets the value before it and the arguments.
type filter func(r *run, v Value, a args) (Value, error)

// method is a function bound to an object, or a global function where the object is nil.
type method struct {
	object Value
	id     string
	run    func(r *run, a args) (Value, error)
}

func (m *method) typeName() string { return "builtin_function_or_method" }

// take removes a keyword argument and returns its value.
func (a *args) take(id string) (Value, bool) {
	for i, k := range a.named {
		if k.id == id {
			a.named = append(a.named[:i:i], a.named[i+1:]...)
			return k.value, true
		}
	}
	return nil, false
}

// bind puts the arguments in the order of the parameters, nil where one is not given.
func (a args) bind(function string, required int, parameters ...string) ([]Value, error) {
	if len(a.positional) > len(parameters) {
		return nil, failf("%s() takes at most %d argument(s) (%d given)", function, len(parameters), len(a.positional))
	}
	values := a.positional
	if len(values) < len(parameters) {
		values = make([]Value, len(parameters))
		copy(values, a.positional)
	}
	for _, k := range a.named {
		found := false
		for i, p := range parameters {
			if p != k.id {
				continue
			}
			if values[i] != nil {
				return nil, failf("%s() got multiple values for argument '%s'", function, p)
			}
			values[i], found = k.value, true
		}
		if !found {
			return nil, failf("%s() got an unexpected keyword argument '%s'", function, k.id)
		}
	}
	for i := range required {
		if values[i] == nil {
			return nil, failf("%s() missing required argument: '%s'", function, parameters[i])
		}
	}
	return values, nil
}

func (a *arguments) eval(r *run) (args, error) {
	var out args
	if len(a.positional) == 0 && len(a.named) == 0 && a.star == nil && a.starStar == nil {
		return out, nil
	}
	var err error
	if out.positional, err = evalAll(r, a.positional); err != nil {
		return out, err
	}
	if a.star != nil {
		v, err := a.star.eval(r)
		if err != nil {
			return out, err
		}
		items, err := r.collect(v)
		if err != nil {
			return out, failf("argument after * must be an iterable, not %s", v.typeName())
		}
		out.positional = append(out.positional, items...)
	}
	for i, e := range a.named {
		v, err := e.eval(r)
		if err != nil {
			return out, err
		}
		out.named = append(out.named, keyword{a.names[i], v})
	}
	if a.starStar != nil {
		v, err := a.starStar.eval(r)
		if err != nil {
			return out, err
		}
		d, ok := v.(*Dict)
		if !ok {
			return out, failf("argument after ** must be a mapping, not %s", v.typeName())
		}
		for _, e := range d.entries {
			key, ok := e.key.(Str)
			if !ok {
				return out, failf("keywords must be strings")
			}
			out.named = append(out.named, keyword{key.text, e.value})
		}
	}
	return out, nil
}

func noElse(line int) string {
	return fmt.Sprintf("the inline if-expression on line %d evaluated to false and no else section was defined.", line)
}

// call is function(arguments).
func (r *run) call(function Value, a args) (Value, error) {
	switch f := function.(type) {
	case *method:
		v, err := f.run(r, a)
		if err == nil {
			err = r.over
		}
		return v, err
	case *macro:
		return r.callMacro(f, a)
	case *undefined:
		return nil, f.failure()
	}
	return nil, failf("'%s' object is not callable", function.typeName())
}

// integerArgument is an argument that must be an integer; absent is its default.
func integerArgument(v Value, absent int) (int, error) {
	switch n := v.(type) {
	case nil:
		return absent, nil
	case Int:
		return int(n), nil
	case Bool:
		if n {
			return 1, nil
		}
		return 0, nil
	case *Big:
		return 0, failf("Python int too large to convert to C ssize_t")
	case *undefined:
		return 0, n.failure()
	}
	return 0, failf("'%s' object cannot be interpreted as an integer", v.typeName())
}

// textArgument is an argument that must be a string; absent is its default.
func textArgument(v Value, absent Str) (Str, error) {
	switch s := v.(type) {
	case nil:
		return absent, nil
	case Str:
		return s, nil
	}
	return Str{}, failf("expected a str, got '%s'", v.typeName())
}
