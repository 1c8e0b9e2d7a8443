package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/targets"
)

// newHardware writes a hardware's file and base manifests.
func (c *newCommand) newHardware(env *environment) error {
	p, err := loadTarget(env.root, c.From)
	if err != nil {
		return err
	}
	from := p.plan.Hardware[0]
	if err := targets.CheckName(c.Hardware); err != nil {
		return usageError{err}
	}
	text, err := os.ReadFile(filepath.Join(p.root, "targets", filepath.FromSlash(from.File)))
	if err != nil {
		return fmt.Errorf("read the hardware to begin from: %w", err)
	}
	files := []file{{"targets/hardware/" + c.Hardware + ".toml", hardwareFile(c.Hardware, from.Hardware, string(text))}}
	for _, t := range from.Targets {
		if t.Model == plan.Base {
			name := strings.Join([]string{plan.Kernels, c.Hardware, plan.Base, t.Quant, "kernels.toml"}, "/")
			files = append(files, file{name, baseManifest(c.Hardware, from.Name, t.Quant, c.Include)})
		}
	}
	if err := env.create(p.root, files); err != nil {
		return err
	}
	if c.Include {
		fmt.Fprintf(env.stdout, "\nThe manifests include every kernel of %s. Correct flags and needs in %s, then run: atlasc build --hw %s\n", from.Name, files[0].name, c.Hardware)
		return nil
	}
	return missingOperations(env, p.plan.Contract, from)
}

// hardwareFile is a hardware's file with every key explained, and the values of another hardware.
func hardwareFile(name string, from *targets.Hardware, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: say which processors these are, and where each fact comes from. All values are those of %s.\n", name, from.Name)
	value := reflect.ValueOf(from).Elem()
	for _, f := range targets.Fields() {
		if strings.Contains(f.Key, ".") {
			continue // of a feature
		}
		field := value.FieldByNameFunc(func(field string) bool {
			s, _ := value.Type().FieldByName(field)
			return s.Tag.Get("toml") == f.Key
		})
		if field.Kind() == reflect.Map {
			continue // tables come last in TOML
		}
		comment := ""
		if field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0 {
			comment = "# "
		}
		fmt.Fprintf(&b, "\n# %s\n%s%s = %s\n", f.Doc, comment, f.Key, literal(field))
	}
	tables := tablesOf(text)
	for _, f := range targets.Fields() {
		table, _, inner := strings.Cut(f.Key, ".")
		if field := value.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, table) }); field.Kind() == reflect.Map {
			word := "table"
			if inner {
				word = "key"
			}
			fmt.Fprintf(&b, "\n# %s %s: %s", word, f.Key, f.Doc)
		}
	}
	b.WriteString("\n")
	if tables != "" {
		b.WriteString("\n" + tables)
	}
	return b.String()
}

// literal is a string, an integer or a list of strings in TOML.
func literal(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	case reflect.Int64:
		return fmt.Sprint(v.Int())
	}
	quoted := make([]string, v.Len())
	for i := range quoted {
		quoted[i] = fmt.Sprintf("%q", v.Index(i).String())
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// tablesOf is a TOML text from the first table on, with the comment before it.
func tablesOf(text string) string {
	lines := strings.SplitAfter(text, "\n")
	first := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "[") })
	if first < 0 {
		return ""
	}
	for first > 0 && strings.HasPrefix(lines[first-1], "#") {
		first--
	}
	return strings.Join(lines[first:], "")
}

// baseManifest is a manifest without entries of its own.
func baseManifest(hardware, from, scheme string, include bool) string {
	comment := "# "
	if include {
		comment = ""
	}
	return fmt.Sprintf(`# %[1]s weights on %[2]s. Entries here come before those of included files: the first whose condition holds serves a call.
scheme = "%[1]s"
%[4]sinclude = ["../../../%[3]s/base/%[1]s/kernels.toml"] # every kernel of %[3]s
`, scheme, hardware, from, comment)
}

// missingOperations prints what a set without entries lacks, and what serves it on another hardware.
func missingOperations(env *environment, c *contract.Contract, from *plan.Hardware) error {
	fmt.Fprintf(env.stdout, "\natlasc check will miss a kernel for each of these, and a [[layout]] for each scheme:\n\n")
	t := newTable(env, "operation", "scheme", "serves on "+from.Name, "body")
	for _, op := range c.Ops {
		if !op.Required || op.Partial {
			continue
		}
		for _, cs := range from.Sets[0].Dispatch(op.Name).Cases {
			last := cs.Branches[len(cs.Branches)-1]
			schemes := make([]string, len(cs.Schemes))
			for i, k := range cs.Schemes {
				schemes[i] = plan.SchemeName(k)
			}
			t.Row(op.Name, strings.Join(schemes, ", "), last.Name, last.Body)
		}
	}
	return t.render()
}
