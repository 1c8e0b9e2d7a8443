package cache

// list is a queue of items, linked through the items themselves.
type list struct {
	first, last int32
	length      int
}

const none = -1

func emptyList() list { return list{first: none, last: none} }

func (l *list) push(items []item, id int32) {
	items[id].prev, items[id].next = l.last, none
	if l.last == none {
		l.first = id
	} else {
		items[l.last].next = id
	}
	l.last = id
	l.length++
}

func (l *list) remove(items []item, id int32) {
	prev, next := items[id].prev, items[id].next
	if prev == none {
		l.first = next
	} else {
		items[prev].next = next
	}
	if next == none {
		l.last = prev
	} else {
		items[next].prev = prev
	}
	l.length--
}
