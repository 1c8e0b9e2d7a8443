package schema

import (
	"encoding/binary"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// node is a set of values that is not read yet. Equal expressions are one node, so that recursive schemas have finitely many.
type node int32

const (
	never  node = iota // no value
	always             // every value
)

type nodeKind uint8

const (
	leaf     nodeKind = iota // a schema of the document
	constant                 // one value
	all                      // what is in all parts
	some                     // what is in some part
	except                   // what is not in the part
)

type expression struct {
	kind    nodeKind
	place   place          // of a leaf
	tracked bool           // of a leaf: what it evaluates matters to a schema around it
	value   jsontree.Value // of a constant
	parts   []node         // sorted

	values  *set // once it was read
	reading bool
	alive   verdict
}

// compiler makes a grammar of a document. Once err is set its methods may return anything.
type compiler struct {
	document  document
	rules     *rules.Builder
	limits    Limits
	err       error
	costly    bool  // err is that there is too much work
	brief     bool  // alternatives are not taken out of each other exactly, see subtract
	work      int   // spent
	at        place // that is read, for errors
	exploring int   // how deep look is; what is being read then counts as everything
	touched   bool  // such a node was met since exploring began, so that what was read since is not kept
	tracked   bool  // what alternatives evaluate matters to the schema that is read

	nodes     []expression
	leaves    map[leafKey]node
	constants map[string]node
	composed  map[string]node
	numbers   numberForms
	formats   map[string]*texts
	patterns  map[string]*texts
	raw       *speller
}

type leafKey struct {
	schema  *jsontree.Object
	tracked bool
}

func newCompiler(b *rules.Builder, limits Limits) *compiler {
	c := &compiler{
		rules: b, limits: limits,
		nodes:  make([]expression, 2, 64),
		leaves: map[leafKey]node{}, constants: map[string]node{}, composed: map[string]node{},
		formats: map[string]*texts{}, patterns: map[string]*texts{},
	}
	c.nodes[never] = expression{values: &set{}, alive: dead}
	c.nodes[always] = expression{values: everything(), alive: living}
	c.raw = &speller{set: b.Regexes, forms: map[*texts]regex.Ref{}}
	c.numbers.make(b.Regexes)
	return c
}

// spend counts work. False: there is no more, or there was an error.
func (c *compiler) spend(steps int) bool {
	if c.work += steps; c.work > c.limits.Work && c.err == nil {
		c.tooMuch()
	}
	return c.err == nil
}

func (c *compiler) tooMuch() {
	if c.err == nil {
		c.unsupported("", "it takes more work than is granted to one schema: make it smaller, or give alternatives a property that tells them apart")
		c.costly = true
	}
}

// opposite is not, for values within arrays and objects that break a schema; false: it is left out for the sake of brevity.
func (c *compiler) opposite(n node) (node, bool) {
	if c.brief && n != never && (!c.narrow(n) || c.busy(n)) {
		return never, false
	}
	return c.not(n), true
}

func (c *compiler) unsupported(keyword, reason string) {
	if c.err == nil {
		c.err = &Unsupported{Path: c.at.path.String(), Keyword: keyword, Reason: reason}
	}
}

func (c *compiler) invalid(reason string) {
	if c.err == nil {
		c.err = &Invalid{Path: c.at.path.String(), Reason: reason}
	}
}

func (c *compiler) addNode(e expression) node {
	c.spend(1 + len(e.parts))
	c.nodes = append(c.nodes, e)
	return node(len(c.nodes) - 1)
}

// subschema is the node of a schema.
func (c *compiler) subschema(p place) node { return c.schemaNode(p, false) }

func (c *compiler) schemaNode(p place, tracked bool) node {
	switch v := p.schema.(type) {
	case jsontree.Bool:
		if v {
			return always
		}
		return never
	case *jsontree.Object:
		if v.Len() == 0 {
			return always
		}
		key := leafKey{v, tracked}
		n, known := c.leaves[key]
		if !known {
			n = c.addNode(expression{kind: leaf, place: p, tracked: tracked})
			c.leaves[key] = n
		}
		return n
	}
	if c.err == nil {
		c.err = &Invalid{Path: p.path.String(), Reason: "a schema is an object or a boolean, not " + kindName(p.schema)}
	}
	return never
}

func kindName(v jsontree.Value) string {
	if v == nil {
		return "nothing"
	}
	return v.Kind()
}

func (c *compiler) constant(v jsontree.Value) node {
	key := string(appendCanonical(nil, v))
	n, known := c.constants[key]
	if !known {
		n = c.addNode(expression{kind: constant, value: v})
		c.constants[key] = n
	}
	return n
}

// compose is the node of an expression, whose parts are sorted and deduplicated.
func (c *compiler) compose(kind nodeKind, parts []node) node {
	key := []byte{byte(kind)}
	for _, p := range parts {
		key = binary.AppendUvarint(key, uint64(p))
	}
	n, known := c.composed[string(key)]
	if !known {
		n = c.addNode(expression{kind: kind, parts: parts})
		c.composed[string(key)] = n
	}
	return n
}

// flatten joins parts of the same kind. Parts that are unit change nothing; zero is what decides.
func (c *compiler) flatten(kind nodeKind, parts []node, unit, zero node) (flat []node, decided bool) {
	for _, p := range parts {
		switch {
		case p == zero:
			return nil, true
		case p == unit:
		case p > always && c.nodes[p].kind == kind:
			flat = append(flat, c.nodes[p].parts...)
		default:
			flat = append(flat, p)
		}
	}
	slices.Sort(flat)
	flat = slices.Compact(flat)
	for _, p := range flat {
		if e := &c.nodes[p]; e.kind == except && slices.Contains(flat, e.parts[0]) {
			return nil, true
		}
	}
	return flat, false
}

func (c *compiler) both(parts ...node) node {
	if len(parts) == 2 && parts[0] == parts[1] {
		return parts[0]
	}
	flat, decided := c.flatten(all, parts, always, never)
	constants := 0
	for _, p := range flat {
		if c.nodes[p].kind == constant {
			constants++
		}
	}
	switch {
	case decided || constants > 1:
		return never
	case len(flat) == 0:
		return always
	case len(flat) == 1:
		return flat[0]
	}
	return c.compose(all, flat)
}

func (c *compiler) either(parts ...node) node {
	flat, decided := c.flatten(some, parts, never, always)
	switch {
	case decided:
		return always
	case len(flat) == 0:
		return never
	case len(flat) == 1:
		return flat[0]
	}
	return c.compose(some, flat)
}

func (c *compiler) not(n node) node {
	switch {
	case n == never:
		return always
	case n == always:
		return never
	case c.nodes[n].kind == except:
		return c.nodes[n].parts[0]
	}
	return c.compose(except, []node{n})
}

// read is what a node allows. Only what stands in the same place of a value is read; children remain nodes.
func (c *compiler) read(n node) *set {
	if v := c.nodes[n].values; v != nil || c.err != nil {
		return v.orEmpty()
	}
	e := c.nodes[n]
	if e.reading {
		if c.exploring > 0 {
			c.touched = true
			return everything()
		}
		if e.kind == leaf {
			c.at = e.place
		}
		c.invalid("it refers to itself without a property or an item between")
		return &set{}
	}
	c.nodes[n].reading = true
	at, tracked := c.at, c.tracked
	c.tracked = e.tracked
	if e.kind == leaf {
		c.at = e.place
	}
	var v *set
	switch e.kind {
	case leaf:
		v = c.readSchema(e.place)
	case constant:
		v = c.constantSet(e.value)
	case all:
		v = everything()
		for _, p := range e.parts {
			if c.nodes[p].kind != except {
				v = c.intersect(v, c.read(p))
			}
		}
		for _, p := range e.parts {
			if c.nodes[p].kind == except {
				v = c.subtract(v, c.read(c.nodes[p].parts[0]))
			}
		}
	case some:
		v = c.uniteAll(c.readAll(e.parts))
	case except:
		v = c.complement(c.read(e.parts[0]))
	}
	c.nodes[n].reading = false
	if c.at, c.tracked = at, tracked; c.touched {
		return v
	}
	c.nodes[n].values = v
	return v
}

func (c *compiler) readAll(nodes []node) []*set {
	sets := make([]*set, len(nodes))
	for i, n := range nodes {
		sets[i] = c.read(n)
	}
	return sets
}
