package jinja

// expr is an expression of the syntax tree.
type expr interface {
	eval(r *run) (Value, error)
	children(visit func(expr))
}

type (
	constant struct{ value Value }
	// name reads a variable; the binder turns its identifier into a place.
	name struct {
		id    string
		place place
	}
	// attributeRef is the target "ns.attribute" of an assignment.
	attributeRef struct {
		object    *name
		attribute string
	}
	tupleExpr struct{ items []expr }
	listExpr  struct{ items []expr }
	dictExpr  struct{ keys, values []expr }
	// attribute is object.id, subscript object[key], slicing object[start:stop:step].
	attribute struct {
		object expr
		id     Str
	}
	subscript struct{ object, key expr }
	slicing   struct{ object, start, stop, step expr } // nil where absent
	unary     struct {
		operator string
		operand  expr
	}
	operation struct {
		operator    string
		left, right expr
	}
	concat  struct{ parts []expr }
	compare struct {
		first     expr
		operators []string
		rest      []expr
	}
	logical struct {
		or          bool
		left, right expr
	}
	negation    struct{ operand expr }
	conditional struct {
		test, yes, no expr // no is nil without an else
		line          int
	}
	call struct {
		function  expr
		arguments arguments
	}
	filterExpr struct {
		operand   expr // nil in {% filter %} and {% set x | f %}, which filter the text of a block
		id        string
		filter    filter
		arguments arguments
		line      int
	}
	testExpr struct {
		operand   expr
		id        string
		test      filter
		arguments arguments
		line      int
	}
)

// arguments are the expressions in the parentheses of a call.
type arguments struct {
	positional []expr
	names      []string
	named      []expr
	star       expr // *values, or nil
	starStar   expr // **mapping, or nil
}

func (*constant) children(func(expr))         {}
func (*name) children(func(expr))             {}
func (e *attributeRef) children(v func(expr)) { v(e.object) }
func (e *tupleExpr) children(v func(expr))    { each(e.items, v) }
func (e *listExpr) children(v func(expr))     { each(e.items, v) }
func (e *dictExpr) children(v func(expr)) {
	for i := range e.keys {
		v(e.keys[i])
		v(e.values[i])
	}
}
func (e *attribute) children(v func(expr))   { v(e.object) }
func (e *subscript) children(v func(expr))   { each([]expr{e.object, e.key}, v) }
func (e *slicing) children(v func(expr))     { each([]expr{e.object, e.start, e.stop, e.step}, v) }
func (e *unary) children(v func(expr))       { v(e.operand) }
func (e *operation) children(v func(expr))   { each([]expr{e.left, e.right}, v) }
func (e *concat) children(v func(expr))      { each(e.parts, v) }
func (e *compare) children(v func(expr))     { v(e.first); each(e.rest, v) }
func (e *logical) children(v func(expr))     { each([]expr{e.left, e.right}, v) }
func (e *negation) children(v func(expr))    { v(e.operand) }
func (e *conditional) children(v func(expr)) { each([]expr{e.test, e.yes, e.no}, v) }
func (e *call) children(v func(expr))        { v(e.function); e.arguments.children(v) }
func (e *filterExpr) children(v func(expr))  { each([]expr{e.operand}, v); e.arguments.children(v) }
func (e *testExpr) children(v func(expr))    { v(e.operand); e.arguments.children(v) }

func (a *arguments) children(v func(expr)) {
	each(a.positional, v)
	each(a.named, v)
	each([]expr{a.star, a.starStar}, v)
}

// each visits the expressions that are there.
func each(items []expr, visit func(expr)) {
	for _, e := range items {
		if e != nil {
			visit(e)
		}
	}
}

// stmt is a statement of the syntax tree. declare collects the names that a statement reads and writes in the scope it stands
// in; bind then gives every name its place and opens the scopes inside; reads visits its expressions, nested ones
// included; exec runs it.
type stmt interface {
	declare(s *scope)
	bind(b binder) error
	reads(visit func(expr))
	exec(r *run) (flow, error)
}

// flow says how a statement ended.
type flow int

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

type (
	textStmt  struct{ text Str }
	printStmt struct {
		value expr
		line  int
	}
	ifStmt struct {
		branches  []branch
		otherwise []stmt
	}
	branch struct {
		test expr
		body []stmt
		line int
	}
	forStmt struct {
		target    expr
		iterable  expr
		test      expr // nil without an if
		body      []stmt
		otherwise []stmt
		line      int

		testTarget                      expr  // target in the scope of test
		loop                            *name // the variable "loop", nil where the body does not read it
		bodyScope, testScope, elseScope *scope
	}
	setStmt struct {
		target, value expr
		line          int
	}
	captureStmt struct { // {% set x %}…{% endset %}
		target expr
		filter *filterExpr
		body   []stmt
		line   int
		scope  *scope
	}
	filterStmt struct {
		filter *filterExpr
		body   []stmt
		line   int
		scope  *scope
	}
	withStmt struct {
		targets []expr
		values  []expr
		body    []stmt
		line    int
		scope   *scope
	}
	macroStmt struct {
		target *name
		macro  *macroDefinition
	}
	generationStmt struct { // {% generation %}…, run as a function
		macro *macroDefinition
		line  int
	}
	controlStmt struct{ flow flow }
)
