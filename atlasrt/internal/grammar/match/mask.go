package match

// mask is near tokens that may come at a node: a list where they are few.
type mask struct {
	few  []int32
	many []uint32 // nil: few has them all
}

// Mask sets the bits of to, Words long, that are tokens which may come; it clears the others. Whether the text may end is Done's to say. An error says
// that the limits do not allow so much work; other texts of the grammar go on.
func (s State) Mask(to []uint32) error {
	if s.node == nil {
		clear(to)
		return nil
	}
	near, far, err := s.machine.masks(s.node)
	if err != nil {
		return err
	}
	if near.many != nil {
		copy(to, near.many)
	} else {
		clear(to)
	}
	for _, id := range near.few {
		to[id/32] |= 1 << (id % 32)
	}
	for _, id := range far {
		to[id/32] |= 1 << (id % 32)
	}
	return nil
}

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

// masks are the near and the far tokens that may come at a node. They are made once.
func (m *Machine) masks(n *node) (*mask, []int32, error) {
	w := m.work()
	if n = m.fresh(n, w); n == nil {
		return nil, nil, w.err
	}
	near, far := n.near.Load(), n.far.Load()
	if near != nil && far != nil {
		return near, *far, nil
	}
	made := m.vocabulary.maskers.Get().(*masker)
	defer m.vocabulary.maskers.Put(made)
	made.work = w
	if near == nil {
		near = made.nearMask(n)
	}
	if far == nil && w.err == nil {
		far = made.farTokens(n)
	}
	made.clear()
	if w.err != nil {
		return nil, nil, w.err
	}
	return near, *far, nil
}
