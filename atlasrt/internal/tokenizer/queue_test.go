package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The queue gives what a sorted list gives, whatever ranks share a place and in whatever order pairs come.
func TestPairQueueOrder(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		ranks := []int32{7, 7 + openRuns, 7 + 2*openRuns, 8, 9 + openRuns, 10, 1 << 30, 0}[:1+random.IntN(8)]
		var q pairQueue
		var want []uint64
		for round := range 2 {
			q.reset()
			want = want[:0]
			for step := range 600 {
				if random.IntN(3) > 0 {
					rank, position := ranks[random.IntN(len(ranks))], int32(step)
					if random.IntN(4) == 0 {
						position = int32(random.IntN(600))
					}
					q.push(rank, position)
					want = append(want, uint64(rank)<<32|uint64(position))
					slices.Sort(want)
					continue
				}
				rank, position, ok := q.pop()
				if ok != (len(want) > 0) || ok && uint64(rank)<<32|uint64(position) != want[0] {
					t.Fatalf("seed %d, round %d, step %d: popped rank %d at %d, %v, want %v", seed, round, step, rank, position, ok, want[:min(len(want), 1)])
				}
				if ok {
					want = want[1:]
				}
			}
		}
	}
}

// What repeats itself takes a step for each pair: the heap stays small however long the text is (T087).
func TestRepeatedTextHasFewRuns(t *testing.T) {
	for _, c := range published {
		tokenizer := open(t, c.name)
		for _, run := range []string{" ", "a", "ab", "abc", "\u0301", "-", "中"} {
			text := strings.Repeat(run, 60_000/len(run))
			if tokenizer.model.byteLevel == false {
				text = strings.ReplaceAll(text, " ", metaspace)
			}
			var m merger
			tokenizer.model.encode(&m, nil, text)
			if got := len(m.queue.runs); got > 200 {
				t.Errorf("%s: %d bytes of %q make %d runs, want at most 200", c.name, len(text), run, got)
			}
		}
	}
}
