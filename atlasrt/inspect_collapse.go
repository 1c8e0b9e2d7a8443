package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// entry is a line of a table about tensors.
type entry struct {
	Name  string
	Cells []string
}

// tensorGroup is tensors that differ in numbers of their names alone. The numbers are a full product: of layers, or of layers and experts.
type tensorGroup struct {
	entry
	parts   []string // of the name, between its numbers
	numbers [][]int  // of each tensor, one for each gap between parts
}

// collapse groups tensors in the order in which they first come.
func collapse(tensors []entry) []tensorGroup {
	var order []string
	groups := map[string]*tensorGroup{}
	for _, t := range tensors {
		parts, numbers := splitNumbers(t.Name)
		key := fmt.Sprintf("%q", slices.Concat(t.Cells, parts))
		if groups[key] == nil {
			groups[key] = &tensorGroup{entry: t, parts: parts}
			order = append(order, key)
		}
		groups[key].numbers = append(groups[key].numbers, numbers)
	}
	var out []tensorGroup
	for _, key := range order {
		out = append(out, groups[key].products()...)
	}
	return out
}

// splitNumbers takes the whole numbers between dots out of a name.
func splitNumbers(name string) (parts []string, numbers []int) {
	part := ""
	for i, piece := range strings.Split(name, ".") {
		if i > 0 {
			part += "."
		}
		if n, err := strconv.Atoi(piece); err == nil && n >= 0 && strconv.Itoa(n) == piece {
			parts, numbers, part = append(parts, part), append(numbers, n), ""
			continue
		}
		part += piece
	}
	return append(parts, part), numbers
}

// products are the group, or its parts by the first number where not every combination of numbers is there.
func (g *tensorGroup) products() []tensorGroup {
	count := 1
	for i := range len(g.parts) - 1 {
		count *= len(g.values(i))
	}
	if count == len(g.numbers) || len(g.parts) < 3 {
		return []tensorGroup{*g}
	}
	var out []tensorGroup
	for _, first := range g.values(0) {
		part := tensorGroup{entry: g.entry, parts: slices.Clone(g.parts)}
		part.parts = append([]string{g.parts[0] + strconv.Itoa(first) + g.parts[1]}, g.parts[2:]...)
		for _, numbers := range g.numbers {
			if numbers[0] == first {
				part.numbers = append(part.numbers, numbers[1:])
			}
		}
		out = append(out, part.products()...)
	}
	return out
}

// values are the numbers of one gap, sorted.
func (g *tensorGroup) values(gap int) []int {
	var all []int
	for _, numbers := range g.numbers {
		all = append(all, numbers[gap])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// name is the name with its numbers as ranges.
func (g *tensorGroup) name() string {
	text := g.parts[0]
	for i, part := range g.parts[1:] {
		values := g.values(i)
		if len(values) == 1 {
			text += strconv.Itoa(values[0]) + part
			continue
		}
		text += "{" + ranges(values) + "}" + part
	}
	return text
}

// ranges writes sorted numbers as 0…3, 5, 7…9.
func ranges(sorted []int) string {
	var out []string
	for i := 0; i < len(sorted); {
		end := i
		for end+1 < len(sorted) && sorted[end+1] == sorted[end]+1 {
			end++
		}
		switch end - i {
		case 0:
			out = append(out, strconv.Itoa(sorted[i]))
		case 1:
			out = append(out, strconv.Itoa(sorted[i]), strconv.Itoa(sorted[end]))
		default:
			out = append(out, fmt.Sprintf("%d…%d", sorted[i], sorted[end]))
		}
		i = end + 1
	}
	return strings.Join(out, ", ")
}
