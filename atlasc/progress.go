package main

import (
	"fmt"
	"io"
	"time"

	"github.com/atlas-inference/atlas/atlasc/internal/toolchain"
)

// sayEvery is how long a build says nothing where its messages are kept.
const sayEvery = 10 * time.Second

// progress says how far the compilation of a hardware's kernels is: in one line of a terminal, else now and then in a line of its own.
type progress struct {
	to       io.Writer
	terminal bool
	hardware string
	now      func() time.Time
	start    time.Time
	said     time.Time
}

func newProgress(to io.Writer, terminal bool, hardware string, now func() time.Time) *progress {
	return &progress{to: to, terminal: terminal, hardware: hardware, now: now, start: now(), said: now()}
}

// Compiled is called after each unit.
func (p *progress) Compiled(d toolchain.Progress) {
	now := p.now()
	text := fmt.Sprintf("%s: compiled %d of %d", p.hardware, d.Done, d.Total)
	if left := timeLeft(now.Sub(p.start), d); left > 0 {
		text += ", about " + left.String() + " left"
	}
	switch {
	case p.terminal:
		fmt.Fprint(p.to, "\r\033[K"+text)
	case now.Sub(p.said) >= sayEvery && d.Done < d.Total:
		p.said = now
		fmt.Fprintln(p.to, text)
	}
}

// End clears the line.
func (p *progress) End() {
	if p.terminal {
		fmt.Fprint(p.to, "\r\033[K")
	}
}

// timeLeft goes by the units that were compiled, since those that were kept took no time; zero where that says nothing yet.
func timeLeft(elapsed time.Duration, d toolchain.Progress) time.Duration {
	compiled := d.Done - d.Kept
	if compiled <= 0 {
		return 0
	}
	return (elapsed / time.Duration(compiled) * time.Duration(d.Total-d.Done)).Round(time.Second)
}
