// Package manifest reads kernels.toml files: which kernel serves which operation, and when.
//
// It checks form only: known keys, types, what must be there. Every value remembers its file and line. What names and
// expressions mean is package plan's business.
package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/targets/strict"
)

// Manifest is one file, with the parameters of its texts filled in.
type Manifest struct {
	Path    string         // from the repository's root, with slashes
	Set     map[string]any `toml:"set"`     // parameters of its texts and of the files that it includes: integers and texts
	Before  []string       `toml:"before"`  // files relative to this one; their entries come before its own
	Include []string       `toml:"include"` // the same; theirs come after
	Scheme  string         `toml:"scheme"`  // that entries of operations with a weight serve
	Layouts []Layout       `toml:"layout"`  // how weights are packed
	Kernels []Kernel       `toml:"kernel"`  // entries, in the order in which they are tried
	lines   *strict.Lines
	given   Parameters
	used    map[string]bool // names of parameters that are given
	own     map[string]bool // names of its own that its texts have
}

// At is the position of a top-level key.
func (m *Manifest) At(key string) diag.Pos {
	return diag.Pos{File: m.Path, Line: m.lines.At(key), Set: m.given.at}
}

// Layout is how a hardware's kernels keep the weights of one scheme.
type Layout struct {
	Name   string `toml:"name"`   // for people
	Scheme string `toml:"scheme"` // the weights that are packed so
	Bytes  string `toml:"bytes"`  // expression over Rows and Cols
	place
}

// Kernel is one entry: a body, when it serves its operation, and how it is launched.
type Kernel struct {
	Op      string         `toml:"op"`      // operation of package op
	Name    string         `toml:"name"`    // one of a kind on a hardware; C identifiers come from it
	Body    string         `toml:"body"`    // file under kernels/ that the unit includes
	When    string         `toml:"when"`    // condition over the operation's fields, features and options; "" means always
	Choose  string         `toml:"choose"`  // entries of this name that follow one another: of those whose conditions hold a call has the one of least cost, the first of equals
	Cost    string         `toml:"cost"`    // of an entry with choose: what it is predicted to take, in any unit that they share
	Needs   []string       `toml:"needs"`   // features that the code uses; "" is none
	Scratch string         `toml:"scratch"` // bytes of memory that the launches share; "" means none
	Const   map[string]any `toml:"const"`   // integers, booleans and texts that the body knows by name; expressions know the integers
	Order   string         `toml:"order"`   // of reductions: kernels of an operation that share it give the same bits
	Rounds  string         `toml:"rounds"`  // what the kernel makes of activations before it multiplies them; "" leaves them as they are
	Also    map[string]any `toml:"also"`    // operations whose kernels differ by their arguments alone, by what is appended to the name
	Replace bool           `toml:"replace"` // in a model's manifest: takes the place of the base set's entry of this name
	Shape                  // of the only launch
	Launch  []Launch       `toml:"launch"` // instead: several launches in order
	place
}

// Launch is one of several launches of an entry.
type Launch struct {
	Shape
	place
}

// Shape is what is launched and how. All but inst and grid is for GPUs.
type Shape struct {
	Inst         string   `toml:"inst"`          // function of the body
	Grid         []string `toml:"grid"`          // blocks in x, y and z
	Block        []string `toml:"block"`         // threads of a block in x, y and z
	Shared       string   `toml:"shared"`        // bytes of dynamic shared memory of a block
	Cluster      []string `toml:"cluster"`       // blocks of a cluster in x, y and z
	Tiles        []Tile   `toml:"tiles"`         // matrices that the copy engine reads
	Serial       bool     `toml:"serial"`        // starts when the launch before it has ended, instead of waiting for it itself
	Cooperative  bool     `toml:"cooperative"`   // all blocks run at once
	L1           bool     `toml:"l1"`            // leaves first-level cache what its own blocks do not share: the next launch's may have to wait for them
	MinBlocks    int64    `toml:"min_blocks"`    // that a multiprocessor is to hold at a time: bounds registers
	MaxRegisters int64    `toml:"max_registers"` // of a thread that the build allows; 0: any
	MaxShared    int64    `toml:"max_shared"`    // bytes of shared memory, static and dynamic, that the build allows; 0: what the hardware has
	MaxStack     int64    `toml:"max_stack"`     // bytes of a thread's stack that the build allows: spilled registers lie there
}

