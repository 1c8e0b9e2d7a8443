package safetensors

import (
	"errors"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// parseHeader reads the header in one pass, so that memory grows with the tensors and not with a tree of the JSON.
func parseHeader(header []byte) ([]entry, map[string]string, error) {
	s := &scanner{text: header}
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, fmt.Errorf("%w: it must begin with {", ErrInvalidHeaderJSON)
	}
	entries, metadata, err := readHeader(s)
	if err == nil {
		err = s.end()
	}
	if err == nil {
		return entries, metadata, nil
	}
	for _, own := range []error{ErrDuplicate, ErrTooManyTensors, ErrName, ErrRank} {
		if errors.Is(err, own) {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%w: near byte %d: %w", ErrInvalidHeaderJSON, s.position, err)
}

func readHeader(s *scanner) (entries []entry, metadata map[string]string, err error) {
	err = s.object(func(key string) error {
		if key == "__metadata__" {
			if metadata != nil {
				return fmt.Errorf("%s: %w", key, ErrDuplicate)
			}
			metadata, err = readMetadata(s)
			return err
		}
		if len(entries) == maxTensors {
			return ErrTooManyTensors
		}
		if err := checkName(key); err != nil {
			return err
		}
		e, err := readEntry(s, key)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", key, err)
		}
		entries = append(entries, e)
		return nil
	})
	return entries, metadata, err
}

func readMetadata(s *scanner) (map[string]string, error) {
	metadata := map[string]string{}
	err := s.object(func(key string) error {
		if _, ok := metadata[key]; ok {
			return fmt.Errorf("__metadata__ %.60q: %w", key, ErrDuplicate)
		}
		value, err := s.string()
		metadata[key] = value
		return err
	})
	return metadata, err
}

// entry reads {"dtype": …, "shape": […], "data_offsets": [begin, end]}, in any order, each once and nothing else.
func readEntry(s *scanner, name string) (entry, error) {
	e := entry{name: name}
	var offsets []int64
	err := s.object(func(key string) error {
		switch {
		case key == "dtype" && e.kind == 0:
			text, err := s.string()
			if err != nil {
				return err
			}
			kind, ok := tensor.Parse(text)
			if !ok || kind.Quantized() {
				return fmt.Errorf("unknown dtype %.40q", text)
			}
			e.kind = kind
		case key == "shape" && e.shape == nil:
			shape, err := s.integers(maxDimensions)
			e.shape = shape
			return err
		case key == "data_offsets" && offsets == nil:
			pair, err := s.integers(2)
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
