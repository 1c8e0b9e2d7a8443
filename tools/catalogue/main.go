// Command catalogue writes docs/CATALOGUE.md: which tests stand for each row of the test catalogue, and how they went. It reads what
// `go test -json` printed, and `catalogue -args FOLDER` says what of the module in a folder to run for it:
//
//	go test -json $(go run ./tools/catalogue -args .) | go run ./tools/catalogue > docs/CATALOGUE.md
//
// A test stands for the rows that its name, its comment or its texts say, such as T053 or T019–T023. Its texts are the string
// literals in it, of which most are names of cases, and those in functions of its package that it uses. A row passes where all of its
// tests do.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	err := error(nil)
	if len(os.Args) == 3 && os.Args[1] == "-args" {
		err = printArgs(".", filepath.Clean(os.Args[2]), os.Stdout)
	} else {
		err = run(".", os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "catalogue:", err)
		os.Exit(1)
	}
}

// printArgs writes the arguments of go test that run the tests of all rows in a module, and no others of the packages that have some.
func printArgs(root, module string, to io.Writer) error {
	tests, err := find(root)
	if err != nil {
		return err
	}
	var names, folders []string
	for _, r := range rows {
		for _, test := range tests[r.id] {
			folder, name, _ := strings.Cut(test, " ")
			if moduleOf(root, folder) != module {
				continue
			}
			inside, err := filepath.Rel(module, folder)
			if err != nil {
				return err
			}
			names, folders = append(names, name), append(folders, "./"+filepath.ToSlash(inside))
		}
	}
	slices.Sort(names)
	slices.Sort(folders)
	_, err = fmt.Fprintf(to, "-run ^(%s)$ %s\n", strings.Join(slices.Compact(names), "|"), strings.Join(slices.Compact(folders), " "))
	return err
}

// moduleOf is the folder of the module that a folder below root belongs to.
func moduleOf(root, folder string) string {
	for ; folder != "."; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(root, folder, "go.mod")); err == nil {
			break
		}
	}
	return folder
}

// run writes the table of the tree below root.
func run(root string, results io.Reader, to io.Writer) error {
	tests, err := find(root)
	if err != nil {
		return err
	}
	went, err := read(results)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	fmt.Fprintf(out, "# Catalogue of faults\n\nWhat clients send and do, what they get, and the tests that prove it. Made by `make catalogue`.\n\n")
	fmt.Fprintf(out, "| Row | A client sends or does | It gets | Tests | Result |\n|---|---|---|---|---|\n")
	var wrong []error
	for _, r := range rows {
		of := tests[r.id]
		if len(of) == 0 {
			wrong = append(wrong, fmt.Errorf("no test is named after T%03d", r.id))
			continue
		}
		names, verdict := make([]string, len(of)), passed // the worst of them
		for i, t := range of {
			names[i] = "`" + t + "`"
			how, ran := went[t]
			if !ran {
				how = absent
			}
			verdict = max(verdict, how)
		}
		if verdict != passed {
			wrong = append(wrong, fmt.Errorf("T%03d: %s", r.id, verdict))
		}
		fmt.Fprintf(out, "| T%03d | %s | %s | %s | %s |\n", r.id, r.faced, r.right, strings.Join(names, ", "), verdict)
	}
	fmt.Fprintf(out, "\nRows %s.\n", decoded)
	return errors.Join(append(wrong, out.Flush())...)
}

// verdict is how a test went, the worst last.
type verdict int

const (
	passed verdict = iota
	skipped
	absent
	failed
)

func (v verdict) String() string { return []string{"passed", "skipped", "not run", "failed"}[v] }

// read gives how each test function went, by folder and name: "atlasrt/internal/parse TestHermes". Those that were not run are
// absent.
func read(results io.Reader) (map[string]verdict, error) {
	went := map[string]verdict{}
	lines := json.NewDecoder(results)
	for {
		var e struct{ Action, Package, Test string }
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return went, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading what go test -json printed: %w", err)
		}
		at := slices.Index([]string{"pass", "skip", "", "fail"}, e.Action)
		if e.Test != "" && at >= 0 && !strings.Contains(e.Test, "/") {
			went[strings.TrimPrefix(e.Package, module)+" "+e.Test] = verdict(at)
		}
	}
}

const module = "github.com/atlas-inference/atlas/"
