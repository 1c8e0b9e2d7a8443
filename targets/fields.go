package targets

import (
	_ "embed" // for the source below
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
)

// source declares Hardware: its comments are what people who write a file are told.
//
//go:embed targets.go
var source string

// Field is a key of a hardware file and what it means.
type Field struct{ Key, Doc string }

// Fields lists the keys of a hardware file in the order of Hardware's fields; those of a feature are features.NAME.KEY.
func Fields() []Field {
	file, err := parser.ParseFile(token.NewFileSet(), "targets.go", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		panic("BUG: " + err.Error()) // it has been compiled
	}
	fields := map[string][]Field{}
	ast.Inspect(file, func(n ast.Node) bool {
		t, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		s, ok := t.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, f := range s.Fields.List {
			if f.Tag == nil {
				continue
			}
			tag, err := strconv.Unquote(f.Tag.Value)
			if key := reflect.StructTag(tag).Get("toml"); err == nil && key != "" {
				fields[t.Name.Name] = append(fields[t.Name.Name], Field{key, strings.TrimSpace(f.Comment.Text())})
			}
		}
		return false
	})
	all := fields["Hardware"]
	for _, f := range fields["Feature"] {
		all = append(all, Field{"features.NAME." + f.Key, f.Doc})
	}
	return all
}
