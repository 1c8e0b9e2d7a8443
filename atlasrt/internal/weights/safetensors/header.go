package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// parseHeader reads the header token by token, so that memory grows with the tensors and not with a tree of the JSON.
func parseHeader(header []byte) ([]entry, map[string]string, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, fmt.Errorf("%w: it must begin with {", ErrInvalidHeaderJSON)
	}
	p := &headerParser{json: json.NewDecoder(bytes.NewReader(header))}
	p.json.UseNumber()
	entries, metadata, err := p.header()
	if err == nil {
		if _, after := p.json.Token(); after != io.EOF {
			err = errors.New("text after the closing brace")
		}
	}
	if err != nil {
		for _, own := range []error{ErrDuplicate, ErrTooManyTensors, ErrName, ErrRank} {
			if errors.Is(err, own) {
				return nil, nil, err
			}
		}
		return nil, nil, fmt.Errorf("%w: near byte %d: %w", ErrInvalidHeaderJSON, p.json.InputOffset(), err)
	}
	return entries, metadata, nil
}

type headerParser struct {
	json *json.Decoder
}

func (p *headerParser) header() (entries []entry, metadata map[string]string, err error) {
	err = p.object(func(key string) error {
		if key == "__metadata__" {
			if metadata != nil {
				return fmt.Errorf("%s: %w", key, ErrDuplicate)
			}
			metadata, err = p.metadata()
			return err
		}
		if len(entries) == maxTensors {
			return ErrTooManyTensors
		}
		if err := checkName(key); err != nil {
			return err
		}
		e, err := p.entry(key)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", key, err)
		}
		entries = append(entries, e)
		return nil
	})
	return entries, metadata, err
}

func (p *headerParser) metadata() (map[string]string, error) {
	metadata := map[string]string{}
	err := p.object(func(key string) error {
		if _, ok := metadata[key]; ok {
			return fmt.Errorf("__metadata__ %.60q: %w", key, ErrDuplicate)
		}
		value, err := p.string()
		metadata[key] = value
		return err
	})
	return metadata, err
}

// entry reads {"dtype": …, "shape": […], "data_offsets": [begin, end]}, in any order, each once and nothing else.
func (p *headerParser) entry(name string) (entry, error) {
	e := entry{name: name}
	var offsets []int64
	err := p.object(func(key string) error {
		switch {
		case key == "dtype" && e.kind == 0:
			text, err := p.string()
			if err != nil {
				return err
			}
			kind, ok := tensor.Parse(text)
			if !ok || kind.Quantized() {
				return fmt.Errorf("unknown dtype %.40q", text)
			}
			e.kind = kind
		case key == "shape" && e.shape == nil:
			shape, err := p.integers(maxDimensions)
			e.shape = shape
			return err
		case key == "data_offsets" && offsets == nil:
			pair, err := p.integers(2)
			offsets = pair
			return err
		case key == "dtype" || key == "shape" || key == "data_offsets":
			return fmt.Errorf("%s: %w", key, ErrDuplicate)
		default:
			return fmt.Errorf("unknown key %.60q", key)
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	if e.kind == 0 || e.shape == nil || len(offsets) != 2 {
		return e, errors.New("needs dtype, shape and two data_offsets")
	}
	e.begin, e.end = offsets[0], offsets[1]
	return e, nil
}

// object calls member for each key of an object; member reads the value.
func (p *headerParser) object(member func(key string) error) error {
	if err := p.delimiter('{'); err != nil {
		return err
	}
	for p.json.More() {
		key, err := p.string()
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
	}
	return p.delimiter('}')
}

// integers reads an array of at most limit integers that are not negative. An empty array gives an empty slice, not nil.
func (p *headerParser) integers(limit int) ([]int64, error) {
	if err := p.delimiter('['); err != nil {
		return nil, err
	}
	list := []int64{}
	for p.json.More() {
		if len(list) == limit {
			if limit == maxDimensions {
				return nil, ErrRank
			}
			return nil, fmt.Errorf("an array of more than %d", limit)
		}
		token, err := p.token()
		if err != nil {
			return nil, err
		}
		number, ok := token.(json.Number)
		if !ok {
			return nil, fmt.Errorf("found %v, wanted an integer", token)
		}
		value, err := strconv.ParseUint(number.String(), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("found %.40s, wanted an integer from 0 to 2^63-1", number)
		}
		list = append(list, int64(value))
	}
	return list, p.delimiter(']')
}

func (p *headerParser) string() (string, error) {
	token, err := p.token()
	if err != nil {
		return "", err
	}
	text, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("found %v, wanted a string", token)
	}
	return text, nil
}

func (p *headerParser) delimiter(want json.Delim) error {
	token, err := p.token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("found %.40v, wanted %v", token, want)
	}
	return nil
}

func (p *headerParser) token() (json.Token, error) {
	token, err := p.json.Token()
	if err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return token, err
}
