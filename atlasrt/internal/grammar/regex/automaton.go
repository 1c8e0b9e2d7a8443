package regex

// Arc is a way from a state of an automaton to another one, or to itself: by one text of Over, which is not empty.
type Arc struct {
	Over Ref
	To   int // index of a state
}

// Automaton is the texts that lead from the first of some states to a final one. arcs has those of each state.
func (s *Set) Automaton(arcs [][]Arc, final []bool) Ref {
	loops := make([]Ref, len(arcs))
	for i := range arcs {
		loops[i] = s.loop(final[i])
	}
	for i := range arcs {
		ways := make([]Ref, 0, len(arcs[i])+1)
		if final[i] {
			ways = append(ways, Empty)
		}
		for _, a := range arcs[i] {
			ways = append(ways, s.concat(a.Over, loops[a.To]))
		}
		s.loops[s.nodes[loops[i]].lo] = s.or(ways)
	}
	return loops[0]
}
