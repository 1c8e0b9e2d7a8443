package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// workers run the jobs of guides, in the order in which they came, on a few goroutines that end when there are no more.
type workers struct {
	most   int          // goroutines
	held   atomic.Int32 // tasks that are held until their job has ended
	wake   func()       // tells the loop that a job has ended, where tasks are held
	counts *counters    // of masks
	run    func()       // work, so that beginning it allocates nothing
	mutex  sync.Mutex   // over what follows
	queue  []*guide     // from first on
	first  int
	active int
}

func newWorkers(wake func(), counts *counters) *workers {
	w := &workers{most: min(max(runtime.GOMAXPROCS(0)/2, 1), 8), wake: wake, counts: counts}
	w.run = w.work
	return w
}

// add has a job done.
func (w *workers) add(g *guide) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.queue = append(w.queue, g)
	if w.active < w.most {
		w.active++
		go w.run()
	}
}

// take is the next job; nil where there is none.
func (w *workers) take() *guide {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.first == len(w.queue) {
		w.queue, w.first = w.queue[:0], 0
		w.active--
		return nil
	}
	g := w.queue[w.first]
	w.queue[w.first] = nil
	w.first++
	return g
}

func (w *workers) work() {
	for g := w.take(); g != nil; g = w.take() {
		begun := time.Now()
		if g.job(); g.err == nil && len(g.forced) == 0 {
			w.counts.masks.add(time.Since(begun))
		}
		g.made <- struct{}{}
		if w.held.Load() > 0 {
			w.wake()
		}
	}
}
