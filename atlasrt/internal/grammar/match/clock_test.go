package match

import (
	"syscall"
	"time"
)

// rusageThread is what getrusage counts for the calling thread alone.
const rusageThread = 1

// clock is the time that the calling thread has run: lock it to the goroutine.
func clock() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &u); err != nil {
		panic(err)
	}
	return time.Duration(syscall.TimevalToNsec(u.Utime) + syscall.TimevalToNsec(u.Stime))
}
