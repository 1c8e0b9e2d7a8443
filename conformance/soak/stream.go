package soak

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// event is one event of a stream.
type event struct {
	kind string // "" where it has none
	data string // of its one line
}

// stream reads server-sent events as the servers of these dialects write them, and refuses whatever else the format allows.
type stream struct{ lines *bufio.Reader }

func newStream(r io.Reader) stream { return stream{bufio.NewReader(r)} }

// next is the next event. Comments are skipped. io.EOF is the end behind a whole event.
func (s stream) next() (e event, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF) && line == "" && e == event{}:
			return e, io.EOF
		case err != nil:
			return e, fmt.Errorf("the stream breaks off behind %q and %q: %w", e, line, err)
		}
		line = line[:len(line)-1]
		kind, isKind := strings.CutPrefix(line, "event: ")
		data, isData := strings.CutPrefix(line, "data: ")
		switch {
		case line == "" && e.data != "":
			return e, nil
		case line == "" && e == event{}, strings.HasPrefix(line, ":"): // a comment has a blank line too
		case isKind && e == event{}:
			e.kind = kind
		case isData && e.data == "":
			e.data = data
		default:
			return e, fmt.Errorf("the line %q behind %q", line, e)
		}
	}
}
