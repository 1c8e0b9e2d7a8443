package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mention is a row, or the first and the last of several in a row.
var mention = regexp.MustCompile(`T(\d{3})(?:[–-]T(\d{3}))?`)

// find gives the tests below root, but for those of tools, by the rows that they stand for, each as its folder and its name.
func find(root string) (map[int][]string, error) {
	folders := map[string]functions{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			name := entry.Name()
			if strings.HasPrefix(name, ".") && path != root || slices.Contains([]string{"testdata", "generated", "tools"}, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if folders[folder] == nil {
			folders[folder] = functions{}
		}
		folders[folder].add(file)
		return nil
	})
	tests := map[int][]string{}
	for folder, functions := range folders {
		for name, f := range functions {
			if !strings.HasPrefix(name, "Test") {
				continue
			}
			for _, id := range rowsIn(name + " " + f.Doc.Text() + " " + functions.texts(f, map[string]bool{name: true})) {
				tests[id] = append(tests[id], folder+" "+name)
			}
		}
	}
	for _, of := range tests {
		slices.Sort(of)
	}
	return tests, err
}

// functions are those in the tests of one folder, by name; methods are left out.
type functions map[string]*ast.FuncDecl

func (all functions) add(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Body != nil {
			all[f.Name.Name] = f
		}
	}
}

// texts are the string literals of a function and of those that it uses, such as one that makes its cases.
func (all functions) texts(f *ast.FuncDecl, seen map[string]bool) (text string) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text += " " + n.Value
			}
		case *ast.Ident:
			if used := all[n.Name]; used != nil && !seen[n.Name] {
				seen[n.Name] = true
				text += all.texts(used, seen)
			}
		}
		return true
	})
	return text
}

// rowsIn are the rows that a text mentions, each once.
func rowsIn(text string) (ids []int) {
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[1]) // three digits
		last := first
		if m[2] != "" {
			last, _ = strconv.Atoi(m[2])
		}
		for id := first; id <= last; id++ {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
