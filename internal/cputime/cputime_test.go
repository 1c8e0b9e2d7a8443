package cputime

import (
	"testing"
	"time"
)

// Work counts, and waiting does not.
func TestOf(t *testing.T) {
	const least = 50 * time.Millisecond
	if got := Of(func() {
		for begun := spent(); spent()-begun < least; {
		}
	}); got < least {
		t.Errorf("work of at least %v: got %v", least, got)
	}
	const wait = 500 * time.Millisecond
	if got := Of(func() { time.Sleep(wait) }); got >= wait {
		t.Errorf("a rest of %v: got %v of work", wait, got)
	}
}
