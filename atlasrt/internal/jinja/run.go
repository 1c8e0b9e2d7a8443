package jinja

import (
	"context"
	"fmt"
	"time"
)

// run is the state of one render.
type run struct {
	steps    int // left
	depth    int // calls left
	maxDepth int
	maxText  int
	over     error           // set once a limit is passed
	request  context.Context // nil: nobody ends the render
	look     int             // steps left at which the request is looked at
	now      time.Time
	context  []Value
	here     *activation
	out      *textBuilder
}

// activation holds the variables of a function that runs.
type activation struct {
	slots []Value // nil where a variable is not set
	outer *activation
}

func newRun(t *Template, variables *Dict, options Options) (*run, error) {
	limits := options.Limits
	if limits.Depth == 0 {
		limits.Depth = defaultDepth
	}
	size, err := sizeOf(variables, limits.Depth)
	if err != nil {
		return nil, err
	}
	if limits.Steps == 0 {
		limits.Steps = defaultSteps
	}
	if limits.Text == 0 {
		limits.Text = 4*size + 1<<20
	}
	r := &run{
		steps: limits.Steps + stepsPerByte*size, depth: limits.Depth, maxDepth: limits.Depth, maxText: limits.Text, now: options.Now, request: options.Context,
		context: make([]Value, len(t.context)), here: &activation{slots: make([]Value, len(t.root.owner.slots))},
	}
	r.look = r.steps
	r.out = &textBuilder{run: r, text: make([]byte, 0, min(size+2048, limits.Text))}
	for i, id := range t.context {
		if v, ok := variables.Get(id); ok {
			r.context[i] = v
		} else if v, ok := global(id); ok && (id != "strftime_now" || !options.Now.IsZero()) {
			r.context[i] = v
		}
	}
	return r, nil
}

// sizeOf is the number of bytes of a value, about.
func sizeOf(v Value, depth int) (int, error) {
	if depth == 0 {
		return 0, &Error{Kind: Limit, Message: "the variables of the template nest too deep"}
	}
	total := 16
	add := func(item Value) error {
		n, err := sizeOf(item, depth-1)
		total += n
		return err
	}
	switch v := v.(type) {
	case Str:
		return total + len(v.text), nil
	case *List:
		for _, item := range v.items {
			if err := add(item); err != nil {
				return 0, err
			}
		}
	case *Dict:
		for _, e := range v.entries {
			if err := add(e.key); err != nil {
				return 0, err
			}
			if err := add(e.value); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

// stepsPerLook is how often a render looks whether its request is done.
const stepsPerLook = 1 << 14

// charge takes steps; the render fails soon after they run out, or its request is done.
func (r *run) charge(steps int) {
	r.steps -= steps
	if r.steps < 0 {
		r.exceed("steps")
	}
	if r.steps <= r.look {
		r.look = r.steps - stepsPerLook
		if r.over == nil && r.request != nil && r.request.Err() != nil {
			r.over = context.Cause(r.request)
		}
	}
}

// spend takes steps and fails where they run out.
func (r *run) spend(steps int) error {
	r.charge(steps)
	return r.over
}

// chargeText takes the steps of reading a text once; other values cost nothing.
func (r *run) chargeText(v Value) {
	if s, ok := v.(Str); ok {
		r.charge(len(s.text) / bytesPerStep)
	}
}

func (r *run) exceed(what string) {
	if r.over == nil {
		r.over = &Error{Kind: Limit, Message: fmt.Sprintf("the template takes too many %s (raise the limit, or shorten the conversation)", what)}
		if what == "text" {
			r.over = &Error{Kind: Limit, Message: fmt.Sprintf("the template makes a text of more than %d bytes (raise the limit, or shorten the conversation)", r.maxText)}
		}
	}
}

// enter counts one nested call.
func (r *run) enter() (leave func(), err error) {
	if r.depth == 0 {
		return nil, &Error{Kind: Limit, Message: fmt.Sprintf("the template nests more than %d calls", r.maxDepth)}
	}
	r.depth--
	return func() { r.depth++ }, nil
}

func (r *run) get(p place) Value {
	a := r.here
	for range p.up {
		a = a.outer
	}
	return a.slots[p.slot]
}

func (r *run) set(p place, v Value) {
	a := r.here
	for range p.up {
		a = a.outer
	}
	a.slots[p.slot] = v
}

// enterScope gives the variables of a scope their first values.
func (r *run) enterScope(s *scope) {
	for i := range s.entry {
		e := &s.entry[i]
		switch e.source {
		case fromContext:
			r.here.slots[e.slot] = r.context[e.context]
		case fromOuter:
			r.here.slots[e.slot] = r.get(e.outer)
		case fromNothing:
			r.here.slots[e.slot] = nil
		}
	}
}

// exec runs statements up to the end, a break or a continue.
func (r *run) exec(body []stmt) (flow, error) {
	for _, st := range body {
		if f, err := st.exec(r); err != nil || f != flowNext {
			return f, err
		}
	}
	return flowNext, nil
}

// capture runs statements and returns what they print.
func (r *run) capture(body []stmt) (Str, error) {
	s, _, err := r.captureFlow(body)
	return s, err
}

func (r *run) captureFlow(body []stmt) (Str, flow, error) {
	out := r.out
	r.out = &textBuilder{run: r}
	f, err := r.exec(body)
	s := r.out.str()
	r.out = out
	return s, f, err
}
