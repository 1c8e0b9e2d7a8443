package grammar

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
)

func TestCacheCompilesOnce(t *testing.T) {
	c := NewCache(vocabulary(), Limits{}, 10<<20)
	spec := Spec{Kind: Schema, Text: `{"type":"object","properties":{"a":{"type":"string"}}}`}
	const callers = 50
	grammars := make([]*Grammar, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			g, err := c.Get(context.Background(), spec)
			if err != nil {
				t.Error(err)
			}
			grammars[i] = g
		})
	}
	group.Wait()
	for _, g := range grammars {
		if g != grammars[0] {
			t.Fatal("callers got different grammars of one form")
		}
	}
	if c.Len() != 1 {
		t.Errorf("%d grammars are kept, want 1", c.Len())
	}
}

func TestCacheKeepsNoFailures(t *testing.T) {
	c := NewCache(vocabulary(), Limits{}, 10<<20)
	for range 3 {
		if _, err := c.Get(context.Background(), Spec{Kind: Regex, Text: "("}); err == nil {
			t.Fatal("no error")
		}
	}
	if c.Len() != 0 || c.Bytes() != 0 || len(c.entries) != 0 {
		t.Errorf("%d grammars of %d bytes and %d entries are kept", c.Len(), c.Bytes(), len(c.entries))
	}
}

// A caller whose request ends while it compiles does not take others with it.
func TestCacheWaitersOutliveTheirLeader(t *testing.T) {
	c := NewCache(vocabulary(), Limits{}, 10<<20)
	spec := literal("a")
	leading, cancel := context.WithCancel(context.Background())
	e := &entry{key: keyOf(&spec), done: make(chan struct{})}
	c.entries[e.key] = e // is being compiled
	got := make(chan error)
	go func() {
		g, err := c.Get(context.Background(), spec)
		if err == nil && !accepts(g, "a") {
			err = errors.New("a wrong grammar")
		}
		got <- err
	}()
	impatient, leave := context.WithCancel(context.Background())
	leave()
	if _, err := c.Get(impatient, spec); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that waits and whose request ended gets %v", err)
	}
	cancel()
	c.fill(leading, e, spec)
	if err := <-got; err != nil {
		t.Errorf("the other caller gets %v", err)
	}
}

func TestT082CacheStaysWithinItsBytes(t *testing.T) {
	const most = 2 << 20
	c := NewCache(vocabulary(), Limits{}, most)
	const distinct = 10_000
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	first := Spec{Kind: Schema, Text: `{"const":"often"}`}
	often, err := c.Get(context.Background(), first)
	if err != nil {
		t.Fatal(err)
	}
	for i := range distinct {
		g, err := c.Get(context.Background(), Spec{Kind: Schema, Text: fmt.Sprintf(`{"const":%d}`, i)})
		if err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 && !accepts(g, fmt.Sprint(i)) {
			t.Fatalf("schema %d has a wrong grammar", i)
		}
		if c.Bytes() > most {
			t.Fatalf("%d bytes are kept behind %d schemas, want at most %d", c.Bytes(), i, most)
		}
		if i%50 == 0 {
			if again, err := c.Get(context.Background(), first); err != nil || again != often {
				t.Fatalf("what is used often is not kept (%v)", err)
			}
		}
	}
	if grown := heap() - before; grown > 3*most {
		t.Errorf("%d bytes more are in use, and %d are counted", grown, c.Bytes())
	}
	if n := c.Len(); n < 20 || n > distinct/2 || len(c.entries) != n || c.used.Len() != n {
		t.Errorf("%d grammars are kept, %d entries, %d places", n, len(c.entries), c.used.Len())
	}
}

// What a grammar takes grows as it is used, and counts.
func TestCacheCountsWhatGrows(t *testing.T) {
	c := NewCache(vocabulary(), Limits{}, 10<<20)
	spec := Spec{Kind: Regex, Text: "[ab]*a[ab]{9}"}
	g, err := c.Get(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	before := c.Bytes()
	for i := range 1 << 10 {
		s := g.Start()
		for bit := range 10 {
			s, _ = s.NextBytes([]byte{"ab"[i>>bit&1]})
		}
	}
	if _, err := c.Get(context.Background(), spec); err != nil || c.Bytes() < 2*before {
		t.Errorf("%d bytes, and %d behind a thousand states (%v)", before, c.Bytes(), err)
	}
}

func TestKeysDiffer(t *testing.T) {
	full := Spec{Kind: Choice, Name: "n", Text: "t", Not: "o", Words: []string{"a", "b"}, Parts: []Spec{{Kind: Free}}, Min: 1, Max: 2, Notation: Spaced, Loose: true}
	specs := []Spec{full}
	v := reflect.TypeOf(full)
	for i := range v.NumField() { // each field counts
		other := full
		reflect.ValueOf(&other).Elem().Field(i).SetZero()
		specs = append(specs, other)
	}
	specs = append(specs, Spec{Kind: Choice, Words: []string{"ab"}}, Spec{Kind: Choice, Words: []string{"a", "b"}}, Spec{Kind: Choice, Words: []string{"", "ab"}},
		Spec{Kind: Literal, Text: "\xff"}, Spec{Kind: Literal, Text: "\xfe"}, Spec{Kind: Literal, Text: "\ufffd"})
	seen := map[key]int{}
	for i := range specs {
		k := keyOf(&specs[i])
		if j, known := seen[k]; known {
			t.Errorf("%+v and %+v have one key", specs[i], specs[j])
		}
		seen[k] = i
	}
}
