// Package deps keeps the import graph: who may import whom is data, and a test.
package deps

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/atlas-inference/atlas/"

// rules say what the packages below a path may import of this module: the paths listed, and what lies below them. The
// longest path that matches a package counts. Do not change this data to make a build pass: change the design first.
var rules = map[string]string{
	"atlasrt/op":                      "",
	"atlasrt/op/oracle":               "atlasrt/op",
	"atlasrt/op/optest":               "atlasrt/op atlasrt/device atlasrt/bundle generated/ops",
	"atlasrt/device":                  "atlasrt/op atlasrt/device",
	"atlasrt/model":                   "atlasrt/op atlasrt/model",
	"atlasrt/bundle":                  "atlasrt/op atlasrt/device",
	"generated":                       "atlasrt/op atlasrt/bundle",
	"atlasc":                          "atlasc/internal atlasrt/op atlasrt/device/cuda/image targets templates internal/table internal/version",
	"targets":                         "targets",
	"templates":                       "",
	"atlasrt/internal/jsontree":       "",
	"atlasrt/internal/jinja":          "atlasrt/internal/jsontree",
	"atlasrt/internal/chat":           "atlasrt/internal/jinja atlasrt/internal/jsontree",
	"atlasrt/internal/grammar":        "atlasrt/internal/grammar atlasrt/internal/jsontree",
	"atlasrt/internal/parse":          "atlasrt/internal/chat atlasrt/internal/grammar atlasrt/internal/jsontree",
	"atlasrt/internal/tokenizer":      "",
	"atlasrt/internal/option":         "",
	"atlasrt/internal/sample":         "atlasrt/internal/option",
	"atlasrt/internal/cache":          "",
	"atlasrt/internal/sched":          "atlasrt/internal/cache",
	"atlasrt/internal/weights":        "atlasrt/internal/weights",
	"atlasrt/internal/weights/dummy":  "atlasrt/internal/weights atlasrt/op",
	"atlasrt/internal/load":           "atlasrt/op atlasrt/device atlasrt/model atlasrt/internal/weights",
	"atlasrt/internal/engine":         "atlasrt/op atlasrt/device atlasrt/bundle atlasrt/model atlasrt/internal/option atlasrt/internal/sample atlasrt/internal/sched atlasrt/internal/cache",
	"atlasrt/internal/completion":     "atlasrt/internal/engine atlasrt/internal/chat atlasrt/internal/parse atlasrt/internal/tokenizer atlasrt/internal/option atlasrt/internal/sample atlasrt/internal/grammar",
	"atlasrt/internal/grammar/regex":  "",
	"atlasrt/internal/grammar/rules":  "atlasrt/internal/grammar/regex",
	"atlasrt/internal/grammar/match":  "atlasrt/internal/grammar/regex atlasrt/internal/grammar/rules",
	"atlasrt/internal/api":            "atlasrt/internal/completion atlasrt/internal/chat atlasrt/internal/jsontree atlasrt/internal/option atlasrt/internal/sample atlasrt/internal/grammar",
	"atlasrt/internal/api/openai":     "atlasrt/internal/api atlasrt/internal/completion atlasrt/internal/chat atlasrt/internal/jsontree atlasrt/internal/option atlasrt/internal/sample atlasrt/internal/grammar atlasrt/internal/parse",
	"atlasrt/internal/api/anthropic":  "atlasrt/internal/api atlasrt/internal/completion atlasrt/internal/chat atlasrt/internal/jsontree atlasrt/internal/option atlasrt/internal/parse",
	"atlasrt/internal/api/responses":  "atlasrt/internal/api atlasrt/internal/api/openai atlasrt/internal/completion atlasrt/internal/chat atlasrt/internal/jsontree atlasrt/internal/option atlasrt/internal/store atlasrt/internal/parse",
	"atlasrt/internal/store":          "",
	"atlasrt/internal/server":         "atlasrt/internal/store atlasrt/internal/api atlasrt/internal/completion atlasrt/internal/engine atlasrt/internal/chat atlasrt/internal/tokenizer atlasrt/internal/metrics atlasrt/internal/option atlasrt/internal/halfclose atlasrt/internal/grammar",
	"atlasrt/internal/halfclose":      "",
	"atlasrt/internal/metrics":        "atlasrt/internal/engine",
	"atlasrt/internal/repl":           "atlasrt/internal/chat atlasrt/internal/sample internal/table",
	"atlasrt/internal/wrap":           "",
	"atlasrt/internal/solo":           "atlasrt/op atlasrt/device atlasrt/model",
	"atlasrt/internal/calls":          "atlasrt/op atlasrt/bundle generated/ops",
	"atlasrt/internal/recall":         "atlasrt/op atlasrt/device atlasrt/model",
	"atlasrt/internal/golden":         "atlasrt/internal/weights internal/testdata",
	"atlasrt/internal/instance":       "atlasrt/op atlasrt/device atlasrt/bundle atlasrt/model atlasrt/internal generated/ops",
	"atlasrt/internal/scripted":       "atlasrt/internal/server atlasrt/internal/instance atlasrt/internal/engine atlasrt/internal/completion atlasrt/internal/chat atlasrt/internal/parse atlasrt/internal/tokenizer atlasrt/internal/sample atlasrt/internal/weights",
	"atlasrt":                         "atlasrt generated targets internal/table internal/version",
	"internal/table":                  "",
	"internal/version":                "",
	"internal/validate":               "",
	"internal/await":                  "",
	"internal/cputime":                "",
	"tools":                           "",
	"conformance":                     "conformance",
	"atlasrt/internal/grammar/kind":   "atlasrt/internal/jsontree",
	"atlasrt/internal/grammar/schema": "atlasrt/internal/grammar/kind atlasrt/internal/grammar/regex atlasrt/internal/grammar/rules atlasrt/internal/jsontree",
	"atlasrt/internal/judge":          "atlasrt/internal/judge atlasrt/internal/grammar atlasrt/internal/jsontree atlasrt/internal/tokenizer",
}

