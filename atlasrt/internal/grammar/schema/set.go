package schema

import "github.com/atlas-inference/atlas/atlasrt/internal/jsontree"

// set is a set of values, by their types.
type set struct {
	null, no, yes bool
	number        numbers
	text          *texts    // nil: no strings
	arrays        []*array  // alternatives
	objects       []*object // alternatives
	partial       bool      // some arrays or objects are left out, see subtract
}

func everything() *set {
	return &set{null: true, no: true, yes: true, number: numbers{any: true}, text: anyText, arrays: []*array{anyArray}, objects: []*object{anyObject}}
}

func (s *set) orEmpty() *set {
	if s == nil {
		return &set{}
	}
	return s
}

// scalar says that there are no arrays and objects.
func (s *set) scalar() bool { return len(s.arrays) == 0 && len(s.objects) == 0 }

func (c *compiler) intersect(a, b *set) *set {
	return &set{
		null: a.null && b.null, no: a.no && b.no, yes: a.yes && b.yes,
		number:  c.bothNumbers(a.number, b.number),
		text:    c.bothTexts(a.text, b.text),
		arrays:  product(c, a.arrays, b.arrays, anyArray, c.bothArrays),
		objects: product(c, a.objects, b.objects, anyObject, c.bothObjects),
		partial: a.partial || b.partial,
	}
}

// mostProduct bounds the alternatives that a product has before it is made. More of them grow on to the limit of work, and few leave anything out.
const mostProduct = 2048

// product intersects every alternative with every other; what is not possible is nil and left out.
func product[T any](c *compiler, as, bs []*T, any *T, both func(a, b *T) *T) []*T {
	switch {
	case len(as) == 1 && as[0] == any:
		return bs
	case len(bs) == 1 && bs[0] == any:
		return as
	case len(as)*len(bs) > mostProduct && min(len(as), len(bs)) > 1:
		c.tooMuch()
		return nil
	}
	var result []*T
	for _, a := range as {
		for _, b := range bs {
			if !c.spend(1) {
				return nil
			}
			if a == b {
				result = append(result, a)
			} else if v := both(a, b); v != nil {
				result = append(result, v)
			}
		}
	}
	return result
}

func (c *compiler) unite(a, b *set) *set {
	return &set{
		null: a.null || b.null, no: a.no || b.no, yes: a.yes || b.yes,
		number:  c.eitherNumbers(a.number, b.number),
		text:    eitherTexts(a.text, b.text),
		arrays:  join(a.arrays, b.arrays, anyArray, c.tracked),
		objects: join(a.objects, b.objects, anyObject, c.tracked),
		partial: a.partial || b.partial,
	}
}

// join is all alternatives. One that allows everything stands for all, unless what they evaluate is tracked.
func join[T any](as, bs []*T, any *T, tracked bool) []*T {
	joined := make([]*T, 0, len(as)+len(bs))
	for i, v := range append(as[:len(as):len(as)], bs...) {
		if v == any && !tracked {
			return []*T{any}
		}
		if i < len(as) || len(as) > 16 || !contains(as, v) {
			joined = append(joined, v)
		}
	}
	return joined
}

func contains[T any](list []*T, v *T) bool {
	for _, other := range list {
		if other == v {
			return true
		}
	}
	return false
}

// uniteAll is the union of many sets, in linear time.
func (c *compiler) uniteAll(sets []*set) *set {
	for len(sets) > 1 {
		next := sets[:0:0]
		for i := 0; i+1 < len(sets); i += 2 {
			if !c.spend(1) {
				return &set{}
			}
			next = append(next, c.unite(sets[i], sets[i+1]))
		}
		if len(sets)%2 == 1 {
			next = append(next, sets[len(sets)-1])
		}
		sets = next
	}
	if len(sets) == 0 {
		return &set{}
	}
	return sets[0]
}

func (c *compiler) complement(a *set) *set { return c.subtract(everything(), a) }

// mostBrief bounds the alternatives that a brief compiler keeps.
const mostBrief = 16

// subtract is what is in a and not in b. Each alternative of b is taken out of what is left: that keeps alternatives few.
//
// A brief compiler leaves out values that differ from b only within an array or an object, and alternatives beyond some number: what is left is
// not in b, but not all of it is there.
// Such a set cannot be taken out of another one.
func (c *compiler) subtract(a, b *set) *set {
	if b.partial && (len(a.arrays) > 0 && len(b.arrays) > 0 || len(a.objects) > 0 && len(b.objects) > 0) {
		c.tooMuch()
		return &set{}
	}
	v := &set{null: a.null && !b.null, no: a.no && !b.no, yes: a.yes && !b.yes, arrays: a.arrays, objects: a.objects}
	v.partial = a.partial || c.brief && !b.scalar()
	v.number = c.bothNumbers(a.number, c.notNumbers(b.number))
	v.text = c.bothTexts(a.text, notTexts(b.text))
	for _, alternative := range b.arrays {
		if len(v.arrays) > 0 {
			v.arrays = product(c, v.arrays, c.notArray(alternative), anyArray, c.bothArrays)
		}
	}
	for _, alternative := range b.objects {
		var apart, shared []*object
		for _, o := range v.objects {
			if c.apart(o, alternative) {
				apart = append(apart, o)
			} else {
				shared = append(shared, o)
			}
		}
		if len(shared) > 0 {
			shared = c.absorb(product(c, shared, c.notObject(alternative), anyObject, c.bothObjects))
		}
		if v.objects = append(apart, shared...); c.brief && len(v.objects) > mostBrief {
			v.objects = v.objects[:mostBrief]
		}
	}
	return v
}

// constantSet is one value.
func (c *compiler) constantSet(v jsontree.Value) *set {
	s := &set{}
	switch v := v.(type) {
	case jsontree.Null:
		s.null = true
	case jsontree.Bool:
		s.yes, s.no = bool(v), !bool(v)
	case jsontree.Number:
		if d, ok := c.decimal("const", v); ok {
			s.number = numbers{finite: []decimal{d}}
		}
	case jsontree.String:
		s.text = wordTexts([]string{string(v)})
	case jsontree.Array:
		a := &array{rest: element{value: never}, max: unbounded, min: len(v)}
		for _, item := range v {
			a.prefix = append(a.prefix, element{value: c.constant(item)})
		}
		s.arrays = []*array{a}
	case *jsontree.Object:
		o := &object{rest: []region{{value: never}}, max: unbounded}
		for name, member := range v.All() {
			o.fields = append(o.fields, field{name: name, value: c.constant(member), required: true})
		}
		s.objects = []*object{o}
	}
	return s
}

// finite is the set of some values.
func (c *compiler) finite(keyword string, values jsontree.Array) *set {
	whole := &set{}
	var words []string
	var decimals []decimal
	for _, v := range values {
		if !c.spend(1) {
			return &set{}
		}
		switch v := v.(type) {
		case jsontree.String:
			words = append(words, string(v))
		case jsontree.Number:
			if d, ok := c.decimal(keyword, v); ok {
				decimals = append(decimals, d)
			}
		case jsontree.Null:
			whole.null = true
		case jsontree.Bool:
			whole.yes, whole.no = whole.yes || bool(v), whole.no || !bool(v)
		default:
			one := c.read(c.constant(v))
			whole.arrays = append(whole.arrays, one.arrays...)
			whole.objects = append(whole.objects, one.objects...)
		}
	}
	if len(words) > 0 {
		whole.text = wordTexts(words)
	}
	whole.number = numbers{finite: uniqueDecimals(decimals)}
	return whole
}
