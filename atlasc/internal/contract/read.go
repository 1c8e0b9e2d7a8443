package contract

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
)

// Read reads the package in folder dir of root. Positions are relative to root. An error that is a diag.List is about
// the source; any other is about reading it.
func Read(root, dir string) (*Contract, error) {
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		return nil, fmt.Errorf("read package op: %w", err)
	}
	r := reader{dir: filepath.ToSlash(dir), fset: token.NewFileSet()}
	var files []*ast.File
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(root, dir, name))
		if err != nil {
			return nil, fmt.Errorf("read package op: %w", err)
		}
		file, err := parser.ParseFile(r.fset, path.Join(r.dir, name), src, parser.SkipObjectResolution)
		if err != nil {
			r.parseErrors(err)
			continue
		}
		files = append(files, file)
	}
	if err := r.diags.Err(); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read package op: no Go files in %s", dir)
	}
	r.check(files)
	if err := r.diags.Err(); err != nil {
		return nil, err
	}
	c := r.contract()
	return c, r.diags.Err()
}

// reader collects findings on the way from source to Contract.
type reader struct {
	dir   string
	fset  *token.FileSet
	pkg   *types.Package
	diags diag.List
}

func (r *reader) at(p token.Pos) diag.Pos {
	position := r.fset.Position(p)
	return diag.Pos{File: position.Filename, Line: position.Line}
}

func (r *reader) parseErrors(err error) {
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		r.diags.Add(diag.Pos{File: r.dir}, "", "%v", err)
	}
	for _, e := range list {
		r.diags.Add(diag.Pos{File: e.Pos.Filename, Line: e.Pos.Line}, "", "%s", e.Msg)
	}
}

// check type-checks declarations. Function bodies do not matter, so imports need not be read.
func (r *reader) check(files []*ast.File) {
	config := types.Config{
		Importer:         noImports{},
		IgnoreFuncBodies: true,
		Sizes:            sizes,
		Error: func(err error) {
			var e types.Error
			if errors.As(err, &e) {
				r.diags.Add(r.at(e.Pos), "", "%s", e.Msg)
			}
		},
	}
	r.pkg, _ = config.Check("op", r.fset, files, nil) // Error saw every error
}

// sizes are those of every 64-bit machine that runs kernels.
var sizes = types.SizesFor("gc", "amd64")

// noImports stands in for packages that only function bodies use.
type noImports struct{}

func (noImports) Import(importPath string) (*types.Package, error) {
	if importPath == "unsafe" {
		return types.Unsafe, nil
	}
	pkg := types.NewPackage(importPath, path.Base(importPath))
	pkg.MarkComplete()
	return pkg, nil
}

func (r *reader) contract() *Contract {
	c := &Contract{Package: r.pkg, Constants: r.constants()}
	methods := r.methods()
	scope := r.pkg.Scope()
	if weight, ok := scope.Lookup("Weight").(*types.TypeName); ok {
		if s, ok := weight.Type().Underlying().(*types.Struct); ok {
			c.Weight = r.structure(weight, s, nil)
		}
	}
	if c.Weight == nil {
		r.diags.Add(diag.Pos{File: r.dir}, "operations carry it by value", "package op has no struct Weight")
		return c
	}
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || name == "Weight" {
			continue
		}
		s, ok := object.Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		method, isOp := methods[name]
		if !isOp {
			if tagged(s) {
				r.diags.Add(r.at(object.Pos()), "add "+name+"(Stream, "+name+") to one", "struct %s has atlas tags, but no interface has it as an operation", name)
			}
			continue
		}
		op := r.structure(object, s, c.Weight)
		op.Required, op.Partial = method.required, method.partial
		c.Ops = append(c.Ops, op)
	}
	return c
}

func tagged(s *types.Struct) bool {
	for i := range s.NumFields() {
		if s.Tag(i) != "" {
			return true
		}
	}
	return false
}

// method is what an interface says about an operation.
type method struct{ required, partial bool }

// methods finds the operations: methods X(Stream, X) of package op's interfaces, with a bool where kernels need not serve every call.
func (r *reader) methods() map[string]method {
	found := map[string]method{}
	scope := r.pkg.Scope()
	for _, required := range Required {
		if scope.Lookup(required) == nil {
			r.diags.Add(diag.Pos{File: r.dir}, "every hardware's set implements it", "package op has no interface %s", required)
		}
	}
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || name == "Stream" {
			continue
		}
		set, ok := object.Type().Underlying().(*types.Interface)
		if !ok {
			continue
		}
		for m := range set.Methods() {
			if m.Name() == "PackedBytes" {
				continue
			}
			signature := m.Type().(*types.Signature)
			results := types.TypeString(signature.Results(), local)
			if signature.Params().Len() != 2 || results != "()" && results != "(bool)" ||
				types.TypeString(signature.Params().At(0).Type(), local) != "Stream" ||
				types.TypeString(signature.Params().At(1).Type(), local) != m.Name() {
				r.diags.Add(r.at(m.Pos()), "write "+m.Name()+"(Stream, "+m.Name()+")", "method %s.%s is no operation", name, m.Name())
				continue
			}
			before := found[m.Name()]
			found[m.Name()] = method{before.required || slices.Contains(Required, name), before.partial || results == "(bool)"}
		}
	}
	return found
}

// local spells the types of package op without its name.
func local(p *types.Package) string {
	if p.Name() == "op" {
		return ""
	}
	return p.Name()
}

func (r *reader) constants() []Constant {
	var found []Constant
	scope := r.pkg.Scope()
	objects := []*types.Const{}
	for _, name := range scope.Names() {
		if k, ok := scope.Lookup(name).(*types.Const); ok && k.Exported() {
			objects = append(objects, k)
		}
	}
	slices.SortFunc(objects, func(a, b *types.Const) int { return int(a.Pos() - b.Pos()) })
	for _, k := range objects {
		named, ok := k.Type().(*types.Named)
		if !ok {
			continue
		}
		value, exact := constant.Int64Val(constant.ToInt(k.Val()))
		if !exact {
			continue
		}
		found = append(found, Constant{Name: k.Name(), C: cName(k.Name()), Type: named.Obj().Name(), Value: value})
	}
	return found
}

// cName turns SchemeQ8_0 into ATLAS_SCHEME_Q8_0: a capital after a small letter starts a word.
func cName(name string) string {
	b := []rune("ATLAS_")
	previous := '_'
	for _, c := range name {
		if unicode.IsUpper(c) && unicode.IsLower(previous) {
			b = append(b, '_')
		}
		b = append(b, unicode.ToUpper(c))
		previous = c
	}
	return string(b)
}
