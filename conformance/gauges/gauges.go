// Package gauges reads from a server's /metrics what it holds.
package gauges

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Server is whose gauges are read.
type Server struct {
	URL string // such as http://127.0.0.1:8000
	Key string // of it; empty: it asks for none
}

// Values are gauges by their names, without labels.
type Values map[string]float64

// What Read reads.
const (
	Running    = "vllm:num_requests_running"
	Waiting    = "vllm:num_requests_waiting"
	Blocks     = "atlasrt_blocks_used"
	AllBlocks  = "atlasrt_blocks_total"
	Goroutines = "go_goroutines"
	Files      = "process_open_fds"
	Heap       = "go_memstats_heap_inuse_bytes"
)

// exact are those that a server which does nothing has back as they were.
var exact = []string{Running, Waiting, Blocks, AllBlocks}

// Read reads the gauges.
func (s Server) Read(ctx context.Context) (Values, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.Key)
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	values := Values{}
	wanted := append([]string{Goroutines, Files, Heap}, exact...)
	for lines := bufio.NewScanner(got.Body); lines.Scan(); {
		line := lines.Text()
		for _, name := range wanted {
			if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
				if values[name], err = strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64); err != nil {
					return nil, fmt.Errorf("/metrics: %s: %w", line, err)
				}
			}
		}
	}
	if len(values) != len(wanted) {
		return nil, fmt.Errorf("/metrics answers %s, with %v of %q", got.Status, values, wanted)
	}
	return values, nil
}

// Settle waits until nothing is held that was not before. As many goroutines and files as allowed may be more.
func (s Server) Settle(ctx context.Context, before Values, allowed float64) (now Values, err error) {
	for range 100 {
		if now, err = s.Read(ctx); err != nil || now.like(before, allowed) {
			return now, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return now, fmt.Errorf("10 s after the last request the server holds %v, before it was %v", now, before)
}

func (v Values) like(before Values, allowed float64) bool {
	for _, name := range exact {
		if v[name] != before[name] {
			return false
		}
	}
	return v[Goroutines] <= before[Goroutines]+allowed && v[Files] <= before[Files]+allowed
}
