package jinja

import (
	"encoding/binary"
	"math"
	"math/big"
)

// Dict is a dictionary that keeps the order of insertion. Keys that compare equal (1, 1.0, True) are one key.
type Dict struct {
	entries []entry
	index   map[string]int // from hashKey to entries; only for dictionaries past linearSize
}

type entry struct{ key, value Value }

// linearSize is the number of entries up to which a scan beats a map.
const linearSize = 8

// NewDict returns an empty dictionary.
func NewDict() *Dict { return &Dict{} }

func (*Dict) typeName() string { return "dict" }

// Len is the number of entries.
func (d *Dict) Len() int { return len(d.entries) }

// Get returns the value under a string key.
func (d *Dict) Get(key string) (Value, bool) {
	if d.index == nil {
		for i := range d.entries {
			if s, ok := d.entries[i].key.(Str); ok && s.text == key {
				return d.entries[i].value, true
			}
		}
		return nil, false
	}
	if i, ok := d.index["s"+key]; ok {
		return d.entries[i].value, true
	}
	return nil, false
}

// Set stores value under a string key; a key that exists keeps its place.
func (d *Dict) Set(key Str, value Value) { d.put(key, value) }

// Each calls visit for every entry with a string key, in order.
func (d *Dict) Each(visit func(key string, value Value)) {
	for _, e := range d.entries {
		if s, ok := e.key.(Str); ok {
			visit(s.text, e.value)
		}
	}
}

// find is the position of key; ok is false where it is absent. The error says that key cannot be hashed.
func (d *Dict) find(key Value) (int, bool, error) {
	if s, ok := key.(Str); ok && d.index == nil {
		for i := range d.entries {
			if k, ok := d.entries[i].key.(Str); ok && k.text == s.text {
				return i, true, nil
			}
		}
		return 0, false, nil
	}
	hash, err := hashKey(key)
	if err != nil {
		return 0, false, err
	}
	if d.index != nil {
		i, ok := d.index[hash]
		return i, ok, nil
	}
	for i := range d.entries {
		if h, err := hashKey(d.entries[i].key); err == nil && h == hash {
			return i, true, nil
		}
	}
	return 0, false, nil
}

// lookup returns the value under any key.
func (d *Dict) lookup(key Value) (Value, bool, error) {
	i, ok, err := d.find(key)
	if !ok {
		return nil, false, err
	}
	return d.entries[i].value, true, nil
}

func (d *Dict) put(key, value Value) error {
	i, ok, err := d.find(key)
	if err != nil {
		return err
	}
	if ok {
		d.entries[i].value = value
		return nil
	}
	d.entries = append(d.entries, entry{key, value})
	if d.index != nil {
		hash, err := hashKey(key)
		if err != nil {
			return err
		}
		d.index[hash] = len(d.entries) - 1
	} else if len(d.entries) > linearSize {
		return d.buildIndex()
	}
	return nil
}

func (d *Dict) buildIndex() error {
	d.index = make(map[string]int, 2*len(d.entries))
	for i, e := range d.entries {
		hash, err := hashKey(e.key)
		if err != nil {
			return err
		}
		d.index[hash] = i
	}
	return nil
}

func (d *Dict) copy() *Dict {
	c := &Dict{entries: append([]entry(nil), d.entries...)}
	if d.index != nil {
		c.index = make(map[string]int, len(d.index))
		for k, i := range d.index {
			c.index[k] = i
		}
	}
	return c
}

// hashKey encodes a key such that equal keys, and only those, have equal codes.
func hashKey(v Value) (string, error) { return hashNested(v, maxKeyDepth) }

func hashNested(v Value, depth int) (string, error) {
	switch v := v.(type) {
	case Str:
		return "s" + v.text, nil
	case None:
		return "n", nil
	case Bool:
		if v {
			return hashInt(1), nil
		}
		return hashInt(0), nil
	case Int:
		return hashInt(int64(v)), nil
	case *Big:
		return "b" + v.n.String(), nil
	case Float:
		f := float64(v)
		if f == math.Trunc(f) && !math.IsInf(f, 0) {
			if f >= -1<<63 && f < 1<<63 {
				return hashInt(int64(f)), nil
			}
			n, _ := big.NewFloat(f).Int(nil)
			return "b" + n.String(), nil
		}
		return "f" + string(binary.BigEndian.AppendUint64(nil, math.Float64bits(f))), nil
	case *Tuple:
		code := []byte("t")
		for _, item := range v.items {
			if depth == 0 {
				return "", failf("a tuple used as a key is too large")
			}
			c, err := hashNested(item, depth-1)
			if err != nil {
				return "", err
			}
			code = append(binary.AppendUvarint(code, uint64(len(c))), c...)
			if len(code) > maxKeyBytes {
				return "", failf("a tuple used as a key is too large")
			}
		}
		return string(code), nil
	case *undefined:
		return "u", nil
	case *List, *Dict, *dictView:
		return "", failf("unhashable type: '%s'", v.typeName())
	}
	return "", failf("a %s cannot be a key", v.typeName())
}

// These bound a tuple as a key, whose hash costs no steps.
const (
	maxKeyDepth = 16
	maxKeyBytes = 1 << 12
)

func hashInt(n int64) string {
	return "i" + string(binary.BigEndian.AppendUint64(nil, uint64(n)))
}
