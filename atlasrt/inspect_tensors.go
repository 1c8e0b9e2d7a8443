package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/quant"
	"github.com/atlas-inference/atlas/internal/table"
)

// Headers of what describeTensors and describeMatrices list.
var (
	tensorTitles = []string{"tensor", "shape", "stored", "kept"}
	matrixTitles = []string{"matrix", "stored", "scales", "kernels"}
)

// describeTensors lists what a model reads, and the form that it is kept in.
func describeTensors(c weights.Checkpoint, counter *load.Counter) []entry {
	var tensors []entry
	for _, want := range counter.Wants {
		stored := "missing"
		if info, ok := c.Info(want.Name); ok {
			stored = info.Type.String()
		}
		tensors = append(tensors, entry{want.Name, []string{fmt.Sprint(want.Shape), stored, counter.Kept(want.Name)}})
	}
	return tensors
}

// describeMatrices says of each matrix how it is stored, what the configuration says of it, where its scales are and which kernels read it when
// one sequence decodes. p is nil where the checkpoint cannot be served: kernels are not known then, but the matrices are marked for which there
// are none.
func describeMatrices(target *instance.Target, counter *load.Counter, p *instance.Prepared) ([]entry, error) {
	var readers map[string][]string
	if p != nil {
		var err error
		if readers, err = p.Kernels(); err != nil {
			return nil, err
		}
	}
	var matrices []entry
	for _, want := range counter.Wants {
		linear := want.Name[:strings.LastIndexByte(want.Name, '.')+1]
		stack := counter.Stack(linear + "weight")
		s := counter.Storage(linear + "weight")
		if stack == "" || s.Name != want.Name { // a vector, or scales
			continue
		}
		kernels := strings.Join(readers[stack], "\n")
		if s.Problem() != "" || target.Set.PackedBytes(s.Scheme, 256, 256) == 0 {
			kernels = "none"
		}
		matrices = append(matrices, entry{strings.TrimSuffix(linear, "."), []string{storedAs(s), listScales(s), kernels}})
	}
	return matrices, nil
}

// storedAs is how a matrix is quantised, or else the type of its elements or blocks, and the rule that says so, or what else the rule says. It
// is the same for all layers: of numbers between dots it says N.
func storedAs(s load.Storage) string {
	form, text := s.Form(), s.Type.String()
	if s.Problem() == "" && form != quant.Plain && form != quant.Unknown {
		text = form.String()
	}
	rule := s.Rule
	if rule.By == "" {
		return text
	}
	by := strings.Split(rule.By, ".")
	for i, piece := range by {
		if _, err := strconv.Atoi(piece); err == nil {
			by[i] = "N"
		}
	}
	if rule.Form != form && rule.Form != quant.Other {
		text += ",\nsaid to be " + rule.Form.String()
	}
	return text + "\nby " + strings.Join(by, ".")
}

// listScales names the scales of a matrix by the ends of their names, a line each.
func listScales(s load.Storage) string {
	var all []string
	for _, scale := range s.Scales() {
		all = append(all, scale.Name[strings.LastIndexByte(scale.Name, '.')+1:])
	}
	return strings.Join(all, "\n")
}

// layersBelow puts the layers of a matrix on a line below its name.
func layersBelow(name string) string {
	const layers = "model.layers."
	rest, ok := strings.CutPrefix(name, layers)
	numbers, module, numbered := strings.Cut(rest, ".")
	if !ok || !numbered {
		return strings.TrimPrefix(name, "model.")
	}
	if numbers, several := strings.CutPrefix(numbers, "{"); several {
		return module + "\nof layers " + strings.TrimSuffix(numbers, "}")
	}
	return module + "\nof layer " + numbers
}

// wholly shows a name as it is.
func wholly(name string) string { return name }

// printTensors prints a table, as many layers and experts in one line as are alike, whose names show writes.
func printTensors(w io.Writer, titles []string, tensors []entry, all bool, show func(name string) string) error {
	if all {
		t := table.New(titles...)
		for _, x := range tensors {
			t.Row(append([]string{x.Name}, x.Cells...)...)
		}
		return t.Print(w)
	}
	t := table.New(append(titles[:len(titles):len(titles)], "\tnumber")...)
	for _, g := range collapse(tensors) {
		t.Row(append(append([]string{show(g.name())}, g.Cells...), fmt.Sprint(len(g.numbers)))...)
	}
	return t.Print(w)
}
