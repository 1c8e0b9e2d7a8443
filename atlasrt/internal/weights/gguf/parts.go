package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The keys of a model that llama-gguf-split wrote in parts. The first part has all other metadata, too.
const (
	keyPart        = "split.no" // from 0
	keyParts       = "split.count"
	keyPartTensors = "split.tensors.count" // of all parts together
)

// maxParts bounds the files of one model: its format numbers them with five digits.
const maxParts = 99_999

// ErrPart says that a file is one part of a model whose other parts are missing, or do not belong to it.
var ErrPart = errors.New("a model in parts")

// PartName is the name of one part, such as NAME-00002-of-00003.gguf.
type PartName struct {
	Stem        string // what comes before -00002-of-00003
	Part, Parts int    // from 1
	ending      string // what comes after -00002-of-00003
}

var partForm = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})((?i:\.gguf)?)$`)

// ParsePartName takes the name of a part apart. A path keeps its folder.
func ParsePartName(name string) (PartName, bool) {
	m := partForm.FindStringSubmatch(name)
	if m == nil {
		return PartName{}, false
	}
	part, _ := strconv.Atoi(m[2]) // five digits
	parts, _ := strconv.Atoi(m[3])
	return PartName{Stem: m[1], ending: m[4], Part: part, Parts: parts}, part >= 1 && part <= parts
}

// Of is the name of another part of the same model.
func (n PartName) Of(part int) string {
	return fmt.Sprintf("%s-%05d-of-%05d%s", n.Stem, part, n.Parts, n.ending)
}

// All lists the names of all parts in order.
func (n PartName) All() []string {
	names := make([]string, n.Parts)
	for i := range names {
		names[i] = n.Of(i + 1)
	}
	return names
}

// Open maps a file and checks it; for the first part of a model in parts, all of them. The error wraps one of the Err
// values, or the file system's error.
func Open(path string) (*File, error) {
	f, err := openOne(path)
	if errors.Is(err, ErrTruncated) || errors.Is(err, ErrMagic) {
		if joined, ok := cutName(path); ok {
			return nil, fmt.Errorf("%w: its name is that of a file that was cut into pieces (join them with `cat` into %s)", err, joined)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := f.openOthers(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

var cutForm = regexp.MustCompile(`(?i)^(.*\.gguf)[.-](?:split|part)-?[0-9a-z]+$`)

// cutName recognises names like x.gguf-split-a and x.gguf.part1of2, which are pieces of bytes, and gives that of the whole.
func cutName(path string) (string, bool) {
	m := cutForm.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return "", false
	}
	return m[1], true
}

// openOthers opens the parts after the first and takes their tensors.
func (f *File) openOthers() error {
	parts, err := f.Int(keyParts)
	if errors.Is(err, ErrAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	if parts < 0 || parts > maxParts {
		return fmt.Errorf("%w: %s is %d, wanted at most %d", ErrPart, keyParts, parts, maxParts)
	}
	if parts <= 1 {
		return nil
	}
	part, err := f.Int(keyPart)
	if err != nil {
		return err
	}
	name, ok := f.partName(part, parts)
	if part != 0 {
		first := "the one that ends in " + PartName{Parts: int(parts), ending: ".gguf"}.Of(1)
		if ok {
			first = name.Of(1)
		}
		return fmt.Errorf("%w: this is part %d of %d (give the first, %s)", ErrPart, part+1, parts, first)
	}
	if !ok {
		return fmt.Errorf("%w: this is the first of %d, which are found by their names (call it NAME%s)", ErrPart, parts, PartName{Parts: int(parts), ending: ".gguf"}.Of(1))
	}
	for number := 2; number <= int(parts); number++ {
		if err := f.openPart(name, number); err != nil {
			return err
		}
	}
	if n, err := f.Int(keyPartTensors); !errors.Is(err, ErrAbsent) && (err != nil || n != int64(len(f.tensors))) {
		return errors.Join(err, fmt.Errorf("%w: the %d parts hold %d tensors, the first part says %d: they are not of one model (get them again)", ErrPart, parts, len(f.tensors), n))
	}
	return nil
}

// partName finds how the parts are called: by the name the file was opened by, or by the file that a link leads to.
func (f *File) partName(part, parts int64) (PartName, bool) {
	fits := func(path string) (PartName, bool) {
		folder, base := filepath.Split(path)
		name, ok := ParsePartName(base)
		name.Stem = folder + name.Stem
		return name, ok && int64(name.Part) == part+1 && int64(name.Parts) == parts
	}
	if name, ok := fits(f.Path()); ok {
		return name, true
	}
	target, err := filepath.EvalSymlinks(f.Path())
	if err != nil {
		return PartName{}, false
	}
	return fits(target)
}

// openPart opens one more part.
func (f *File) openPart(name PartName, number int) error {
	path := name.Of(number)
	other, err := openOne(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: part %d of %d is missing: put %s beside the first (%w)", ErrPart, number, name.Parts, filepath.Base(path), err)
	}
	if err != nil {
		return fmt.Errorf("%w: part %d of %d: %w", ErrPart, number, name.Parts, err)
	}
	f.others = append(f.others, other)
	part, err := other.Int(keyPart)
	parts, countErr := other.Int(keyParts)
	if err := errors.Join(err, countErr); err != nil {
		return fmt.Errorf("%w: %s is no part: %w", ErrPart, path, err)
	}
	if part != int64(number-1) || parts != int64(name.Parts) {
		return fmt.Errorf("%w: %s says that it is part %d of %d, wanted %d of %d (get it again)", ErrPart, path, part+1, parts, number, name.Parts)
	}
	for _, t := range other.tensors {
		if _, ok := f.tensors[t.Name]; ok {
			return fmt.Errorf("%w: tensor %s is in %s and in a part before it: %w", ErrPart, t.Name, path, ErrDuplicate)
		}
		f.tensors[t.Name] = t
	}
	return nil
}

// Pieces groups the names of a folder's GGUF files into models: a name alone, or the first of its parts. Parts whose first
// is not there are left out.
func Pieces(names []string) []string {
	var models []string
	for _, name := range names {
		if !strings.HasSuffix(strings.ToLower(name), ".gguf") {
			continue
		}
		if part, ok := ParsePartName(name); !ok || part.Part == 1 {
			models = append(models, name)
		}
	}
	return models
}
