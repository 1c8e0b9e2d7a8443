// Package sessions replays what agents send: requests in the order, and with the headers, fields and oddities, of their clients.
//
// A session is a JSON file below a folder named after its client. Each of its turns is a request and what must hold of the answer.
// In bodies, {"$file": NAME} stands for the contents of a file beside, {"$repeat": [TEXT, N]} for a long text, and ${NAME} in a
// string for what an earlier answer said.
package sessions

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Session is what one client does.
type Session struct {
	About string   `json:"about"` // what the session shows
	Rows  []string `json:"rows"`  // of the catalogue that it proves
	Turns []Turn   `json:"turns"` // in order
}

// Turn is a request, and what must hold of its answer.
type Turn struct {
	Name    string            `json:"name"`    // what the client does
	Feature string            `json:"feature"` // that a failure would break; empty: chat
	Method  string            `json:"method"`  // POST where it is empty
	Path    string            `json:"path"`    // with its query, as it is sent
	Headers map[string]string `json:"headers"` // beside those of every request
	Body    json.RawMessage   `json:"body"`    // nil: none
	Leave   int               `json:"leave"`   // after so many events the client leaves; 0: it reads to the end
	Want    Want              `json:"want"`    // of the answer
	Save    map[string]string `json:"save"`    // names for what paths find in the answer
}

// Want is what must hold of an answer. Paths are gjson's; of a stream they look at the array of its events' data.
type Want struct {
	Status  int                        `json:"status"`  // 200 where it is 0
	Headers map[string]string          `json:"headers"` // beginnings of values
	JSON    map[string]json.RawMessage `json:"json"`    // values; {"$match": REGEXP}, {"$more": NUMBER}, {"$absent": true}
	Events  []string                   `json:"events"`  // types of a stream's events in order, without pings; repeated ones count once
	Joined  map[string]string          `json:"joined"`  // texts that paths find in the events, put together
	Done    bool                       `json:"done"`    // a stream ends with [DONE]
	Lacks   []string                   `json:"lacks"`   // texts that are nowhere in the answer
}

// Read reads a session.
func Read(path string) (*Session, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s Session
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}

// Expand gives the body of a turn as it is sent: folder holds the files that it names, saved what earlier answers said.
func (t *Turn) Expand(folder string, saved map[string]string) ([]byte, error) {
	if t.Body == nil {
		return nil, nil
	}
	var body any
	if err := json.Unmarshal(t.Body, &body); err != nil {
		return nil, err
	}
	body, err := expand(body, folder, saved)
	if err != nil {
		return nil, err
	}
	return json.Marshal(body)
}

func expand(value any, folder string, saved map[string]string) (_ any, err error) {
	switch v := value.(type) {
	case string:
		for name, text := range saved {
			v = strings.ReplaceAll(v, "${"+name+"}", text)
		}
		return v, nil
	case []any:
		for i := range v {
			if v[i], err = expand(v[i], folder, saved); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if name, ok := v["$file"].(string); ok {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				return nil, err
			}
			var contents any
			err = json.Unmarshal(text, &contents)
			return contents, err
		}
		if list, ok := v["$repeat"].([]any); ok {
			text, isText := list[0].(string)
			n, isNumber := list[len(list)-1].(float64)
			if !isText || !isNumber || len(list) != 2 {
				return nil, fmt.Errorf("$repeat wants a text and a number, not %v", list)
			}
			return strings.Repeat(text, int(n)), nil
		}
		for name := range v {
			if v[name], err = expand(v[name], folder, saved); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}
