package device_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// pieces cuts from into pieces of all sizes, empty ones too, that go where they come from.
func pieces(random *rand.Rand, from []byte) []device.Piece {
	all := []device.Piece{{}}
	for at := 0; at < len(from); {
		n := min(random.IntN(1<<random.IntN(15)), len(from)-at)
		all = append(all, device.Piece{To: op.Ptr(at), From: from[at : at+n]})
		at += n
	}
	return append(all, device.Piece{To: op.Ptr(len(from))})
}

func TestSpreadHandsOutEveryByteOnce(t *testing.T) {
	random, from := rand.New(rand.NewPCG(1, 2)), make([]byte, 1<<18)
	for i := range from {
		from[i] = byte(random.Uint32())
	}
	for _, workers := range []int{1, 3, 8} {
		to, done := make([]byte, len(from)), atomic.Int64{}
		given := pieces(random, from)
		before := slices.Clone(given)
		at := make([]atomic.Int32, workers)
		err := device.Spread(given, 1000, workers, func(worker int, part device.Part) error {
			n := part.Bytes()
			if at[worker].Add(1) > 1 || n > 1000 || n == 0 {
				t.Errorf("worker %d has %d bytes; want 1 to 1000 of one part at a time", worker, n)
			}
			part.Copy(to[part.To:])
			done.Add(int64(n))
			at[worker].Add(-1)
			return nil
		})
		if err != nil || !bytes.Equal(to, from) || done.Load() != int64(len(from)) {
			t.Errorf("%d workers: %v, %d of %d bytes; want all of them, each once", workers, err, done.Load(), len(from))
		}
		if !slices.EqualFunc(given, before, func(a, b device.Piece) bool { return a.To == b.To && len(a.From) == len(b.From) }) {
			t.Error("what was given has changed")
		}
	}
	if err := device.Spread(nil, 1, 2, nil); err != nil {
		t.Error(err)
	}
}

// Pieces that follow each other on the device are copied together; others are not.
func TestSpreadJoinsPieces(t *testing.T) {
	piece := func(to op.Ptr, bytes int) device.Piece { return device.Piece{To: to, From: make([]byte, bytes)} }
	given := []device.Piece{piece(100, 40), piece(140, 0), piece(140, 30), piece(170, 60), piece(230, 10), piece(300, 5), piece(200, 5), piece(205, 250)}
	var got []string
	err := device.Spread(given, 100, 1, func(_ int, part device.Part) error {
		got = append(got, fmt.Sprint(part.To, part.Bytes(), len(part.From)))
		return nil
	})
	if want := "[100 100 3 200 40 2 300 5 1 200 100 2 300 100 1 400 55 1]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v; want %s: address, bytes and pieces of each part", got, err, want)
	}
}

func TestSpreadEndsWithTheFirstError(t *testing.T) {
	given := []device.Piece{{From: make([]byte, 1000)}}
	synctest.Test(t, func(t *testing.T) {
		wrong, calls := errors.New("wrong"), atomic.Int64{}
		err := device.Spread(given, 1, 4, func(int, device.Part) error {
			switch n := calls.Add(1); {
			case n == 10:
				return wrong
			case n > 10:
				time.Sleep(time.Millisecond) // until the error is known
			}
			return nil
		})
		if err != wrong || calls.Load() > 10+3 {
			t.Errorf("%v after %d parts of 1000; want the error, and that it ends there", err, calls.Load())
		}
	})
	defer func() {
		if got := recover(); got != "mine" {
			t.Errorf("recovered %v, want mine", got)
		}
	}()
	_ = device.Spread(given, 1, 4, func(int, device.Part) error { panic("mine") })
}

func TestSpreadBringsFaultsToTheCaller(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := mapping.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 1<<19); err != nil {
		t.Fatal(err)
	}
	err = mapping.Guard(func() error {
		return device.Spread([]device.Piece{{From: f.Bytes()}}, 1<<16, 4, func(_ int, part device.Part) error {
			part.Copy(make([]byte, part.Bytes()))
			return nil
		})
	})
	if err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("got %v, want an error that says truncated", err)
	}
}
