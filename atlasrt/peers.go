package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

// peers are how long the best of other libraries takes for cases of ours; nil where no file is given.
type peers map[peerCase]peer

// peerCase names a case as a benchmark does.
type peerCase struct{ Op, Case string }

// peer is a library's time, in microseconds; zero where it was not measured.
type peer struct {
	Name string  `json:"name"`
	Cold float64 `json:"cold_us"`
	Warm float64 `json:"warm_us"`
}

// time is the one that compares with a result's.
func (p peer) time(r optest.BenchResult) time.Duration {
	us := p.Cold
	if r.Cold.Median == 0 {
		us = p.Warm
	}
	return time.Duration(us * 1e3)
}

// peerFile is what tools/peers/cuda.py writes.
type peerFile struct {
	Rows []struct {
		Op   string `json:"op"`
		Case string `json:"case"`
		peer
	} `json:"rows"`
}

// readPeers reads a file of times; none for an empty path.
func readPeers(path string) (peers, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--peers: %w", err)
	}
	var file peerFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("--peers %s: %w (tools/peers/cuda.py writes such files)", path, err)
	}
	list := make(peers, len(file.Rows))
	for _, row := range file.Rows {
		key := peerCase{row.Op, row.Case}
		if best, ok := list[key]; !ok || row.Cold < best.Cold {
			list[key] = row.peer
		}
	}
	return list, nil
}

// ratio is how many times as long as ours the peer takes; 0 where one of both is unknown.
func (p peers) ratio(r optest.BenchResult) float64 {
	theirs := p[peerCase{r.Op, r.Case}].time(r)
	if theirs <= 0 || r.Time() <= 0 {
		return 0
	}
	return float64(theirs) / float64(r.Time())
}

// columns are a row's name of the peer, its times and their ratio to ours.
func (p peers) columns(r optest.BenchResult) []string {
	ratio := p.ratio(r)
	if ratio == 0 {
		return []string{"", "", "", ""}
	}
	x := p[peerCase{r.Op, r.Case}]
	us := func(v float64) string { return microseconds(time.Duration(v * 1e3)) }
	return []string{x.Name, us(x.Cold), us(x.Warm), fmt.Sprintf("%.2f", ratio)}
}

// slowerBy is how much longer than a peer a case may take without being listed.
const slowerBy = 1.1

// slower lists the cases that a peer does faster.
func (p peers) slower(w io.Writer, r optest.BenchReport) {
	for _, b := range r.Results {
		if ratio := p.ratio(b); ratio > 0 && ratio < 1/slowerBy {
			x := p[peerCase{b.Op, b.Case}]
			fmt.Fprintf(w, "slower than %s: %s %s: %s µs, theirs %s\n", x.Name, b.Op, b.Case, microseconds(b.Time()), microseconds(x.time(b)))
		}
	}
}
