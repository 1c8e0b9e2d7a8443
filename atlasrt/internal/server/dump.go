package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
)

// Bounds of a dump.
const (
	dumpedBytes   = 4 << 20  // of a request, and of an answer; what is beyond is cut
	dumpHeldBytes = 64 << 20 // of all that waits to be written
	dumpHeld      = 1024     // requests that wait to be written
)

// Dump writes requests for answers and the answers to a file, one JSON object a line: what was said, whatever the dialect, and
// never a header. Requests do not wait for it: what comes faster than it can be written is dropped, and a line says how much was.
type Dump struct {
	file    *os.File
	log     *slog.Logger
	queue   chan *record
	held    atomic.Int64 // bytes that wait
	dropped atomic.Int64
	stop    func()
	done    chan struct{} // closed once all is written
	err     error         // the first of writing; of the writer, and others once done is closed
}

// OpenDump appends to a file that only its owner can read. Whoever gets a dump must end it with Close.
func OpenDump(path string, log *slog.Logger) (*Dump, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("server: dump: %w", err)
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		if err := file.Chmod(0o600); err != nil { // it may have been there
			return nil, errors.Join(fmt.Errorf("server: dump: %w", err), file.Close())
		}
	}
	stopped := make(chan struct{})
	d := &Dump{file: file, log: log, queue: make(chan *record, dumpHeld), stop: sync.OnceFunc(func() { close(stopped) }), done: make(chan struct{})}
	go d.run(stopped)
	return d, nil
}

// Close writes what still waits, and ends the dump: requests that come later are in none. It gives the first error of writing.
func (d *Dump) Close() error {
	d.stop()
	<-d.done
	return errors.Join(d.err, d.file.Close())
}

// run writes records until it is stopped and none is left.
func (d *Dump) run(stopped <-chan struct{}) {
	defer close(d.done)
	for {
		select {
		case r := <-d.queue:
			d.write(r)
		case <-stopped:
			for len(d.queue) > 0 {
				d.write(<-d.queue)
			}
			d.writeDropped()
			return
		}
	}
}

// record is a request of a route and its answer; nil: it is in no dump.
type record struct {
	time   time.Time
	id     string
	route  string
	model  string
	status int
	stream bool
	took   time.Duration
	asked  []byte // the body
	answer []byte // as it was sent
	cut    bool   // asked or answer is not whole
}

// begin makes the record of a request that comes in.
func (d *Dump) begin() *record {
	if d == nil {
		return nil
	}
	return &record{time: time.Now()}
}

// request keeps a body.
func (r *record) request(body []byte) {
	if r == nil {
		return
	}
	if r.asked = body; len(body) > dumpedBytes {
		r.asked, r.cut = bytes.Clone(body[:dumpedBytes]), true
	}
}

// sent keeps a piece of the answer.
func (r *record) sent(piece []byte) {
	if r == nil {
		return
	}
	room := dumpedBytes - len(r.answer)
	r.cut = r.cut || len(piece) > room
	r.answer = append(r.answer, piece[:min(len(piece), room)]...)
}

// end hands the record of a request to the writer.
func (d *Dump) end(c *gin.Context, e *entry) {
	r := e.record
	if r == nil {
		return
	}
	r.name(c, e)
	r.status, r.stream = c.Writer.Status(), c.Writer.Header().Get("Content-Type") == eventType
	d.put(r)
}

// name says which request a record is of.
func (r *record) name(c *gin.Context, e *entry) {
	r.id, r.route, r.model = c.Writer.Header().Get(requestID), c.FullPath(), e.model
}

// later is a further record of a request, whose answer goes on when the client has been told that it waits.
func (r *record) later(c *gin.Context, e *entry) *record {
	if r == nil {
		return nil
	}
	next := &record{time: r.time, asked: r.asked, cut: r.cut}
	next.name(c, e)
	return next
}

// answered hands the record of a whole answer to the writer.
func (d *Dump) answered(r *record, answer []byte) {
	if r != nil {
		r.status = http.StatusOK
		r.sent(answer)
		d.put(r)
	}
}

// put hands a record to the writer, or drops it.
func (d *Dump) put(r *record) {
	r.took = time.Since(r.time)
	size := r.size()
	if d.held.Add(size) > dumpHeldBytes {
		d.held.Add(-size)
		d.dropped.Add(1)
		return
	}
	select {
	case d.queue <- r:
	default:
		d.held.Add(-size)
		d.dropped.Add(1)
	}
}

func (r *record) size() int64 { return int64(len(r.asked) + len(r.answer)) }

// line is a record as it is written.
type line struct {
	Time    string          `json:"time"`
	ID      string          `json:"id"`
	Route   string          `json:"route"`
	Model   string          `json:"model,omitempty"`
	Request json.RawMessage `json:"request"`
	Status  int             `json:"status"`
	Answer  json.RawMessage `json:"answer"`
	Took    float64         `json:"ms"`
	Cut     bool            `json:"cut,omitempty"`
}

func (d *Dump) write(r *record) {
	d.held.Add(-r.size())
	d.writeDropped()
	answer := raw(r.answer)
	if r.stream {
		answer = eventData(r.answer)
	}
	writeLine(d, line{r.time.UTC().Format(time.RFC3339Nano), r.id, r.route, r.model, raw(r.asked), r.status, answer, float64(r.took.Microseconds()) / 1e3, r.cut})
}

// writeDropped says how many requests are missing.
func (d *Dump) writeDropped() {
	if n := d.dropped.Swap(0); n > 0 {
		writeLine(d, struct {
			Time    string `json:"time"`
			Dropped int64  `json:"dropped"`
		}{time.Now().UTC().Format(time.RFC3339Nano), n})
	}
}

// writeLine writes a value with one call, so that lines of several servers in one file stay apart.
func writeLine[T any](d *Dump, v T) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic("BUG: " + err.Error())
	}
	if _, err := d.file.Write(b.Bytes()); err != nil && d.err == nil {
		d.err = fmt.Errorf("server: dump: %w", err)
		d.log.Error("the dump cannot be written", "error", err)
	}
}

// raw is JSON as it is, and the JSON of a string where it is none; nothing is null.
func raw(text []byte) json.RawMessage {
	switch {
	case len(text) == 0:
		return nil
	case utf8.Valid(text) && json.Valid(text):
		return text
	}
	b, err := json.Marshal(string(text))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

// eventData is an array of the data of a stream's events. Comments, and an event without its end, are left out.
func eventData(stream []byte) json.RawMessage {
	b := []byte("[")
	for {
		event, rest, whole := bytes.Cut(stream, []byte("\n\n"))
		if !whole {
			return append(b, ']')
		}
		stream = rest
		for text := range strings.SplitSeq(string(event), "\n") {
			if data, ok := strings.CutPrefix(text, "data: "); ok {
				if len(b) > 1 {
					b = append(b, ',')
				}
				b = append(b, raw([]byte(data))...)
			}
		}
	}
}
