// Package docs keeps a rule: every exported name, also of a field, says what its users must know.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Names of generated code and of tests are not meant for people to look up.
func TestExportedNamesHaveComments(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "testdata" || name == "generated" || strings.HasPrefix(name, ".") && path != root) {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			check(t, path, overview(t, filepath.Dir(path)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// overview is the comment of the package in a folder.
func overview(t *testing.T, folder string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Error(err)
	}
	text := ""
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		text += file.Doc.Text()
	}
	return text
}

// check reports what a file exports without a comment: functions, methods of exported types, types, methods of interfaces, fields of
// structs, variables and constants. One comment may stand for a group. overview is the comment of its package.
func check(t *testing.T, path, overview string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	place := func(n token.Pos) int { return files.Position(n).Line }
	missing := func(name *ast.Ident) {
		if name.IsExported() {
			t.Errorf("%s: %s has no comment (say what its users must know: shapes, units, errors)", files.Position(name.Pos()), name)
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && (d.Recv == nil || receiver(d.Recv).IsExported()) {
				missing(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if d.Doc == nil && s.Doc == nil {
						missing(s.Name)
					}
					if !s.Name.IsExported() {
						continue
					}
					switch t := s.Type.(type) {
					case *ast.InterfaceType:
						methods(t, d.Doc != nil || s.Doc != nil, missing)
					case *ast.StructType:
						fields(t, overview+d.Doc.Text()+s.Doc.Text(), place, missing)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if d.Doc == nil && s.Doc == nil && s.Comment == nil {
							missing(name)
						}
					}
				}
			}
		}
	}
}

// methods reports those without a comment. What is said of an interface of one method is said of the method, and what is said of a struct
// is said of the method of its name that takes it: those of package op.
func methods(i *ast.InterfaceType, documented bool, missing func(*ast.Ident)) {
	if documented && len(i.Methods.List) == 1 {
		return
	}
	said := false // a comment also stands for the methods right below it
	for _, m := range i.Methods.List {
		said = said && m.Doc == nil || m.Doc != nil
		for _, name := range m.Names {
			if !said && m.Comment == nil && !takes(m, name.Name) {
				missing(name)
			}
		}
	}
}

// fields reports those without a comment. A comment above a field also stands for the fields right below it. What text, the comments of
// the struct and of its package, names needs no more, and neither does a struct on one line.
func fields(s *ast.StructType, text string, line func(token.Pos) int, missing func(*ast.Ident)) {
	if line(s.Pos()) == line(s.End()) {
		return
	}
	said, last := false, 0
	for _, f := range s.Fields.List {
		first := line(f.Pos())
		if f.Doc != nil {
			first = line(f.Doc.Pos())
		}
		said = f.Doc != nil || said && first == last+1
		last = line(f.End())
		for _, name := range f.Names {
			if !said && f.Comment == nil && !regexp.MustCompile(`\b`+name.Name+`\b`).MatchString(text) {
				missing(name)
			}
		}
	}
}

// takes tells whether a method has a parameter of a type.
func takes(m *ast.Field, of string) bool {
	f, ok := m.Type.(*ast.FuncType)
	return ok && slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		switch x := p.Type.(type) {
		case *ast.Ident:
			return x.Name == of
		case *ast.SelectorExpr:
			return x.Sel.Name == of
		}
		return false
	})
}

// receiver is the name of a method's type.
func receiver(of *ast.FieldList) *ast.Ident {
	for x := of.List[0].Type; ; {
		switch inner := x.(type) {
		case *ast.StarExpr:
			x = inner.X
		case *ast.IndexExpr:
			x = inner.X
		case *ast.IndexListExpr:
			x = inner.X
		default:
			name, _ := inner.(*ast.Ident)
			return name
		}
	}
}
