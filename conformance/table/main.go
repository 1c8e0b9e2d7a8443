// Command table makes the table of clients and features of what their checks reported: table RESULTS prints Markdown.
//
// A result is a line of four columns with tabs between: client, feature, check, and ok or FAIL. The feature version names a package
// that the client is made of, in place of a check.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: table RESULTS")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		var t *table
		if t, err = read(string(text)); err == nil {
			fmt.Print(t)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "table:", err)
	os.Exit(1)
}

// columns are the features in the order of the table.
func columns() []string {
	return []string{"chat", "stream", "tools", "parallel calls", "structured", "reasoning", "responses", "tokens", "models", "errors", "cancel", "odd input", "probes"}
}

// cell counts the checks of one client and feature.
type cell struct{ passed, all int }

// row is a client.
type row struct {
	client   string
	packages []string
	cells    map[string]*cell
}

// table is what all clients reported, in the order of their names.
type table struct{ rows []*row }

// read takes results apart.
func read(text string) (*table, error) {
	t := &table{}
	for number, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("line %d has %d columns, want 4: %q", number+1, len(fields), line)
		}
		client, feature, name, verdict := fields[0], fields[1], fields[2], fields[3]
		r := t.row(client)
		switch {
		case feature == "version":
			r.packages = append(r.packages, name)
			continue
		case !slices.Contains(columns(), feature):
			return nil, fmt.Errorf("line %d: the table has no feature %q", number+1, feature)
		case verdict != "ok" && verdict != "FAIL":
			return nil, fmt.Errorf("line %d: the verdict is %q, want ok or FAIL", number+1, verdict)
		}
		c := r.cells[feature]
		if c == nil {
			c = &cell{}
			r.cells[feature] = c
		}
		if c.all++; verdict == "ok" {
			c.passed++
		}
	}
	slices.SortFunc(t.rows, func(a, b *row) int { return strings.Compare(strings.ToLower(a.client), strings.ToLower(b.client)) })
	return t, nil
}

func (t *table) row(client string) *row {
	for _, r := range t.rows {
		if r.client == client {
			return r
		}
	}
	t.rows = append(t.rows, &row{client: client, cells: map[string]*cell{}})
	return t.rows[len(t.rows)-1]
}

// String is the table as Markdown.
func (t *table) String() string {
	var b strings.Builder
	b.WriteString(`# Clients

What clients do with this server: the checks that passed, of all that there are. ` + "`make clients`" + ` runs the checks and writes this file.
The server is the real one. Only its model is not: it writes what a script says (conformance/scripts.json).

Most lines are the clients themselves, from their registries. A session is what an agent sends, written after its documented
behaviour: its headers, its probes, its odd inputs. *Tokens* is counting them before a request, *probes* are requests that an agent
makes to see what is there, *odd input* is what is valid and rare.

`)
	b.WriteString("| Client | " + strings.Join(columns(), " | ") + " |\n|---" + strings.Repeat("|---", len(columns())) + "|\n")
	for _, r := range t.rows {
		b.WriteString("| " + r.client)
		for _, feature := range columns() {
			b.WriteString(" | ")
			if c := r.cells[feature]; c != nil {
				fmt.Fprintf(&b, "%d of %d", c.passed, c.all)
			}
		}
		b.WriteString(" |\n")
	}
	b.WriteString("\n| Client | Packages |\n|---|---|\n")
	for _, r := range t.rows {
		if len(r.packages) > 0 {
			fmt.Fprintf(&b, "| %s | %s |\n", r.client, strings.Join(r.packages, ", "))
		}
	}
	return b.String()
}
