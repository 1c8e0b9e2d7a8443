package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	maxConfigBytes = 4 << 20
	maxConfigDepth = 64
)

// parseObject reads a JSON object: values are nil, bool, string, json.Number, []any and map[string]any. Unlike
// encoding/json it refuses doubled keys, NaN and depth, and reads Python's Infinity, which becomes the number 1e999.
func parseObject(text []byte) (map[string]any, error) {
	if len(text) > maxConfigBytes {
		return nil, fmt.Errorf("larger than %d bytes", maxConfigBytes)
	}
	text, err := spellInfinity(text)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, err := parseValue(decoder, 0)
	if err == nil {
		if _, after := decoder.Token(); after != io.EOF {
			err = errors.New("text after the end")
		}
	}
	if err != nil {
		line := 1 + bytes.Count(text[:min(int(decoder.InputOffset()), len(text))], []byte("\n"))
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	return object, nil
}

func parseValue(decoder *json.Decoder, depth int) (any, error) {
	if depth > maxConfigDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxConfigDepth)
	}
	token, err := decoder.Token()
	if err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			value, err := parseValue(decoder, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := decoder.Token()
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for decoder.More() {
			key, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string) // the decoder accepts nothing else here
			if _, ok := object[name]; ok {
				return nil, fmt.Errorf("key %.100q is given twice", name)
			}
			if object[name], err = parseValue(decoder, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := decoder.Token()
		return object, err
	}
	return token, nil
}

// spellInfinity replaces Infinity, which Python writes and JSON does not know, by a number that is too large for a float.
func spellInfinity(text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte("Infinity")) && !bytes.Contains(text, []byte("NaN")) {
		return text, nil
	}
	out := make([]byte, 0, len(text))
	quoted := false
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case quoted && text[i] == '\\' && len(rest) > 1:
			out = append(out, text[i])
			i++
		case text[i] == '"':
			quoted = !quoted
		case !quoted && bytes.HasPrefix(rest, []byte("Infinity")):
			out = append(out, "1e999"...)
			i += len("Infinity") - 1
			continue
		case !quoted && bytes.HasPrefix(rest, []byte("NaN")):
			return nil, fmt.Errorf("line %d: NaN is no number", 1+bytes.Count(text[:i], []byte("\n")))
		}
		out = append(out, text[i])
	}
	return out, nil
}
