package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
)

// ErrAbsent says that the file has no such key.
var ErrAbsent = errors.New("no such key")

// Metadata is the typed keys and values of a file. A getter fails with ErrAbsent, or with an error that names the key,
// the type it has and the type that was asked for.
type Metadata struct {
	values map[string]value
	asked  *sync.Map // keys that a getter was asked for
}

// kind is the type of a value, by the format's numbers.
type kind uint32

const (
	kindUint8 kind = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
	kindCount
)

var (
	kindNames = [kindCount]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64"}
	kindBytes = [kindCount]uint64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8} // 0: not of fixed size
)

func (k kind) integer() bool {
	return k < kindFloat32 || k == kindUint64 || k == kindInt64
}

func (k kind) boolean() bool { return k.integer() || k == kindBool }

func (k kind) number() bool { return k.integer() || k == kindFloat32 || k == kindFloat64 }

// value is a checked value whose bytes are still in the mapping. For an array, kind is that of its elements.
type value struct {
	kind  kind
	array bool
	count int
	bytes []byte
}

func (v value) String() string {
	if v.array {
		return fmt.Sprintf("array of %d %s", v.count, kindNames[v.kind])
	}
	return kindNames[v.kind]
}

// read checks the keys and values that come next.
func (m *Metadata) read(c *cursor, count int) error {
	m.values, m.asked = map[string]value{}, &sync.Map{}
	for range count {
		key := c.string(maxKeyBytes)
		if c.err != nil {
			return fmt.Errorf("metadata key %d: %w", len(m.values), c.err)
		}
		if _, ok := m.values[key]; ok {
			return fmt.Errorf("metadata key %.100q: %w", key, ErrDuplicate)
		}
		v, err := readValue(c)
		if err != nil {
			return fmt.Errorf("metadata key %.100q: %w", key, err)
		}
		m.values[key] = v
	}
	return nil
}

func readValue(c *cursor) (value, error) {
	v := value{kind: kind(c.uint32()), count: 1}
	if v.kind == kindArray {
		return readArray(c, 1)
	}
	if c.err == nil && v.kind >= kindCount {
		return v, fmt.Errorf("%w: %d", ErrKind, v.kind)
	}
	return v, v.readElements(c, 0)
}

// readArray reads an array that lies in depth-1 others. An array of arrays is skipped: no getter reads one.
func readArray(c *cursor, depth int) (value, error) {
	v := value{kind: kind(c.uint32()), array: true}
	n := c.uint64()
	if n > uint64(c.left()) { // an element takes at least a byte
		return v, fmt.Errorf("%w: an array of %d in the %d bytes that are left", ErrCount, n, c.left())
	}
	v.count = int(n)
	if c.err == nil && (v.kind >= kindCount || depth > maxNesting) {
		return v, fmt.Errorf("%w: an array of %d, %d deep", ErrKind, v.kind, depth)
	}
	return v, v.readElements(c, depth)
}

// readElements passes over the value's elements, which come next, and keeps their bytes.
func (v *value) readElements(c *cursor, depth int) error {
	start := c.position
	switch {
	case v.kind == kindString:
		for i := 0; i < v.count && c.err == nil; i++ {
			c.text(maxStringBytes)
		}
	case v.kind == kindArray:
		for i := 0; i < v.count && c.err == nil; i++ {
			if _, err := readArray(c, depth+1); err != nil {
				return err
			}
		}
	case c.err == nil:
		c.take(uint64(v.count) * kindBytes[v.kind])
	}
	v.bytes = c.bytes[start:c.position:c.position]
	return c.err
}

// Has reports whether the file has the key.
func (m Metadata) Has(key string) bool {
	_, ok := m.values[key]
	return ok
}

// Keys lists the keys in alphabetical order.
func (m Metadata) Keys() []string { return slices.Sorted(maps.Keys(m.values)) }

// Unread lists the keys that no getter was asked for, in alphabetical order.
func (m Metadata) Unread() []string {
	return slices.DeleteFunc(m.Keys(), func(key string) bool {
		_, asked := m.asked.Load(key)
		return asked
	})
}

// Len is the number of elements of an array; 0 where the file has no such key, or a single value.
func (m Metadata) Len(key string) int {
	if v := m.values[key]; v.array {
		return v.count
	}
	return 0
}

// Int reads an integer of any width, alone or in an array of one.
func (m Metadata) Int(key string) (int64, error) {
	return scalar(m, key, "an integer", kind.integer, integerAt)
}

// Float reads a float32, a float64 or an integer, alone or in an array of one. Infinities and NaN are refused.
func (m Metadata) Float(key string) (float64, error) {
	return scalar(m, key, "a float", kind.number, numberAt)
}

// IsFloat32 reports whether the key holds a float32, so that a reader may print no more digits than it has.
func (m Metadata) IsFloat32(key string) bool {
	v := m.values[key]
	return v.kind == kindFloat32 && (!v.array || v.count == 1)
}

// Bool reads a bool, or an integer that is 0 or 1.
func (m Metadata) Bool(key string) (bool, error) {
	return scalar(m, key, "a bool", kind.boolean, boolAt)
}

