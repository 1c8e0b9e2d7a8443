package store

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var (
	start = time.Unix(1_000_000, 0)
	alice = Owner{1}
	bob   = Owner{2}
)

// wide has room for all that a test keeps.
func wide() *Store { return New(Limits{Responses: 100, Bytes: 1 << 20, Age: time.Hour}) }

func item(id string) Item { return Item{id, []byte(`{"id":"` + id + `"}`)} }

// keep puts an answer with one item of each kind into a store.
func keep(s *Store, owner Owner, id string, from *Turn, now time.Time) *Turn {
	s.Begin(owner, id, from, []Item{item("in_" + id)}, []byte("begun "+id), now)
	s.Finish(owner, id, []Item{item("out_" + id)}, []byte("done "+id), now)
	return s.Turn(owner, id, now)
}

// ids are those of a conversation.
func ids(t *Turn) string {
	var all []string
	for _, item := range t.Items() {
		all = append(all, item.ID)
	}
	return strings.Join(all, " ")
}

// Answers and items belong to the key that made them (T073, T115).
func TestOwners(t *testing.T) {
	s := wide()
	keep(s, alice, "r", nil, start)
	cases := []struct {
		owner Owner
		id    string
		want  bool
	}{{alice, "r", true}, {bob, "r", false}, {Owner{}, "r", false}, {alice, "q", false}, {alice, "", false}}
	for _, c := range cases {
		_, got := s.Get(c.owner, c.id, start)
		_, input := s.Input(c.owner, c.id, start)
		_, out := s.Item(c.owner, "out_"+c.id, start)
		turn := s.Turn(c.owner, c.id, start) != nil
		if got != c.want || input != c.want || out != c.want || turn != c.want {
			t.Errorf("%v %q: found %v, input %v, item %v, turn %v, want %v", c.owner[:1], c.id, got, input, out, turn, c.want)
		}
	}
	if s.Delete(bob, "r", start) || !s.Delete(alice, "r", start) || s.Delete(alice, "r", start) {
		t.Error("an answer can be deleted by another key, or not once by its own")
	}
}

// An answer is shown as it goes on, and nobody goes on from it before it is done.
func TestLife(t *testing.T) {
	s := wide()
	s.Begin(alice, "r", nil, []Item{item("a"), item("b")}, []byte("queued"), start)
	show := func(want string, done bool) {
		t.Helper()
		if got, ok := s.Get(alice, "r", start); !ok || string(got.Body) != want || got.Done != done {
			t.Errorf("got %q, done %v, want %q, %v", got.Body, got.Done, want, done)
		}
	}
	show("queued", false)
	s.Update(alice, "r", []byte("runs"), start)
	show("runs", false)
	if s.Turn(alice, "r", start) != nil {
		t.Error("one can go on from an answer that is not done")
	}
	s.Finish(alice, "r", []Item{item("c")}, []byte("done"), start)
	s.Finish(alice, "r", []Item{item("d")}, []byte("twice"), start)
	s.Update(alice, "r", []byte("late"), start)
	show("done", true)
	if input, _ := s.Input(alice, "r", start); len(input) != 2 || input[1].ID != "b" {
		t.Errorf("input %v, want a and b", input)
	}
	if got := ids(s.Turn(alice, "r", start)); got != "a b c" {
		t.Errorf("the conversation is %s, want a b c", got)
	}
}

