package match

import (
	"encoding/binary"
	"errors"
	"hash/fnv"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// errState says that bytes are none of AppendBinary.
var errState = errors.New("bytes that are no encoded state of this grammar")

// AppendBinary appends the state, as State of a Machine of an equal grammar reads it, in this process or another. It takes about as many bytes as
// symbols are nested around the place where the text is.
func (s State) AppendBinary(to []byte) ([]byte, error) {
	if s.node == nil {
		return nil, errors.New("the zero State has no encoding")
	}
	t := s.node.tables
	t.lock.Lock()
	defer t.lock.Unlock()
	to = binary.LittleEndian.AppendUint64(to, t.identity())
	return t.appendNode(to, s.node), nil
}

// State reads what AppendBinary has appended.
func (m *Machine) State(data []byte) (State, error) {
	t := m.tables.Load()
	if len(data) < 8 || binary.LittleEndian.Uint64(data) != t.identity() {
		return State{}, errors.New("the state is one of another grammar")
	}
	w := m.work()
	n, err := t.readNode(data[8:], w)
	if err != nil {
		return State{}, err
	}
	return State{m, n}, nil
}

// identify makes the program's identity.
func (p *program) identify() uint64 {
	var data []byte
	add := func(values ...int32) {
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, uint32(v))
		}
	}
	for _, r := range p.terminals {
		add(int32(r))
	}
	for _, s := range p.symbols {
		add(int32(len(s.begins)))
		add(s.begins...)
	}
	for _, at := range p.places {
		add(at.next, at.then, at.adds, at.top, at.enough, at.most)
	}
	h := fnv.New64a()
	h.Write(data)
	return h.Sum64()
}

// appendNode appends a node: the rows below its positions, callers first, its positions, and what is left of their terminals.
func (t *tables) appendNode(to []byte, n *node) []byte {
	number := map[*row]uint64{}
	var order []*row
	var stack []*row
	for _, p := range n.at {
		stack = append(stack, p.row)
	}
	for len(stack) > 0 {
		r := stack[len(stack)-1]
		before := len(stack)
		if _, done := number[r]; !done {
			for _, i := range r.kernel {
				if _, done := number[i.row]; i.row != nil && !done {
					stack = append(stack, i.row)
				}
			}
		}
		if len(stack) > before {
			continue
		}
		stack = stack[:before-1]
		if _, done := number[r]; !done {
			order = append(order, r)
			number[r] = uint64(len(order))
		}
	}
	to = appendBool(to, n.accepts)
	to = binary.AppendUvarint(to, uint64(len(order)))
	for _, r := range order {
		to = appendBool(to, r.accepts)
		to = binary.AppendUvarint(to, uint64(len(r.kernel)))
		for _, i := range r.kernel {
			for _, v := range []uint64{uint64(i.place), uint64(i.count), number[i.row], uint64(i.symbol)} {
				to = binary.AppendUvarint(to, v)
			}
		}
	}
	var refs []regex.Ref
	to = binary.AppendUvarint(to, uint64(len(n.at)))
	for _, p := range n.at {
		to = binary.AppendUvarint(to, number[p.row])
		to = binary.AppendUvarint(to, uint64(len(p.lexer.open)))
		for _, o := range p.lexer.open {
			to = binary.AppendUvarint(to, uint64(o.terminal))
			refs = append(refs, o.rest)
		}
	}
	return t.regexes.AppendBinary(to, t.mark, refs)
}

func appendBool(to []byte, is bool) []byte {
	if is {
		return append(to, 1)
	}
	return append(to, 0)
}

// readNode reads what appendNode has appended.
func (t *tables) readNode(data []byte, w *work) (*node, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	r := reader{data: data}
	accepts := r.number(2) == 1
	rows := []*row{nil}
	for n := r.count(); n > 0 && !r.bad; n-- {
		read := t.readRow(&r, rows)
		if r.bad {
			break
		}
		if t.expand(read, w); w.err != nil {
			return nil, w.err
		}
		rows = append(rows, read)
	}
	at := make([]position, 0, 4)
	opens := make([][]open, 0, 4)
	for n := r.count(); n > 0 && !r.bad; n-- {
		in := rows[r.number(len(rows))]
		var all []open
		for n := r.count(); n > 0 && !r.bad; n-- {
			terminal := int32(r.number(len(t.terminals)))
			if in == nil || len(in.waitingFor(terminal)) == 0 || len(all) > 0 && all[len(all)-1].terminal >= terminal {
				r.bad = true
				break
			}
			all = append(all, open{terminal: terminal})
		}
		at, opens = append(at, position{row: in}), append(opens, all)
	}
	if r.bad {
		return nil, errState
	}
	refs, rest, err := t.regexes.ReadBinary(r.data, t.mark)
	if err != nil || len(rest) > 0 {
		return nil, errState
	}
	for i, all := range opens {
		for j := range all {
			if len(refs) == 0 || refs[0] == regex.Nothing {
				return nil, errState
			}
			all[j].rest, refs = refs[0], refs[1:]
		}
		if len(all) == 0 {
			return nil, errState
		}
		at[i].lexer = t.lexer(all)
	}
	if len(refs) > 0 {
		return nil, errState
	}
	n := t.node(at, accepts, w)
	if n == nil {
		return nil, w.err
	}
	return n, nil
}

// readRow reads a row whose callers are among some rows.
func (t *tables) readRow(r *reader, rows []*row) *row {
	accepts := r.number(2) == 1
	var items []item
	for n := r.count(); n > 0 && !r.bad; n-- {
		i := item{place: int32(r.number(len(t.places))), count: int32(r.number(beyond + 1))}
		i.row = rows[r.number(len(rows))]
		i.symbol = int32(r.number(len(t.terminals) + len(t.symbols) + 1))
		if i.count > max(t.places[i.place].top, 0) {
			r.bad = true
		}
		items = append(items, i)
	}
	if r.bad {
		return nil
	}
	return t.row(items, accepts)
}

// reader reads numbers.
type reader struct {
	data []byte
	bad  bool
}

// number reads a number below a limit; it is 0 where there is none.
func (r *reader) number(limit int) int {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v >= uint64(limit) {
		r.bad = true
		return 0
	}
	r.data = r.data[n:]
	return int(v)
}

// count reads how many things follow, each of which takes a byte or more.
func (r *reader) count() int { return r.number(len(r.data) + 1) }