// Tile is a matrix of activations that the copy engine reads by a descriptor, which launch code makes.
type Tile struct {
	Field string   `toml:"field"` // of the operation
	Rows  string   `toml:"rows"`  // expression: rows of the matrix
	Cols  string   `toml:"cols"`  // expression: elements of a row
	Pitch string   `toml:"pitch"` // elements from one row to the next; "" means cols
	Box   []string `toml:"box"`   // rows and columns of one copy, of no more rows than there are
}

func (s *Shape) empty() bool {
	return s.Inst == "" && s.Grid == nil && !s.Threads()
}

// Threads tells whether something is said that only GPUs know.
func (s *Shape) Threads() bool {
	return s.Block != nil || s.Shared != "" || s.Cluster != nil || s.Tiles != nil || s.Serial || s.Cooperative || s.L1 ||
		s.MinBlocks != 0 || s.MaxRegisters != 0 || s.MaxShared != 0 || s.MaxStack != 0
}

// Launches are the entry's launches in order; one where it has no list of them.
func (k *Kernel) Launches() []Launch {
	if len(k.Launch) > 0 {
		return k.Launch
	}
	return []Launch{{k.Shape, k.place}}
}

// place is where a table stands.
type place struct {
	manifest *Manifest
	table    string
}

// At is the position of a key of the table; of the table itself for "".
func (p place) At(key string) diag.Pos {
	if key == "" {
		return p.manifest.At(p.table)
	}
	return p.manifest.At(p.table + "." + key)
}

// File is the path of the manifest that holds the table.
func (p place) File() string { return p.manifest.Path }

// Read reads a manifest's text with the parameters given. Findings go to diags; what could be read is returned all the
// same.
func Read(path, text string, given Parameters, diags *diag.List) *Manifest {
	m, filled := &Manifest{Path: path, given: given, used: map[string]bool{}, own: map[string]bool{}}, true
	lines, problems := strict.DecodeFilled(text, m, func(key, text string) (string, *strict.Problem) {
		s, problem := m.fill(text, strings.HasPrefix(key, "set."))
		filled = filled && problem == nil
		return s, problem
	})
	m.lines = lines
	if len(m.used) == 0 {
		m.given = Parameters{}
	}
	for _, p := range problems {
		hint := ""
		if p.Unknown != "" {
			hint = diag.Suggest(p.Unknown, p.Known)
		}
		diags.Add(diag.Pos{File: path, Line: p.Line, Set: m.given.at}, hint, "%s", p.Msg)
	}
	if !filled { // what is left of its texts would only cause more findings
		return &Manifest{Path: path, lines: lines, given: m.given, used: m.used}
	}
	m.checkSet(diags)
	for i := range m.Layouts {
		l := &m.Layouts[i]
		l.place = place{m, fmt.Sprintf("layout[%d]", i)}
		word(diags, l.place, "name", l.Name)
		required(diags, l.place, "bytes", l.Bytes)
	}
	for i := range m.Kernels {
		k := &m.Kernels[i]
		k.place = place{m, fmt.Sprintf("kernel[%d]", i)}
		k.Needs = slices.DeleteFunc(k.Needs, func(feature string) bool { return feature == "" })
		for j := range k.Launch {
			k.Launch[j].place = place{m, fmt.Sprintf("kernel[%d].launch[%d]", i, j)}
		}
		k.check(diags)
	}
	m.Kernels = all(m.Kernels)
	return m
}

// all is the kernels and, after each, those that its manifest does not write out.
func all(kernels []Kernel) []Kernel {
	var list []Kernel
	for _, k := range kernels {
		also := k.Also
		k.Also = nil
		list = append(list, k)
		for _, suffix := range slices.Sorted(maps.Keys(also)) {
			k := k
			k.Name += "_" + suffix
			k.Op, _ = also[suffix].(string)
			list = append(list, k)
		}
	}
	return list
}

func required(diags *diag.List, p place, key, value string) {
	if strings.TrimSpace(value) == "" {
		diags.Add(p.At(key), "add it", "key %q is missing or empty", key)
	}
}