// String reads a string. It need not be UTF-8.
func (m Metadata) String(key string) (string, error) {
	list, err := m.single(key, "a string", func(k kind) bool { return k == kindString })
	if err != nil {
		return "", err
	}
	all, err := list.strings()
	if err != nil {
		return "", fmt.Errorf("metadata key %s: %w", key, err)
	}
	return all[0], nil
}

// Strings reads an array of strings. They need not be UTF-8.
func (m Metadata) Strings(key string) ([]string, error) {
	list, err := m.list(key, "an array of strings", func(k kind) bool { return k == kindString })
	if err != nil {
		return nil, err
	}
	all, err := list.strings()
	if err != nil {
		return nil, fmt.Errorf("metadata key %s: %w", key, err)
	}
	return all, nil
}

// Ints reads an array of integers of any width.
func (m Metadata) Ints(key string) ([]int64, error) {
	return array(m, key, "an array of integers", kind.integer, integerAt)
}

// Bools reads an array of bools, or of integers that are 0 or 1.
func (m Metadata) Bools(key string) ([]bool, error) {
	return array(m, key, "an array of bools", kind.boolean, boolAt)
}

// Floats reads an array of numbers, rounded to float32. Infinities and NaN are refused.
func (m Metadata) Floats(key string) ([]float32, error) {
	return array(m, key, "an array of numbers", kind.number, func(v value, i int) (float32, error) {
		f, err := numberAt(v, i)
		return float32(f), err
	})
}

// list finds an array of the right kind. An empty one may be of any kind: a writer has no element to tell it by.
func (m Metadata) list(key, want string, accepts func(kind) bool) (value, error) {
	return m.find(key, want, func(v value) bool { return v.array && (v.count == 0 || accepts(v.kind)) })
}

// single finds one value of the right kind, alone or in an array of one.
func (m Metadata) single(key, want string, accepts func(kind) bool) (value, error) {
	return m.find(key, want, func(v value) bool { return v.count == 1 && accepts(v.kind) })
}

// find gives the value that a getter reads.
func (m Metadata) find(key, want string, accepts func(value) bool) (value, error) {
	v, ok := m.values[key]
	if !ok {
		return v, fmt.Errorf("metadata key %s: %w", key, ErrAbsent)
	}
	m.asked.Store(key, true)
	if !accepts(v) {
		return v, fmt.Errorf("metadata key %s is %v, wanted %s", key, v, want)
	}
	return v, nil
}

func scalar[T any](m Metadata, key, want string, accepts func(kind) bool, at func(value, int) (T, error)) (result T, err error) {
	v, err := m.single(key, want, accepts)
	if err != nil {
		return result, err
	}
	err = mapping.Guard(func() error {
		result, err = at(v, 0)
		return err
	})
	if err != nil {
		return result, fmt.Errorf("metadata key %s: %w", key, err)
	}
	return result, nil
}

func array[T any](m Metadata, key, want string, accepts func(kind) bool, at func(value, int) (T, error)) ([]T, error) {
	v, err := m.list(key, want, accepts)
	if err != nil {
		return nil, err
	}
	result := make([]T, v.count)
	err = mapping.Guard(func() error {
		for i := range result {
			if result[i], err = at(v, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("metadata key %s: %w", key, err)
	}
	return result, nil
}

func integerAt(v value, i int) (int64, error) {
	switch v.kind {
	case kindUint8:
		return int64(v.bytes[i]), nil
	case kindInt8:
		return int64(int8(v.bytes[i])), nil
	case kindUint16:
		return int64(binary.LittleEndian.Uint16(v.bytes[2*i:])), nil
	case kindInt16:
		return int64(int16(binary.LittleEndian.Uint16(v.bytes[2*i:]))), nil
	case kindUint32:
		return int64(binary.LittleEndian.Uint32(v.bytes[4*i:])), nil
	case kindInt32:
		return int64(int32(binary.LittleEndian.Uint32(v.bytes[4*i:]))), nil
	}
	n := binary.LittleEndian.Uint64(v.bytes[8*i:])
	if v.kind == kindUint64 && n > math.MaxInt64 {
		return 0, fmt.Errorf("%d does not fit into 63 bits", n)
	}
	return int64(n), nil
}

func boolAt(v value, i int) (bool, error) {
	if v.kind == kindBool {
		return v.bytes[i] != 0, nil
	}
	n, err := integerAt(v, i)
	if err == nil && n != 0 && n != 1 {
		err = fmt.Errorf("%d is neither 0 nor 1, wanted a bool", n)
	}
	return n == 1, err
}

func numberAt(v value, i int) (float64, error) {
	if v.kind.integer() {
		n, err := integerAt(v, i)
		return float64(n), err
	}
	var f float64
	if v.kind == kindFloat32 {
		f = float64(math.Float32frombits(binary.LittleEndian.Uint32(v.bytes[4*i:])))
	} else {
		f = math.Float64frombits(binary.LittleEndian.Uint64(v.bytes[8*i:]))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%v is no finite number", f)
	}
	return f, nil
}

// strings copies the strings out of the mapping.
func (v value) strings() ([]string, error) {
	all := make([]string, v.count)
	err := mapping.Guard(func() error {
		c := &cursor{bytes: v.bytes}
		for i := range all {
			all[i] = c.string(maxStringBytes)
		}
		return c.err
	})
	return all, err
}
