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
	p := m.vocabulary.painters.Get().(*painter)
	defer m.vocabulary.painters.Put(p)
	p.work = w
	if near == nil {
		near = p.near(n)
	}
	if far == nil && w.err == nil {
		far = p.far(n)
	}
	p.clear()
	if w.err != nil {
		return nil, nil, w.err
	}
	return near, *far, nil
}
