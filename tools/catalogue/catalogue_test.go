package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each row has a test, and the table in docs names those that there are.
func TestTableIsCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	tests, err := find(root)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(root, "docs", "CATALOGUE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if len(tests[r.id]) == 0 {
			t.Errorf("no test is named after T%03d: %s", r.id, r.faced)
		}
		for _, name := range tests[r.id] {
			if !strings.Contains(string(table), name) {
				t.Errorf("T%03d: docs/CATALOGUE.md lacks %s (run make catalogue)", r.id, name)
			}
		}
	}
}

// Rows are found in names, comments and cases, also those that another function makes.
func TestRowsOfTests(t *testing.T) {
	root := t.TempDir()
	const source = `package p
import "testing"
// One stands for a row (T020–T022).
func TestT019One(t *testing.T) { for _, c := range cases() { t.Run(c, nil) } }
func TestTwo(t *testing.T) { t.Run("T024 x", nil) }
func cases() []string { return []string{"T030 a", more()} }
func more() string { cases(); return "T031" }
func unused() string { return "T032" }
`
	if err := os.Mkdir(filepath.Join(root, "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "p", "p_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	tests, err := find(root)
	if err != nil {
		t.Fatal(err)
	}
	for id := 19; id <= 32; id++ {
		want := map[bool]string{true: "[p TestT019One]", false: "[]"}[id <= 22 || id == 30 || id == 31]
		if id == 24 {
			want = "[p TestTwo]"
		}
		if got := fmt.Sprint(tests[id]); got != want {
			t.Errorf("T%03d: got %s, want %s", id, got, want)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "own"), 0o700), os.WriteFile(filepath.Join(root, "own", "go.mod"), nil, 0o600),
		os.WriteFile(filepath.Join(root, "own", "p_test.go"), []byte(`package p; func TestT075Own(t *testing.T) {}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	var args, own strings.Builder
	if err := printArgs(root, "own", &own); err != nil || own.String() != "-run ^(TestT075Own)$ ./.\n" {
		t.Errorf("of a module below: got %q, %v", own.String(), err)
	}
	if err := printArgs(root, ".", &args); err != nil || args.String() != "-run ^(TestT019One|TestTwo)$ ./p\n" {
		t.Errorf("got %q, %v", args.String(), err)
	}
}

// The last word on a test function is its own, not that of its subtests or its package.
func TestResultsOfTests(t *testing.T) {
	went, err := read(strings.NewReader(`{"Action":"run","Package":"` + module + `a/b","Test":"TestX"}
{"Action":"pass","Package":"` + module + `a/b","Test":"TestX/sub"}
{"Action":"fail","Package":"` + module + `a/b","Test":"TestX"}
{"Action":"skip","Package":"` + module + `a/b","Test":"TestY"}
{"Action":"pass","Package":"` + module + `a/b"}`))
	if err != nil || len(went) != 2 || went["a/b TestX"] != failed || went["a/b TestY"] != skipped {
		t.Errorf("got %v, %v", went, err)
	}
}
