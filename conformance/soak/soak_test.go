// Package soak puts many clients in all dialects to a server for a while. They ask, read, and leave when they like. Every event is
// held against the grammar of its dialect and against what its answer alone may say, and in the end the server holds nothing of theirs.
//
// The test needs
//
//	ATLAS_SOAK     seconds that it runs; without it, it skips
//	ATLAS_SCRIPTED where a server is that follows scripts.json, or else
//	ATLAS_URL      where a server is with a real model: what it says alone it must say among others
//	ATLAS_KEY      a key of it
//	ATLAS_MODEL    the model to ask
package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/conformance/gauges"
)

// clients is how many ask at a time.
const clients = 64

// moment is when a client leaves.
type moment struct {
	name   string
	sent   bool // a little after it has asked
	begun  bool // before the first event of a stream
	part   part // behind so many pieces of this
	pieces int
}

// moments are those at which clients leave. A client for whose answer it does not come reads to the end.
var moments = []moment{{}, {}, {name: "asked", sent: true}, {name: "no event yet", begun: true}, {name: "in thoughts", part: thoughts}, {name: "in text", part: text}, {name: "in a call", part: call}}

func TestSoak(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("ATLAS_SOAK"))
	if err != nil {
		t.Skip("set ATLAS_SOAK to the seconds to run")
	}
	s := &server{url: os.Getenv("ATLAS_SCRIPTED"), key: os.Getenv("ATLAS_KEY"), model: os.Getenv("ATLAS_MODEL")}
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	s.client = &http.Client{Transport: transport}
	load := &load{server: s, counts: map[string]int{}}
	if s.url != "" {
		load.least = 8
		load.questions, err = readScripts("scripts.json")
	} else {
		s.url = os.Getenv("ATLAS_URL")
		load.questions, err = refer(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
	transport.CloseIdleConnections()
	gauge := gauges.Server{URL: s.url, Key: s.key}
	before, err := gauge.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	load.over = time.Now().Add(time.Duration(seconds) * time.Second)
	load.run(t)
	transport.CloseIdleConnections()
	after, err := gauge.Settle(t.Context(), before, 8)
	if err != nil {
		t.Error(err)
	}
	load.report(t)
	for _, name := range []string{gauges.Goroutines, gauges.Files, gauges.Heap, gauges.Running, gauges.Waiting, gauges.Blocks} {
		t.Logf("%-28s %10.0f before, %10.0f after", name, before[name], after[name])
	}
	if more := after[gauges.Heap] - before[gauges.Heap]; more > 64<<20 {
		t.Errorf("the heap grew by %.1f MiB", more/(1<<20))
	}
}

// load is what the clients do.
type load struct {
	*server
	questions asker
	least     int       // that a client asks, however long it takes
	over      time.Time // from then on nobody asks again, and all read to their end
	ids       sync.Map  // of all answers and calls

	mutex  sync.Mutex
	counts map[string]int
}

func (l *load) run(t *testing.T) {
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(client), 1))
			for visit := 0; visit < max(l.least, 1) || time.Now().Before(l.over); visit++ {
				if err := l.visit(t.Context(), r, client, visit); err != nil {
					t.Errorf("client %d, visit %d: %v", client, visit, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// visit asks one question and hears the answer, to its end or not.
func (l *load) visit(ctx context.Context, r *rand.Rand, client, visit int) error {
	names := []string{"chat", "completions", "messages", "responses"}
	name, leave := names[(client+visit)%len(names)], moments[(client/len(names)+visit)%len(moments)]
	d, q := dialects[name], l.questions.ask(r, name, fmt.Sprintf("k%dv%d", client, visit))
	q.model, leave.pieces = l.model, 1+r.IntN(8)
	h := newHearing(q.want, leave, &l.ids)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if leave.sent {
		defer time.AfterFunc(time.Duration(r.IntN(60))*time.Millisecond, cancel).Stop()
	}
	got, err := l.post(ctx, d.path, d.body(q))
	if err == nil {
		defer got.Body.Close()
		if err = errLeft; !leave.begun || !q.stream {
			err = d.listen(h, q, got.Body)
		}
	}
	left := errors.Is(err, errLeft) || leave.sent && ctx.Err() != nil
	l.count(name, q, h, left, err)
	if err != nil && !left {
		return fmt.Errorf("%s, stream %v, %q, at most %d tokens: %w", name, q.stream, q.texts, q.tokens, err)
	}
	return nil
}

// count notes how a visit went.
func (l *load) count(name string, q *question, h *hearing, left bool, err error) {
	how := map[bool]string{true: "stream", false: "whole"}[q.stream]
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch {
	case left:
		l.counts[name+" "+how+" left"]++
		l.counts["left: "+h.leave.name]++
	case err != nil:
		l.counts[name+" "+how+" failed"]++
	default:
		l.counts[name+" "+how+" read"]++
		l.counts["answers read"]++
		if slices.Contains(h.ends, cut) {
			l.counts["answers read that were cut"]++
		}
	}
	l.counts["events"] += h.events
	l.counts["pieces"] += h.pieces
}

// report prints the counts, and checks that the clients did what they are there for.
func (l *load) report(t *testing.T) {
	var lines []string
	for what, n := range l.counts {
		lines = append(lines, fmt.Sprintf("%-32s %d", what, n))
	}
	slices.Sort(lines)
	t.Log("\n" + strings.Join(lines, "\n"))
	for name := range dialects {
		if l.counts[name+" stream read"] == 0 || l.counts[name+" whole read"] == 0 || l.counts[name+" stream left"] == 0 {
			t.Errorf("in %s nobody reads a stream and a whole answer to the end, and leaves", name)
		}
	}
	_, scripted := l.questions.(scripts)
	for _, m := range moments {
		if m.name != "" && l.counts["left: "+m.name] == 0 && (scripted || m.part < call && m.part != thoughts) {
			t.Errorf("nobody left: %s", m.name)
		}
	}
}
