package engine

import (
	"fmt"
	"runtime/debug"
	"time"
)

// Heartbeat is when the loop last began a step, or now while there is nothing to do. One that stays behind means that a
// step hangs.
func (e *Engine) Heartbeat() time.Time {
	if beat := e.beat.Load(); beat >= 0 {
		return e.started.Add(time.Duration(beat))
	}
	return time.Now()
}

// Err is why steps fail, from a failed step after which the device did not work until a step succeeds.
func (e *Engine) Err() error {
	if err := e.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// Lost is closed when the device is first found not to work any more. Most devices never do again in this process.
func (e *Engine) Lost() <-chan struct{} { return e.lost }

// recovered turns a panic into an error: it fails the requests of the step, not the server.
func (e *Engine) recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("a step panicked: %v", value)
		e.log.Error("step panicked", "value", value, "stack", string(debug.Stack()))
	}
}

// fail looks whether the device still works: what a failed step left queued runs or fails here, and not in the next step.
func (e *Engine) fail(err error) {
	e.read = time.Time{}
	e.log.Error("step failed", "error", err)
	e.runner.stream.Sync() // its error belongs to the step that failed already
	if again := e.runner.stream.Sync(); again != nil {
		again = fmt.Errorf("the device does not work any more: %w", again)
		e.broken.Store(&again)
		select {
		case <-e.lost:
		default:
			close(e.lost)
		}
	}
}
