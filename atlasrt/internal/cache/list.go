package cache

// list is a queue of blocks, linked through the blocks themselves.
type list struct {
	first, last int32
	length      int
}

const none = -1

func emptyList() list { return list{first: none, last: none} }

func (l *list) push(blocks []block, id int32) {
	blocks[id].prev, blocks[id].next = l.last, none
	if l.last == none {
		l.first = id
	} else {
		blocks[l.last].next = id
	}
	l.last = id
	l.length++
}

func (l *list) remove(blocks []block, id int32) {
	prev, next := blocks[id].prev, blocks[id].next
	if prev == none {
		l.first = next
	} else {
		blocks[prev].next = next
	}
	if next == none {
		l.last = prev
	} else {
		blocks[next].prev = prev
	}
	l.length--
}
