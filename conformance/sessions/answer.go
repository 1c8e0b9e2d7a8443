package sessions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Answer is what a server said.
type Answer struct {
	Status int         // of HTTP
	Header http.Header // of HTTP
	Text   string      // as it came
	Types  []string    // of a stream's events
	JSON   string      // the body, or the array of a stream's data
	Done   bool        // the stream ended with [DONE]
}

// NewAnswer reads an answer's text.
func NewAnswer(status int, header http.Header, text string) *Answer {
	a := &Answer{Status: status, Header: header, Text: text, JSON: text}
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		a.events()
	}
	return a
}

// events takes a stream apart.
func (a *Answer) events() {
	var all []string
	for event := range strings.SplitSeq(a.Text, "\n\n") {
		kind, data := "", ""
		for line := range strings.SplitSeq(event, "\n") {
			if value, ok := strings.CutPrefix(line, "event: "); ok {
				kind = value
			}
			if value, ok := strings.CutPrefix(line, "data: "); ok {
				data += value
			}
		}
		switch {
		case data == "[DONE]":
			a.Done = true
		case data != "":
			if kind == "" {
				kind = gjson.Get(data, "object").String()
			}
			all = append(all, data)
			if kind != "ping" && (len(a.Types) == 0 || a.Types[len(a.Types)-1] != kind) {
				a.Types = append(a.Types, kind)
			}
		}
	}
	a.JSON = "[" + strings.Join(all, ",") + "]"
}

// Check says what does not hold of an answer.
func (w *Want) Check(a *Answer) (wrong []string) {
	fail := func(format string, values ...any) { wrong = append(wrong, fmt.Sprintf(format, values...)) }
	status := w.Status
	if status == 0 {
		status = http.StatusOK
	}
	if a.Status != status {
		fail("status %d, want %d", a.Status, status)
	}
	for name, value := range w.Headers {
		if got := a.Header.Get(name); !strings.HasPrefix(got, value) {
			fail("header %s is %q, want %q", name, got, value)
		}
	}
	for path, want := range w.JSON {
		if why := matches(gjson.Get(a.JSON, path), want); why != "" {
			fail("%s %s", path, why)
		}
	}
	if w.Events != nil && !slices.Equal(a.Types, w.Events) {
		fail("events %q, want %q", a.Types, w.Events)
	}
	for path, want := range w.Joined {
		var text strings.Builder
		for _, event := range gjson.Parse(a.JSON).Array() {
			text.WriteString(event.Get(path).String())
		}
		if got := strings.TrimSpace(text.String()); got != want {
			fail("%s, put together, is %q, want %q", path, got, want)
		}
	}
	if w.Done && !a.Done {
		fail("the stream does not end with [DONE]")
	}
	for _, text := range w.Lacks {
		if strings.Contains(a.Text, text) {
			fail("the answer holds %q", text)
		}
	}
	return wrong
}

// matches says why a value is not the wanted one, "" where it is.
func matches(got gjson.Result, want json.RawMessage) string {
	var rule struct {
		Match  *string  `json:"$match"`
		More   *float64 `json:"$more"`
		Absent bool     `json:"$absent"`
	}
	if bytes.HasPrefix(want, []byte("{\"$")) {
		if err := json.Unmarshal(want, &rule); err != nil {
			return err.Error()
		}
	}
	switch {
	case rule.Absent:
		if got.Exists() {
			return "is " + got.Raw + ", want nothing"
		}
	case rule.Match != nil:
		if !regexp.MustCompile(*rule.Match).MatchString(got.String()) || !got.Exists() {
			return fmt.Sprintf("is %s, want what matches %q", got.Raw, *rule.Match)
		}
	case rule.More != nil:
		if got.Type != gjson.Number || got.Float() <= *rule.More {
			return fmt.Sprintf("is %s, want more than %v", got.Raw, *rule.More)
		}
	default:
		var a, b any
		if !got.Exists() || json.Unmarshal([]byte(got.Raw), &a) != nil || json.Unmarshal(want, &b) != nil || !reflect.DeepEqual(a, b) {
			return fmt.Sprintf("is %s, want %s", got.Raw, want)
		}
	}
	return ""
}
