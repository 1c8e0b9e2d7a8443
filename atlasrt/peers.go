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

// times are a result's and the peer's, both cold or, where that is not known of both, both warm; zeros where neither is.
func (p peer) times(r optest.BenchResult) (ours, theirs time.Duration) {
	if r.Cold.Median > 0 && p.Cold > 0 {
		return r.Cold.Median, inMicroseconds(p.Cold)
	}
	if r.Warm.Median > 0 && p.Warm > 0 {
		return r.Warm.Median, inMicroseconds(p.Warm)
	}
	return 0, 0
}

func inMicroseconds(us float64) time.Duration { return time.Duration(us * 1e3) }

// faster reports whether p is a better peer than q.
func (p peer) faster(q peer) bool {
	if p.Cold > 0 && q.Cold > 0 {
		return p.Cold < q.Cold
	}
	return p.Warm < q.Warm
}

// peerFile is what tools/peers/cuda_peers.py writes.
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
		return nil, fmt.Errorf("--peers %s: %w (tools/peers/cuda_peers.py writes such files)", path, err)
	}
	list := make(peers, len(file.Rows))
	for _, row := range file.Rows {
		key := peerCase{row.Op, row.Case}
		if best, ok := list[key]; !ok || row.faster(best) {
			list[key] = row.peer
		}
	}
	return list, nil
}

// columns are the name of a result's peer, its times and how many times as long as ours it takes.
func (p peers) columns(r optest.BenchResult) []string {
	x := p[peerCase{r.Op, r.Case}]
	ours, theirs := x.times(r)
	if ours == 0 {
		return []string{"", "", "", ""}
	}
	return []string{x.Name, microseconds(inMicroseconds(x.Cold)), microseconds(inMicroseconds(x.Warm)), fmt.Sprintf("%.2f", float64(theirs)/float64(ours))}
}

// slowerBy is how many times as long as a peer a case may take without being listed.
const slowerBy = 1.1

// slower lists the cases that a peer does faster.
func (p peers) slower(w io.Writer, r optest.BenchReport) {
	for _, b := range r.Results {
		x := p[peerCase{b.Op, b.Case}]
		if ours, theirs := x.times(b); float64(ours) > slowerBy*float64(theirs) {
			fmt.Fprintf(w, "slower than %s: %s %s: %s µs, theirs %s\n", x.Name, b.Op, b.Case, microseconds(ours), microseconds(theirs))
		}
	}
}
