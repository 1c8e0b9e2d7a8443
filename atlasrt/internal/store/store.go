// Package store keeps answers in memory, so that clients can fetch them and go on from them. What is kept belongs to the key that made
// it: to every other key it does not exist.
//
// It is bounded by a number, by bytes and by age; the oldest goes first. It has no clock: times are given, and must not go backwards.
// A conversation is a chain of turns that answers share, so that to go on from an answer costs what is new. Turns stay as long
// as an answer that goes on from them.
package store

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"
)

// Owner is the hash of the key that made an answer. The zero value is nobody, where no keys are asked for.
type Owner [sha256.Size]byte

// Limits bound a store.
type Limits struct {
	Responses int           // that are kept
	Bytes     int64         // of all that is kept
	Age       time.Duration // after which an answer is forgotten
}

// Item is one entry of a conversation, as its dialect writes it.
type Item struct {
	ID   string // by which its owner may refer to it
	JSON []byte // an object; nobody may change it
}

// Response is an answer as it is shown.
type Response struct {
	Body []byte // its JSON; nobody may change it
	Done bool   // nothing more comes
}

// What answers and items cost beside their JSON.
const (
	responseBytes = 1024
	itemBytes     = 256
)

// Store keeps answers. It is safe for concurrent use.
type Store struct {
	limits Limits

	mutex     sync.Mutex
	responses map[name]*list.Element // of *response
	oldest    *list.List             // of *response, in the order in which they began
	items     map[name]owned
	bytes     int64
}

// name is the id of an answer or an item among those of its owner.
type name struct {
	owner Owner
	id    string
}

// response is an answer that is kept.
type response struct {
	name
	began  time.Time
	body   []byte
	done   bool
	turn   *Turn
	inputs int // of the items of turn
}

// owned is an item with the last answer that has it.
type owned struct {
	Item
	by *response
}

// Turn is what one answer adds to a conversation: what was asked and what was answered. The zero pointer is the empty conversation.
type Turn struct {
	before *Turn
	items  []Item
	bytes  int64 // that it adds
	all    int64 // with those before it
	count  int   // of items, with those before it
	uses   int   // answers and turns that hold it
}

// New makes an empty store.
func New(limits Limits) *Store {
	return &Store{limits: limits, responses: map[name]*list.Element{}, oldest: list.New(), items: map[name]owned{}}
}

// Begin keeps an answer that is being made: its input goes on from a turn, and body shows it.
func (s *Store) Begin(owner Owner, id string, from *Turn, input []Item, body []byte, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := &response{name: name{owner, id}, began: now, turn: &Turn{before: from}, inputs: len(input)}
	s.hold(r.turn)
	s.add(r, input)
	s.show(r, body)
	s.bytes += responseBytes
	s.responses[r.name] = s.oldest.PushBack(r)
	s.trim(now)
}

// Update shows an answer that is still being made in another way.
func (s *Store) Update(owner Owner, id string, body []byte, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if r := s.find(owner, id, now); r != nil && !r.done {
		s.show(r, body)
		s.trim(now)
	}
}

// Finish ends an answer that Begin began. An answer that is no longer kept stays forgotten.
func (s *Store) Finish(owner Owner, id string, output []Item, body []byte, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if r := s.find(owner, id, now); r != nil && !r.done {
		s.add(r, output)
		s.show(r, body)
		r.done = true
		s.trim(now)
	}
}

// Get finds an answer.
func (s *Store) Get(owner Owner, id string, now time.Time) (Response, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.find(owner, id, now)
	if r == nil {
		return Response{}, false
	}
	return Response{r.body, r.done}, true
}

// Input is what an answer was asked with, without what came before it.
func (s *Store) Input(owner Owner, id string, now time.Time) ([]Item, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.find(owner, id, now)
	if r == nil {
		return nil, false
	}
	return r.turn.items[:r.inputs:r.inputs], true
}

// Turn is the conversation up to an answer and with it; nil where there is none, or where it is not done.
func (s *Store) Turn(owner Owner, id string, now time.Time) *Turn {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.find(owner, id, now)
	if r == nil || !r.done {
		return nil
	}
	return r.turn
}

// Item finds an item of an answer.
func (s *Store) Item(owner Owner, id string, now time.Time) (Item, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.trim(now)
	item, ok := s.items[name{owner, id}]
	return item.Item, ok
}

// Delete forgets an answer. What goes on from it stays.
func (s *Store) Delete(owner Owner, id string, now time.Time) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.find(owner, id, now)
	if r == nil {
		return false
	}
	s.forget(r)
	return true
}

// Size is how many answers are kept and how many bytes all of it takes.
func (s *Store) Size() (responses int, bytes int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.responses), s.bytes
}

// Items are those of the whole conversation, in order.
func (t *Turn) Items() []Item {
	if t == nil {
		return nil
	}
	all := make([]Item, t.count)
	for end := t.count; t != nil; t = t.before {
		end -= copy(all[end-len(t.items):], t.items)
	}
	return all
}

// Size is how many items and bytes the whole conversation has.
func (t *Turn) Size() (items int, bytes int64) {
	if t == nil {
		return 0, 0
	}
	return t.count, t.all
}
