package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// The two large parts of a tokenizer.json, vocabulary and merges, are read here: without a map, in which a repeated key
// would go unseen, and without a value per merge. encoding/json has checked the syntax of what comes here.

// reader walks over a JSON value.
type reader struct {
	data []byte
	at   int
}

var errShape = errors.New("not the expected JSON shape")

// peek is the next byte that is not white space, 0 at the end.
func (r *reader) peek() byte {
	for r.at < len(r.data) {
		switch b := r.data[r.at]; b {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return b
		}
	}
	return 0
}

// accept goes over b if it is next.
func (r *reader) accept(b byte) bool {
	if r.peek() != b {
		return false
	}
	r.at++
	return true
}

// text reads a string. The result may be part of the data.
func (r *reader) text() ([]byte, error) {
	if !r.accept('"') {
		return nil, errShape
	}
	start := r.at
	for ; r.at < len(r.data); r.at++ {
		switch r.data[r.at] {
		case '"':
			r.at++
			return r.data[start : r.at-1], nil
		case '\\':
			return r.escapedText(start)
		}
	}
	return nil, errShape
}

// escapedText reads the string that began at start and has an escape at r.at.
func (r *reader) escapedText(start int) ([]byte, error) {
	for ; r.at < len(r.data); r.at++ {
		switch r.data[r.at] {
		case '\\':
			r.at++
		case '"':
			r.at++
			var s string
			err := json.Unmarshal(r.data[start-1:r.at], &s)
			return []byte(s), err
		}
	}
	return nil, errShape
}

// integer reads a number without fraction.
func (r *reader) integer() (int64, error) {
	r.peek()
	n := bytes.IndexAny(r.data[r.at:], ",}] \t\r\n")
	if n < 0 {
		return 0, errShape
	}
	value, err := strconv.ParseInt(string(r.data[r.at:r.at+n]), 10, 64)
	r.at += n
	return value, err
}

// readVocabulary reads an object of token to id.
func readVocabulary(data []byte) (vocabulary, error) {
	r := reader{data: data}
	if !r.accept('{') {
		return vocabulary{}, fmt.Errorf("vocab: want an object of token to id: %w", errShape)
	}
	count := bytes.Count(data, []byte{','}) // at least the number of tokens, less one
	v := vocabulary{ids: make(map[string]int32, min(count+1, maxTokens))}
	for r.peek() != '}' {
		token, err := r.text()
		if err != nil || !r.accept(':') {
			return vocabulary{}, fmt.Errorf("vocab: %w", errShape)
		}
		id, err := r.integer()
		if err != nil {
			return vocabulary{}, fmt.Errorf("vocab: token %.40q: %w", token, err)
		}
		if err := v.add(string(token), id); err != nil {
			return vocabulary{}, fmt.Errorf("vocab: %w", err)
		}
		if !r.accept(',') && r.peek() != '}' {
			return vocabulary{}, fmt.Errorf("vocab: %w", errShape)
		}
	}
	return v, nil
}

// readMerges reads a list of merges, each a list of two tokens or a string of them with a blank between.
func (v *vocabulary) readMerges(data []byte) ([]merge, error) {
	r := reader{data: data}
	if !r.accept('[') {
		return nil, fmt.Errorf("merges: want a list: %w", errShape)
	}
	var merges []merge
	for rank := 0; r.peek() != ']'; rank++ {
		left, right, err := r.pair()
		if err != nil {
			return nil, fmt.Errorf("merges: number %d: %w", rank, err)
		}
		if merges, err = v.merge(merges, string(left), string(right), rank); err != nil {
			return nil, err
		}
		if !r.accept(',') && r.peek() != ']' {
			return nil, fmt.Errorf("merges: %w", errShape)
		}
	}
	return merges, nil
}

func (r *reader) pair() (left, right []byte, err error) {
	if r.peek() == '"' {
		both, err := r.text()
		if err != nil {
			return nil, nil, err
		}
		left, right, ok := cutMerge(both)
		if !ok {
			return nil, nil, fmt.Errorf("%.40q is not two tokens with a blank between", both)
		}
		return left, right, nil
	}
	if !r.accept('[') {
		return nil, nil, errShape
	}
	if left, err = r.text(); err != nil {
		return nil, nil, err
	}
	if !r.accept(',') {
		return nil, nil, errShape
	}
	if right, err = r.text(); err != nil {
		return nil, nil, err
	}
	if !r.accept(']') {
		return nil, nil, errShape
	}
	return left, right, nil
}

// cutMerge cuts "left right".
func cutMerge(both []byte) (left, right []byte, ok bool) {
	left, right, ok = bytes.Cut(both, []byte{' '})
	return left, right, ok && !bytes.Contains(right, []byte{' '})
}
