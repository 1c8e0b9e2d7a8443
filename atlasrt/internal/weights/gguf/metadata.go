package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
)

// ErrAbsent says that the file has no such key.
var ErrAbsent = errors.New("no such key")

// Metadata is the typed keys and values of a file. A getter fails with ErrAbsent, or with an error that names the key,
// the type it has and the type that was asked for.
type Metadata struct {
	values map[string]value
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
	m.values = map[string]value{}
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
		v.array = true
		v.kind = kind(c.uint32())
		n := c.uint64()
		if n > uint64(c.left()) { // an element takes at least a byte
			return v, fmt.Errorf("%w: an array of %d in the %d bytes that are left", ErrCount, n, c.left())
		}
		v.count = int(n)
	}
	if c.err != nil {
		return v, c.err
	}
	if v.kind >= kindCount || v.kind == kindArray { // arrays of arrays have no use in a model
		return v, fmt.Errorf("%w: %d (array: %v)", ErrKind, v.kind, v.array)
	}
	start := c.position
	if v.kind == kindString {
		for i := 0; i < v.count && c.err == nil; i++ {
			c.text(maxStringBytes)
		}
	} else {
		c.take(uint64(v.count) * kindBytes[v.kind])
	}
	if c.err != nil {
		return v, c.err
	}
	v.bytes = c.bytes[start:c.position:c.position]
	if v.kind == kindBool {
		for _, b := range v.bytes {
			if b > 1 {
				return v, fmt.Errorf("%w: a bool of %d", ErrKind, b)
			}
		}
	}
	return v, nil
}

// Has reports whether the file has the key.
func (m Metadata) Has(key string) bool {
	_, ok := m.values[key]
	return ok
}

// Keys lists the keys in alphabetical order.
func (m Metadata) Keys() []string { return slices.Sorted(maps.Keys(m.values)) }

// Int reads an integer of any width.
func (m Metadata) Int(key string) (int64, error) {
	return scalar(m, key, "an integer", kind.integer, integerAt)
}

// Float reads a float32 or a float64. Infinities and NaN are refused.
func (m Metadata) Float(key string) (float64, error) {
	return scalar(m, key, "a float", func(k kind) bool { return k == kindFloat32 || k == kindFloat64 }, floatAt)
}

// IsFloat32 reports whether the key holds a float32, so that a reader may print no more digits than it has.
func (m Metadata) IsFloat32(key string) bool {
	v := m.values[key]
	return v.kind == kindFloat32 && !v.array
}

// Bool reads a bool.
func (m Metadata) Bool(key string) (bool, error) {
	return scalar(m, key, "a bool", func(k kind) bool { return k == kindBool }, func(v value, i int) (bool, error) { return v.bytes[i] == 1, nil })
}

// String reads a string. It need not be UTF-8.
func (m Metadata) String(key string) (string, error) {
	list, err := m.list(key, "a string", false, func(k kind) bool { return k == kindString })
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
	list, err := m.list(key, "an array of strings", true, func(k kind) bool { return k == kindString })
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

// Floats reads an array of float32. Infinities and NaN are refused.
func (m Metadata) Floats(key string) ([]float32, error) {
	return array(m, key, "an array of float32", func(k kind) bool { return k == kindFloat32 }, func(v value, i int) (float32, error) {
		f, err := floatAt(v, i)
		return float32(f), err
	})
}

// list finds a value of the right kind.
func (m Metadata) list(key, want string, array bool, accepts func(kind) bool) (value, error) {
	v, ok := m.values[key]
	if !ok {
		return v, fmt.Errorf("metadata key %s: %w", key, ErrAbsent)
	}
	if v.array != array || !accepts(v.kind) {
		return v, fmt.Errorf("metadata key %s is %v, wanted %s", key, v, want)
	}
	return v, nil
}

func scalar[T any](m Metadata, key, want string, accepts func(kind) bool, at func(value, int) (T, error)) (result T, err error) {
	v, err := m.list(key, want, false, accepts)
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
	v, err := m.list(key, want, true, accepts)
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

func floatAt(v value, i int) (float64, error) {
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
