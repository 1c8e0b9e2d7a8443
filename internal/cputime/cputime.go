// Package cputime lets tests bound the work of a call by the time that processors spend on it. Unlike that of a clock it is the same, or nearly,
// however many other programs run.
package cputime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Of calls a function and is how long the processors ran this program meanwhile: all of its threads, those of the garbage collector as well.
// What other goroutines do counts too, so that there should be none.
func Of(call func()) time.Duration {
	before := spent()
	call()
	return spent() - before
}

// spent is how long the processors have run this program.
func spent() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		panic(fmt.Sprintf("BUG: the processors' time of a program: %v", err))
	}
	return time.Duration(now.Nano())
}
