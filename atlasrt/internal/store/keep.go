package store

import "time"

// find is an answer that is not too old; nil: there is none.
func (s *Store) find(owner Owner, id string, now time.Time) *response {
	s.trim(now)
	element := s.responses[name{owner, id}]
	if element == nil {
		return nil
	}
	return element.Value.(*response)
}

// add puts items at the end of an answer's turn. Nobody goes on from it yet.
func (s *Store) add(r *response, items []Item) {
	t := r.turn
	t.items = append(t.items[:len(t.items):len(t.items)], items...)
	for _, item := range items {
		size := int64(len(item.JSON)) + itemBytes
		t.bytes += size
		s.bytes += size
		s.items[name{r.owner, item.ID}] = owned{item, r}
	}
	before, bytes := t.before.Size()
	t.count, t.all = before+len(t.items), bytes+t.bytes
}

func (s *Store) show(r *response, body []byte) {
	s.bytes += int64(len(body) - len(r.body))
	r.body = body
}

// trim forgets what is too old, and the oldest while there is too much.
func (s *Store) trim(now time.Time) {
	for front := s.oldest.Front(); front != nil; front = s.oldest.Front() {
		r := front.Value.(*response)
		if now.Sub(r.began) < s.limits.Age && len(s.responses) <= s.limits.Responses && s.bytes <= s.limits.Bytes {
			return
		}
		s.forget(r)
	}
}

// forget drops an answer, and the turns that nothing else goes on from.
func (s *Store) forget(r *response) {
	s.oldest.Remove(s.responses[r.name])
	delete(s.responses, r.name)
	for _, item := range r.turn.items {
		if key := (name{r.owner, item.ID}); s.items[key].by == r {
			delete(s.items, key)
		}
	}
	s.bytes -= int64(len(r.body)) + responseBytes
	s.release(r.turn)
}

// hold counts a use of a turn. One that had none comes back with those before it: somebody went on from it while it was dropped.
func (s *Store) hold(t *Turn) {
	for ; t != nil; t = t.before {
		if t.uses++; t.uses > 1 {
			return
		}
		s.bytes += t.bytes
	}
}

// release takes a use back.
func (s *Store) release(t *Turn) {
	for ; t != nil; t = t.before {
		if t.uses--; t.uses > 0 {
			return
		}
		s.bytes -= t.bytes
	}
}
