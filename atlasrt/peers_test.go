package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

func TestPeers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers.json")
	text := `{"about": {"gpu": "x"}, "rows": [
		{"op": "Linear", "case": "a", "name": "slow", "cold_us": 9, "warm_us": 8},
		{"op": "Linear", "case": "a", "name": "best", "cold_us": 4, "warm_us": 2},
		{"op": "Linear", "case": "warm only", "name": "best", "cold_us": 0, "warm_us": 3}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	theirs, err := readPeers(path)
	if err != nil {
		t.Fatal(err)
	}
	timing := func(us float64) optest.Timing {
		return optest.Timing{Median: time.Duration(us * 1e3), Min: time.Duration(us * 1e3)}
	}
	cases := []struct {
		name       string
		cold, warm float64
		want       []string
		slower     string
	}{
		{"a", 5, 1, []string{"best", "4.00", "2.00", "0.80"}, "slower than best: Linear a: 5.00 µs, theirs 4.00\n"},
		{"a", 4.2, 1, []string{"best", "4.00", "2.00", "0.95"}, ""},
		{"a", 0, 1, []string{"best", "4.00", "2.00", "2.00"}, ""},
		{"warm only", 9, 6, []string{"best", "", "3.00", "0.50"}, "slower than best: Linear warm only: 6.00 µs, theirs 3.00\n"},
		{"unknown", 1, 1, []string{"", "", "", ""}, ""},
	}
	for _, c := range cases {
		r := optest.BenchResult{Op: "Linear", Case: c.name, Cold: timing(c.cold), Warm: timing(c.warm)}
		if got := theirs.columns(r); !slices.Equal(got, c.want) {
			t.Errorf("%s %v %v: got %q, want %q", c.name, c.cold, c.warm, got, c.want)
		}
		var list bytes.Buffer
		theirs.slower(&list, optest.BenchReport{Results: []optest.BenchResult{r}})
		if list.String() != c.slower {
			t.Errorf("%s %v %v: got %q, want %q", c.name, c.cold, c.warm, list.String(), c.slower)
		}
	}
}

func TestPeersOfADamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers.json")
	for _, text := range []string{"", "[]", `{"rows": 1}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := readPeers(path); err == nil {
			t.Errorf("%q: got %v, want an error", text, list)
		}
	}
}
