// Package await lets tests wait for what other goroutines and programs do. How long that takes is up to the machine, which may be busy: a test that
// passes waits no longer than it must, and one that fails gives up late.
package await

import (
	"runtime"
	"testing"
	"time"
)

// Patience is how long a test waits for what comes at once on an idle machine.
const Patience = time.Minute

// pause is how long a test rests between two looks.
const pause = time.Millisecond

// Until returns when ok says so. It fails the test where that does not come about; what says what.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !within(Patience, ok) {
		t.Fatalf("not within %v: %s", Patience, what)
	}
}

// Goroutines waits until there are no more goroutines than most, a number that runtime.NumGoroutine gave. Where some are left the test fails, and
// shows them all.
func Goroutines(t testing.TB, most int) {
	t.Helper()
	if within(Patience, func() bool { return runtime.NumGoroutine() <= most }) {
		return
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines, want at most %d:\n%s", runtime.NumGoroutine(), most, stacks[:runtime.Stack(stacks, true)])
}

// within looks again and again, at least once, and says whether ok came about.
func within(patience time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
