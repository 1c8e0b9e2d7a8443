package tokenizer

// pairQueue orders the pairs of a long word that may merge: the lowest rank first, of equal ranks the leftmost.
//
// It is a heap of runs. A run is pairs of one rank from left to right, and only its first pair is in the heap. A text
// that repeats itself, however long, has few runs, so that a pair costs a step and no walk through a large heap.
type pairQueue struct {
	heap  []queued
	runs  []pairRun
	pairs []laterPair
	open  [openRuns]int32 // 1 + a run that another pair may join, near the place of its rank; 0: none

	freeRun, freePair int32 // lists of what can be used again
}

const (
	openRuns   = 1024
	openPlaces = 4 // where a rank's run is looked for
)

// queued is the first pair of a run: rank<<32 | position.
type queued struct {
	pair uint64
	run  int32
}

// pairRun is what follows the first pair of a run.
type pairRun struct {
	rank, end   int32 // noMerge: the run is free; the last position
	first, last int32 // of pairs, or none; first of a free run is the next free one
}

type laterPair struct{ position, next int32 }

const none = -1

// reset empties the queue and makes room for pairs.
func (q *pairQueue) reset() {
	q.heap, q.runs, q.pairs = q.heap[:0], q.runs[:0], q.pairs[:0]
	q.freeRun, q.freePair = none, none
	clear(q.open[:])
}

// push adds a pair.
func (q *pairQueue) push(rank, position int32) {
	first := uint32(rank) % openRuns
	place := &q.open[first]
	for i := range uint32(openPlaces) {
		at := &q.open[(first+i)%openRuns]
		if *at == 0 || q.runs[*at-1].rank == noMerge {
			place = at
			break
		}
		if r := &q.runs[*at-1]; r.rank == rank && r.end < position {
			q.join(r, position)
			return
		}
	}
	run := pairRun{rank: rank, end: position, first: none, last: none}
	id := q.freeRun
	if id != none {
		q.freeRun = q.runs[id].first
		q.runs[id] = run
	} else {
		id = int32(len(q.runs))
		q.runs = append(q.runs, run)
	}
	*place = id + 1
	q.heap = append(q.heap, queued{})
	q.up(len(q.heap)-1, queued{uint64(rank)<<32 | uint64(uint32(position)), id})
}

// join puts a pair behind the others of its run.
func (q *pairQueue) join(r *pairRun, position int32) {
	at := q.pair(position)
	if r.first == none {
		r.first = at
	} else {
		q.pairs[r.last].next = at
	}
	r.last, r.end = at, position
}

func (q *pairQueue) pair(position int32) int32 {
	at := q.freePair
	if at == none {
		q.pairs = append(q.pairs, laterPair{position, none})
		return int32(len(q.pairs) - 1)
	}
	q.freePair = q.pairs[at].next
	q.pairs[at] = laterPair{position, none}
	return at
}

// pop takes the first pair; false where there is none.
func (q *pairQueue) pop() (rank, position int32, ok bool) {
	if len(q.heap) == 0 {
		return 0, 0, false
	}
	top := q.heap[0]
	rank, position = int32(top.pair>>32), int32(uint32(top.pair))
	r := &q.runs[top.run]
	if at := r.first; at != none {
		next := q.pairs[at]
		r.first = next.next
		q.pairs[at].next, q.freePair = q.freePair, at
		q.down(queued{uint64(rank)<<32 | uint64(uint32(next.position)), top.run})
		return rank, position, true
	}
	r.rank, r.first, q.freeRun = noMerge, q.freeRun, top.run
	last := q.heap[len(q.heap)-1]
	if q.heap = q.heap[:len(q.heap)-1]; len(q.heap) > 0 {
		q.down(last)
	}
	return rank, position, true
}

// up puts item at its place between at and the root.
func (q *pairQueue) up(at int, item queued) {
	for at > 0 {
		parent := (at - 1) / 2
		if q.heap[parent].pair <= item.pair {
			break
		}
		q.heap[at] = q.heap[parent]
		at = parent
	}
	q.heap[at] = item
}

// down puts item at its place below the root, whose place is free.
func (q *pairQueue) down(item queued) {
	at := 0
	for {
		child := 2*at + 1
		if child >= len(q.heap) {
			break
		}
		if child+1 < len(q.heap) && q.heap[child+1].pair < q.heap[child].pair {
			child++
		}
		if item.pair <= q.heap[child].pair {
			break
		}
		q.heap[at] = q.heap[child]
		at = child
	}
	q.heap[at] = item
}