// pure packages are functions of values: no device, no unsafe, no clock, no file.
var pure = []string{"sched", "cache", "option", "sample", "chat", "jinja", "jsontree", "parse", "grammar", "tokenizer", "api", "store"}

// impure is what pure packages must not import; time is allowed for its types, time.Now is not.
var impure = []string{"unsafe", "os", "io/ioutil", "net", "net/http", "math/rand", "math/rand/v2", module + "atlasrt/device"}

// homes are the only packages that may import some libraries. Tests alone may import those packages: what judges the program is no part of it.
var homes = map[string]string{"github.com/santhosh-tekuri/jsonschema": "internal/validate"}

// testOnly is what tests of any package may import besides.
const testOnly = "internal/testdata internal/validate internal/await internal/cputime atlasrt/op atlasrt/device atlasrt/bundle atlasrt/model atlasrt/internal"

func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "testdata" && path != filepath.Join(root, "internal/testdata") || strings.HasPrefix(name, ".") && path != root) {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			check(t, root, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, root, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	rel, _ := filepath.Rel(root, path)
	folder := filepath.ToSlash(filepath.Dir(rel))
	test := strings.HasSuffix(rel, "_test.go")
	rule, allowed := ruleFor(folder)
	if rule == "" && folder != "internal/testdata" {
		t.Errorf("%s: no rule says what %s may import (add one to rules)", rel, folder)
		return
	}
	for _, spec := range file.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		local, ours := strings.CutPrefix(target, module)
		switch {
		case ours && (local == folder || below(local, allowed) || test && below(local, testOnly)):
		case ours:
			t.Errorf("%s imports %s, which %s may not (see rules)", rel, local, rule)
		}
		for library, home := range homes {
			if below(target, library) && folder != home {
				t.Errorf("%s imports %s, which %s alone may", rel, target, home)
			}
		}
		if isPure(folder) && !test {
			for _, bad := range impure {
				if target == bad {
					t.Errorf("%s imports %s, but %s is pure", rel, target, folder)
				}
			}
		}
	}
}

// ruleFor finds the longest rule that covers folder.
func ruleFor(folder string) (rule, allowed string) {
	for path, list := range rules {
		if below(folder, path) && len(path) > len(rule) {
			rule, allowed = path, list
		}
	}
	return rule, allowed
}

// below reports whether path is one of the listed folders or lies in one.
func below(path, list string) bool {
	for _, folder := range strings.Fields(list) {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

func isPure(folder string) bool {
	for _, name := range pure {
		if below(folder, "atlasrt/internal/"+name) {
			return true
		}
	}
	return false
}

// Only the server links generated code, so that a renamed field can always be regenerated.
func TestGeneratedIsImportedByTheServerAlone(t *testing.T) {
	for path, list := range rules {
		if path != "atlasrt" && below("generated", list) {
			t.Errorf("%s may import generated", path)
		}
	}
}
