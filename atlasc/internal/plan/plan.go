// Package plan turns manifests into dispatch tables: for every operation of every hardware, which kernel serves it when.
//
// It reads files but writes none. It reports everything that is wrong at once; a plan that comes with findings is
// incomplete and must not be emitted.
package plan

import (
	"io/fs"
	"slices"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/expr"
	"github.com/atlas-inference/atlas/atlasc/internal/manifest"
	"github.com/atlas-inference/atlas/targets"
)

// Plan is what the whole tree asks for.
type Plan struct {
	Contract *contract.Contract // the operations
	Hardware []*Hardware        // with its manifests and kernels
}

// Find returns a hardware by name; nil where the plan has none.
func (p *Plan) Find(name string) *Hardware {
	i := slices.IndexFunc(p.Hardware, func(h *Hardware) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return p.Hardware[i]
}

// Hardware is the kernels of one kind of processor.
type Hardware struct {
	*targets.Hardware
	Targets []Target // its manifests
	Entries []*Entry // every kernel that some set uses, in the order of their names' first use
	Layouts []Layout // by the number of their scheme
	Sets    []*Set   // the base set, then those of models
}

// Target is one manifest in its place, kernels/<hardware>/<model>/<quant>/kernels.toml.
type Target struct {
	Model, Quant string             // folders of the manifest; the model may be "base"
	Manifest     *manifest.Manifest // as it was read
	Entries      []*Entry           // its own and those it includes
}

// Layout is the packed size of a scheme's matrices.
type Layout struct {
	*manifest.Layout
	Scheme contract.Constant // of the matrices
	Size   *expr.Expr        // bytes, over Rows and Cols
}

// Set is a dispatch table over all operations. A model's set holds only operations that differ from the base set's.
type Set struct {
	Model string     // "base" for the base set
	Ops   []Dispatch // in the order of the contract
}

// Dispatch returns the set's table of one operation; nil where it has none.
func (s *Set) Dispatch(op string) *Dispatch {
	i := slices.IndexFunc(s.Ops, func(d Dispatch) bool { return d.Op.Name == op })
	if i < 0 {
		return nil
	}
	return &s.Ops[i]
}

// Dispatch tells which kernel serves an operation: one case per group of weight schemes that are served alike, or a
// single case without schemes where the operation has no weight.
type Dispatch struct {
	Op    *contract.Struct // the operation
	Cases []Case           // one for each group of schemes
}

// Case is a list of entries of which the first whose condition holds is launched, or where it is one of a choice, the one
// of least cost. The last has no condition, or one of its choice has none.
type Case struct {
	Schemes  []contract.Constant // that it serves; nil: the operation has no weight
	Branches []*Entry            // tried in order
}

// Choices are a case's entries, those together that a call chooses among by cost.
func Choices(branches []*Entry) [][]*Entry {
	var all [][]*Entry
	for i, e := range branches {
		if i > 0 && e.Choose != "" && e.Choose == branches[i-1].Choose {
			all[len(all)-1] = append(all[len(all)-1], e)
		} else {
			all = append(all, []*Entry{e})
		}
	}
	return all
}

// Entry is a kernel of a manifest with its expressions checked.
type Entry struct {
	*manifest.Kernel
	ID       string           // stem of its C identifiers and of its unit's file; the name, but for entries that replace another
	Op       *contract.Struct // that it serves
	Model    string           // whose manifest named it; "base" for the base set
	Schemes  []int64          // that it serves; nil means all of the hardware's
	When     *expr.Expr       // nil means always
	Cost     *expr.Expr       // what a call is predicted to take; of an entry with Choose
	Scratch  *expr.Expr       // bytes; nil means none
	Launches []Launch         // in order
	cover    expr.Cover
}

// Unconditional tells whether the entry serves every call that reaches it.
func (e *Entry) Unconditional() bool { return e.When == nil && len(e.Needs) == 0 }

// Conditions lists the features and options that the entry's branch asks for.
func (e *Entry) Conditions() []string {
	switches := slices.Clone(e.Needs)
	if e.When != nil {
		switches = append(switches, e.When.Switches()...)
	}
	slices.Sort(switches)
	return slices.Compact(switches)
}

// Launch is one launch of an entry: the C entry point that atlasc defines, the function of the body that it calls, and
// how many blocks there are in each direction. Hardware without threads has no Block, and the rest is zero.
type Launch struct {
	*manifest.Launch
	Entry   string       // the C entry point
	Grid    []*expr.Expr // blocks in x, y and z
	Block   [3]uint32    // threads in x, y and z
	Shared  uint32       // bytes of dynamic shared memory
	Cluster [3]uint32    // blocks in x, y and z; zeros where there are no clusters
	Tiles   []Tile       // whose descriptors follow the struct in the argument block
}

// Tile is a matrix that the copy engine reads in boxes.
type Tile struct {
	Field             string     // of the operation: the matrix's address
	Rows, Cols, Pitch *expr.Expr // in elements
	Box               [2]uint32  // rows and columns
}

// Threads is how many threads a block has.
func (l *Launch) Threads() uint32 { return l.Block[0] * l.Block[1] * l.Block[2] }

// Make reads the manifests under kernels/ in tree and plans the hardware that has one and whose name matches the pattern
// only (as path.Match has it).
func Make(tree fs.FS, c *contract.Contract, hardware []*targets.Hardware, only string) (*Plan, error) {
	m := maker{tree: tree, contract: c, manifests: map[string][]*manifest.Manifest{}, malformed: map[*manifest.Manifest]bool{}}
	found, err := m.find(hardware, only)
	if err != nil {
		return nil, err
	}
	p := &Plan{Contract: c}
	for _, h := range found {
		p.Hardware = append(p.Hardware, m.hardware(h))
	}
	return p, m.diags.Err()
}

// maker collects findings while it plans.
type maker struct {
	tree      fs.FS
	contract  *contract.Contract
	manifests map[string][]*manifest.Manifest // by path; one for each set of parameters
	malformed map[*manifest.Manifest]bool     // those with findings of form
	diags     diag.List
}
