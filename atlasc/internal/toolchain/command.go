package toolchain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// run returns what a command prints, standard error included, without the middle of a long text.
func run(ctx context.Context, dir, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	// A compiler is a driver of other programs: all of them end with the build.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out transcript
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimRight(out.String(), "\n"), err
}

// compile runs a compiler on a unit. The error is a Failure where the source is to blame.
func compile(ctx context.Context, dir, command string, u Unit, args ...string) error {
	out, err := run(ctx, dir, command, args...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &exit):
		return fmt.Errorf("%s: run the compiler on %s: %w", u.At, u.Name, err)
	case !exit.Exited():
		return fmt.Errorf("%s: the compiler did not finish %s: %s (is there enough memory?)\n%s", u.At, u.Name, exit, out)
	}
	return &Failure{u, cmp.Or(out, "the compiler says nothing but "+exit.Error())}
}

// How much of a long text is kept: the first messages, which matter, and the last, which count the others.
const (
	headBytes = 12 << 10
	tailBytes = 4 << 10
)

// transcript keeps the beginning and the end of what is written to it.
type transcript struct {
	head, tail []byte
	lines      int // in all
	cut        bool
}

func (t *transcript) Write(p []byte) (int, error) {
	n := len(p)
	t.lines += bytes.Count(p, []byte("\n"))
	room := min(headBytes-len(t.head), len(p))
	t.head = append(t.head, p[:room]...)
	t.tail = append(t.tail, p[room:]...)
	if len(t.tail) > 2*tailBytes {
		t.tail = append(t.tail[:0], t.tail[len(t.tail)-tailBytes:]...)
		t.cut = true
	}
	return n, nil
}

// String is the text; where it was too long, whole lines of it and how many are missing.
func (t *transcript) String() string {
	if !t.cut {
		return string(t.head) + string(t.tail)
	}
	head, tail := t.head, t.tail
	if end := bytes.LastIndexByte(head, '\n'); end >= 0 {
		head = head[:end]
	}
	if start := bytes.IndexByte(tail, '\n'); start >= 0 {
		tail = tail[start+1:]
	}
	left := t.lines - bytes.Count(head, []byte("\n")) - 1 - bytes.Count(tail, []byte("\n"))
	return fmt.Sprintf("%s\n... %d lines are left out ...\n%s", head, max(0, left), tail)
}