// word checks what becomes part of an identifier or of a comment.
func word(diags *diag.List, p place, key, value string) {
	if !wordForm.MatchString(value) || len(value) > 64 {
		diags.Add(p.At(key), "write small letters and digits with single underscores, 64 at most", "%s %q is not a word", key, value)
	}
}

var (
	wordForm     = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	constantName = regexp.MustCompile(`^k[A-Z][A-Za-z0-9]*$`)
	constantText = regexp.MustCompile(`^[A-Za-z0-9_ .:*-]+$`)
	function     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// roundings are what the oracle knows, by the names that it has for them.
var roundings = []string{"e4m3x128", "e4m3xrow"}

func (k *Kernel) check(diags *diag.List) {
	required(diags, k.place, "op", k.Op)
	required(diags, k.place, "body", k.Body)
	if k.Order != "" {
		word(diags, k.place, "order", k.Order)
	}
	if k.Choose != "" {
		word(diags, k.place, "choose", k.Choose)
		required(diags, k.place, "cost", k.Cost)
	} else if k.Cost != "" {
		diags.Add(k.At("cost"), `add choose = "wide" to all that it is compared with`, "kernel %s has a cost, and is chosen among none", k.Name)
	}
	if k.Rounds != "" && !slices.Contains(roundings, k.Rounds) {
		diags.Add(k.At("rounds"), diag.Suggest(k.Rounds, roundings), "rounding %q is unknown", k.Rounds)
	}
	if k.Rounds != "" && !strings.Contains(k.When, "W.Rounding == ") {
		diags.Add(k.At("when"), "add W.Rounding == RoundingE4M3x128, or whichever it is", "kernel %s rounds activations of matrices that do not allow it", k.Name)
	}
	word(diags, k.place, "name", k.Name)
	if len(k.Launch) > 0 && !k.Shape.empty() {
		diags.Add(k.Launch[0].At(""), "move them into a launch", "kernel %s has launches, and inst, grid or the like of its own besides", k.Name)
	}
	for _, l := range k.Launches() {
		if !function.MatchString(l.Inst) {
			diags.Add(l.At("inst"), "name a function of the body; its constants go into const", "inst %q does not name a function", l.Inst)
		}
		if len(l.Grid) < 1 || len(l.Grid) > 3 {
			diags.Add(l.At("grid"), "write one to three expressions", "grid has %d expressions", len(l.Grid))
		}
		if len(l.Block) > 3 {
			diags.Add(l.At("block"), "write one to three expressions", "block has %d expressions", len(l.Block))
		}
		if l.Cluster != nil && (len(l.Cluster) < 1 || len(l.Cluster) > 3) {
			diags.Add(l.At("cluster"), "write one to three expressions", "cluster has %d expressions", len(l.Cluster))
		}
		for key, value := range map[string]int64{"min_blocks": l.MinBlocks, "max_registers": l.MaxRegisters, "max_shared": l.MaxShared, "max_stack": l.MaxStack} {
			if value < 0 || value > 1<<20 {
				diags.Add(l.At(key), "write a size", "%s is %d", key, value)
			}
		}
	}
	for name, value := range k.Const {
		if !constantName.MatchString(name) {
			diags.Add(k.At("const."+name), "write kTile", "constant name %q is not of the form kCamel", name)
		}
		switch v := value.(type) {
		case int64, bool:
		case string:
			if !constantText.MatchString(v) {
				diags.Add(k.At("const."+name), "write a name or an expression", "constant %s has a text that is no value in C: %q", name, v)
			}
		default:
			diags.Add(k.At("const."+name), "write one of them", "constant %s is no integer, boolean or string", name)
		}
	}
	for suffix, name := range k.Also {
		if _, ok := name.(string); !ok || !wordForm.MatchString(suffix) {
			diags.Add(k.At("also."+suffix), `write add = "LinearAdd"`, "%s = %v is no operation with what its kernel's name ends in", suffix, name)
		}
	}
	for i, need := range k.Needs {
		if slices.Contains(k.Needs[:i], need) {
			diags.Add(k.At("needs"), "remove one", "feature %s is needed twice", need)
		}
	}
}
