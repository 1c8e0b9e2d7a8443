package grammar

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
)

// Limits bound what a Spec may take. Zero fields have defaults. They count and do not read a clock, so that a Spec is refused always or never.
type Limits struct {
	Bytes       int           // of all texts of a Spec; default 1 MiB
	Depth       int           // nesting of its parts; default 64
	Parts       int           // of them; default 100,000
	Symbols     int           // of the rules that are made of it; default 500,000
	Expressions int           // that terminals are made of; default 1,000,000
	Schema      schema.Limits // of each JSON schema
	Match       match.Limits  // of the machine
}

func (l *Limits) fill() {
	for _, f := range []struct {
		field *int
		value int
	}{{&l.Bytes, 1 << 20}, {&l.Depth, 64}, {&l.Parts, 100_000}, {&l.Symbols, 500_000}, {&l.Expressions, 1_000_000}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
}

// Grammar is a Spec that was compiled. It is safe for concurrent use.
type Grammar struct {
	machine *match.Machine
	notes   []Note
}

// Note says that a part is held less strictly than it seems to ask.
type Note struct {
	Name string // of the part; "": it has none
	Err  error  // a *schema.Unread, or why a Loose part cannot be held: a *schema.Unsupported
}

// String says what is not held and why.
func (n Note) String() string {
	text := n.Err.Error()
	if _, unread := errors.AsType[*schema.Unread](n.Err); !unread {
		text = "any object may come: " + text
	}
	if n.Name == "" {
		return text
	}
	return n.Name + ": " + text
}

// Start is the state before the first token.
func (g *Grammar) Start() match.State { return g.machine.Start() }

// State is a state that State.AppendBinary encoded, by any machine that was compiled of the same Spec for the same vocabulary.
func (g *Grammar) State(encoded []byte) (match.State, error) { return g.machine.State(encoded) }

// Notes are what is not held as it seems to be asked.
func (g *Grammar) Notes() []Note { return g.notes }

// Bytes is about how much memory the grammar takes now. It grows as the grammar is used, up to a bound in Limits.Match.
func (g *Grammar) Bytes() int { return g.machine.Bytes() }

// Compile makes a grammar for a vocabulary. It takes the caller's time, and ends soon after ctx does. Errors are an *Error where the Spec
// is at fault, a *Fault where this program is, or that of ctx.
func Compile(ctx context.Context, s Spec, v *match.Vocabulary, limits Limits) (*Grammar, error) {
	c := newCompiler(ctx, v, limits)
	return c.compile(&s)
}

func newCompiler(ctx context.Context, v *match.Vocabulary, limits Limits) *compiler {
	limits.fill()
	return &compiler{ctx: ctx, vocabulary: v, limits: limits, b: rules.NewBuilder(), fronts: fronts(), schemas: map[schemaKey]rules.Symbol{}}
}

func (c *compiler) compile(s *Spec) (g *Grammar, err error) {
	defer func() {
		if value := recover(); value != nil {
			g, err = nil, &Fault{Kind: c.at, Value: value, Stack: debug.Stack()}
		}
	}()
	c.at = s.Kind
	if err := c.measure(s, 0); err != nil {
		return nil, err
	}
	start, err := c.part(s, s.Name)
	if err != nil {
		return nil, err
	}
	r, err := c.b.Grammar(start)
	if err != nil {
		return nil, &Error{s.Kind, s.Name, err}
	}
	m, err := match.New(r, c.vocabulary, c.limits.Match)
	if errors.Is(err, match.ErrNothing) && s.Kind == Schema {
		err = &schema.Unsatisfiable{} // which was not seen sooner
	}
	if err != nil {
		return nil, &Error{s.Kind, s.Name, err}
	}
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	return &Grammar{machine: m, notes: c.notes}, nil
}
