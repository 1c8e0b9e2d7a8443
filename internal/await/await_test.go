package await

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// said is a test that only notes what is said of it.
type said struct {
	testing.TB
	text string
}

func (s *said) Helper()                           {}
func (s *said) Errorf(format string, args ...any) { s.text += fmt.Sprintf(format, args...) }
func (s *said) Fatalf(format string, args ...any) { s.Errorf(format, args...) }

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{0, ""}, {time.Second, ""}, {time.Hour, "not within 1m0s: it comes"}} {
			begun, s := time.Now(), &said{}
			Until(s, "it comes", func() bool { return time.Since(begun) >= c.after })
			if waited := time.Since(begun); s.text != c.want || waited > min(c.after, Patience)+time.Second {
				t.Errorf("what comes after %v: got %q after %v, want %q", c.after, s.text, waited, c.want)
			}
		}
		if time.Since(start) < Patience {
			t.Errorf("all of it took %v, want at least %v", time.Since(start), Patience)
		}
	})
}

func TestGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most, s := runtime.NumGoroutine(), &said{}
		go time.Sleep(Patience / 2)
		if Goroutines(s, most); s.text != "" {
			t.Errorf("one that ends: %s", s.text)
		}
		for range 10 {
			go time.Sleep(2 * Patience)
		}
		if Goroutines(s, most); !strings.Contains(s.text, fmt.Sprintf(" goroutines, want at most %d:", most)) || !strings.Contains(s.text, "time.Sleep") {
			t.Errorf("ten that stay: got %q, want where they are", s.text)
		}
		time.Sleep(2 * Patience)
	})
}
