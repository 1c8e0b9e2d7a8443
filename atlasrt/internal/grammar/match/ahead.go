package match

import "fmt"

// Only is the one token that may come. It is false where there are several or none, where the text may end, and where the limits do not allow to
// tell.
func (s State) Only() (token int32, ok bool) {
	if s.node == nil || s.node.accepts {
		return 0, false
	}
	near, far, err := s.machine.masks(s.node)
	switch {
	case err != nil || near.many != nil || len(near.few)+len(far) != 1:
		return 0, false
	case len(far) == 1:
		return far[0], true
	}
	return near.few[0], true
}

// Forced is the bytes that must come, at most limit of them.
func (s State) Forced(limit int) []byte {
	if s.node == nil {
		return nil
	}
	var forced []byte
	w := s.machine.work()
	for n := s.machine.fresh(s.node, w); n != nil && len(forced) < limit && !n.accepts; {
		b, next := n.onlyByte(w)
		if next == nil {
			break
		}
		forced = append(forced, b)
		n = next
	}
	return forced
}

// onlyByte is the one byte that may come, and the node behind it. It is nil where there are several or none.
func (n *node) onlyByte(w *work) (byte, *node) {
	var only *node
	found := 0
	for b := range 256 {
		next := n.step(byte(b), w)
		if next == nil || only != nil && next != n.tables.dead {
			return 0, nil
		}
		if next != n.tables.dead {
			only, found = next, b
		}
	}
	return byte(found), only
}

// Tree makes the masks for a tree of drafted tokens: the first, of s itself, and one behind each token. A token's parent is the number of
// the token before it, or -1 where s is; it comes before the token. to has len(tokens)+1 masks, Words long each. Behind a token that may
// not come nothing may come.
func (s State) Tree(tokens, parents []int32, to []uint32) error {
	if s.machine == nil {
		clear(to)
		return nil
	}
	words := s.machine.vocabulary.Words()
	if len(parents) != len(tokens) || len(to) != words*(len(tokens)+1) {
		return fmt.Errorf("a tree of %d tokens has %d parents and %d words of masks, want %d and %d", len(tokens), len(parents), len(to), len(tokens), words*(len(tokens)+1))
	}
	states := make([]State, len(tokens)+1)
	states[0] = s
	for at, token := range tokens {
		if parents[at] < -1 || int(parents[at]) >= at {
			return fmt.Errorf("token %d of a tree has the parent %d, want one from -1 to %d", at, parents[at], at-1)
		}
		states[at+1], _ = states[parents[at]+1].Next(token)
	}
	for at, state := range states {
		if err := state.Mask(to[at*words : (at+1)*words]); err != nil {
			return err
		}
	}
	return nil
}
