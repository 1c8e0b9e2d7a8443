package safetensors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Write stores the tensors in this order. The file appears under its name only when it is complete.
func Write(path string, tensors ...tensor.Tensor) error {
	infos := make([]tensor.Info, len(tensors))
	for i, t := range tensors {
		infos[i] = t.Info
	}
	return WriteEach(path, infos, func(i int) ([]byte, error) { return tensors[i].Data, nil })
}

// WriteEach stores tensors in this order, of which data gives the bytes one after the other; they may change when it is called again. The
// file appears under its name only when it is complete.
func WriteEach(path string, tensors []tensor.Info, data func(i int) ([]byte, error)) (err error) {
	header, err := encodeHeader(tensors)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	out := bufio.NewWriterSize(file, 1<<20)
	out.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header))))
	out.Write(header)
	for i := range tensors {
		bytes, err := data(i)
		if want, _ := tensors[i].Type.Bytes(tensors[i].Shape); err == nil && int64(len(bytes)) != want {
			err = fmt.Errorf("write %s: tensor %v has %d bytes: %w", path, tensors[i], len(bytes), ErrTensorInvalidInfo)
		}
		if err == nil {
			_, err = out.Write(bytes)
		}
		if err != nil {
			return errors.Join(err, file.Close())
		}
	}
	// A temporary file is its owner's alone, a checkpoint is not.
	if err := errors.Join(out.Flush(), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// encodeHeader is the header of a file with these tensors, padded with spaces to a multiple of 8 bytes as the format advises.
func encodeHeader(tensors []tensor.Info) ([]byte, error) {
	var header bytes.Buffer
	seen := map[string]bool{"__metadata__": true}
	position := int64(0)
	separator := "{"
	for _, t := range tensors {
		if seen[t.Name] {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, ErrDuplicate)
		}
		seen[t.Name] = true
		if err := checkName(t.Name); err != nil {
			return nil, err
		}
		if len(t.Shape) > maxDimensions {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, ErrRank)
		}
		if _, ok := tensor.Parse(t.Type.String()); !ok || t.Type.Quantized() {
			return nil, fmt.Errorf("tensor %q: the format has no type %v", t.Name, t.Type)
		}
		size, err := t.Type.Bytes(t.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %v: %w", t, errors.Join(ErrTensorInvalidInfo, err))
		}
		member, err := json.Marshal(struct {
			Type    string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.Type.String(), append([]int64{}, t.Shape...), [2]int64{position, position + size}})
		if err != nil {
			return nil, err
		}
		name, err := json.Marshal(t.Name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&header, "%s%s:%s", separator, name, member)
		separator = ","
		position += size
	}
	if len(tensors) == 0 {
		header.WriteByte('{')
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	return header.Bytes(), nil
}
