package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// fields is a JSON object that keeps the order of its names: transformers adds tokens in it.
type fields struct {
	names  []string
	values map[string]json.RawMessage
}

// maxNames bounds the names of an object, each of which is looked for among the others.
const maxNames = 10_000

// readFields reads an object. Of a name that is there twice, the last value counts.
func readFields(data []byte) (fields, error) {
	f := fields{values: make(map[string]json.RawMessage)}
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return f, errors.New("want an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return f, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return f, err
		}
		f.values[name.(string)] = value
		if f.names = append(f.names, name.(string)); len(f.names) > maxNames {
			return f, fmt.Errorf("more than %d names", maxNames)
		}
	}
	if _, err := d.Token(); err != nil {
		return f, err
	}
	if _, err := d.Token(); err != io.EOF {
		return f, errors.New("text behind the object")
	}
	return f, nil
}

// readFile reads the object in a file, an empty one where there is no file.
func readFile(name string, data []byte) (fields, error) {
	switch {
	case data == nil:
		return fields{}, nil
	case len(data) > maxFileBytes:
		return fields{}, fmt.Errorf("%s: %d bytes: at most %d are allowed", name, len(data), maxFileBytes)
	}
	f, err := readFields(data)
	if err != nil {
		return f, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}