// Conversations branch, and outlive what they go on from.
func TestConversations(t *testing.T) {
	s := wide()
	one := keep(s, alice, "1", nil, start)
	two := keep(s, alice, "2", one, start)
	other := keep(s, alice, "3", one, start)
	s.Delete(alice, "1", start)
	for _, c := range []struct {
		turn *Turn
		want string
	}{{nil, ""}, {two, "in_1 out_1 in_2 out_2"}, {other, "in_1 out_1 in_3 out_3"}} {
		count, _ := c.turn.Size()
		if got := ids(c.turn); got != c.want || count != len(strings.Fields(c.want)) {
			t.Errorf("got %q of %d items, want %q", got, count, c.want)
		}
	}
	if _, ok := s.Item(alice, "out_1", start); ok {
		t.Error("an item of a deleted answer is found")
	}
	s.Delete(alice, "2", start)
	s.Begin(alice, "4", nil, []Item{item("in_3")}, nil, start) // the client sends it again
	s.Delete(alice, "3", start)
	if _, ok := s.Item(alice, "in_3", start); !ok {
		t.Error("an item that another answer has, too, is gone")
	}
	s.Delete(alice, "4", start)
	if n, bytes := s.Size(); n != 0 || bytes != 0 {
		t.Errorf("the empty store has %d answers and %d bytes", n, bytes)
	}
	four := keep(s, alice, "4", two, start) // that was looked up before all was deleted
	if got := ids(four); got != "in_1 out_1 in_2 out_2 in_4 out_4" {
		t.Errorf("got %q", got)
	}
	s.Delete(alice, "4", start)
	if _, bytes := s.Size(); bytes != 0 {
		t.Errorf("the empty store has %d bytes", bytes)
	}
}

// The oldest answers go where there are too many, or too many bytes, and each at its age.
func TestBounds(t *testing.T) {
	cases := []struct {
		limits Limits
		later  time.Duration
		want   string // what is left of answers 0 to 4, a minute apart
	}{
		{Limits{100, 1 << 20, time.Hour}, 0, "01234"},
		{Limits{3, 1 << 20, time.Hour}, 0, "234"},
		{Limits{100, 2*(responseBytes+2*itemBytes) + 100, time.Hour}, 0, "34"},
		{Limits{100, 100, time.Hour}, 0, ""},
		{Limits{100, 1 << 20, time.Hour}, 57*time.Minute + 59*time.Second, "234"},
		{Limits{100, 1 << 20, time.Hour}, 58 * time.Minute, "34"},
	}
	for _, c := range cases {
		s, now := New(c.limits), start
		for i := range 5 {
			now = start.Add(time.Duration(i) * time.Minute)
			keep(s, alice, fmt.Sprint(i), nil, now)
		}
		left := ""
		for i := range 5 {
			if _, ok := s.Get(alice, fmt.Sprint(i), now.Add(c.later)); ok {
				left += fmt.Sprint(i)
			}
		}
		if left != c.want {
			t.Errorf("%+v after %s: got %q, want %q", c.limits, c.later, left, c.want)
		}
	}
}

// Whatever is kept and dropped, the bytes are those of what is there, and never more than allowed.
func TestBytesAreCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := New(Limits{Responses: 20, Bytes: 30_000, Age: time.Hour})
	now := start
	turns := []*Turn{nil}
	for step := range 5000 {
		now = now.Add(time.Duration(random.IntN(120)) * time.Second)
		if last := s.oldest.Back(); last != nil && random.IntN(4) == 0 {
			s.Delete(alice, last.Value.(*response).id, now)
		} else if turn := keep(s, alice, fmt.Sprint(step), turns[random.IntN(len(turns))], now); turn != nil {
			if turns = append(turns, turn); len(turns) > 8 {
				turns = turns[1:]
			}
		}
		var want int64
		seen := map[*Turn]bool{}
		for e := s.oldest.Front(); e != nil; e = e.Next() {
			r := e.Value.(*response)
			want += int64(len(r.body)) + responseBytes
			for turn := r.turn; turn != nil && !seen[turn]; turn = turn.before {
				seen[turn] = true
				for _, item := range turn.items {
					want += int64(len(item.JSON)) + itemBytes
				}
			}
		}
		if n, bytes := s.Size(); bytes != want || bytes > s.limits.Bytes || n > s.limits.Responses || n != s.oldest.Len() {
			t.Fatalf("step %d: %d answers with %d bytes, want %d", step, n, bytes, want)
		}
	}
}
