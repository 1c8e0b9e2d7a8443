package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

const textType = "text/plain; charset=utf-8"

// index is what GET / says. Where keys are needed it names neither version nor models.
type index struct {
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"`
	Models  []string `json:"models,omitempty"`
	NeedKey bool     `json:"needs_key"`
	Routes  []string `json:"routes"`
}

// index answers GET /: what this is and where to go.
func (s *Server) index(c *gin.Context) {
	i := index{Name: "atlasrt", NeedKey: len(s.keys) > 0}
	if !i.NeedKey {
		i.Version = s.config.Version
		for _, m := range s.models {
			i.Models = append(i.Models, m.ID)
		}
	}
	for _, r := range table(&s.config) {
		if r.path != "/" {
			i.Routes = append(i.Routes, r.method+" "+strings.NewReplacer("*id", "{id}", ":id", "{id}").Replace(r.path))
		}
	}
	if c.NegotiateFormat(gin.MIMEPlain, gin.MIMEJSON) == gin.MIMEJSON {
		body, err := json.Marshal(i)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		s.write(c, 200, jsonType, body)
		return
	}
	s.write(c, 200, textType, []byte(i.text()))
}

func (i *index) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: a server of language models that speaks the OpenAI and the Anthropic API.\n", strings.TrimSpace(i.Name+" "+i.Version))
	if i.NeedKey {
		b.WriteString("Requests need a key: Authorization: Bearer KEY, or x-api-key: KEY\n")
	} else {
		fmt.Fprintf(&b, "Serves %s.\n", strings.Join(i.Models, ", "))
	}
	b.WriteString("\n")
	for _, r := range i.Routes {
		method, path, _ := strings.Cut(r, " ")
		fmt.Fprintf(&b, "%-4s %s\n", method, path)
	}
	return b.String()
}

// notFound says that there is no such path, and which one may be meant.
func (s *Server) notFound(c *gin.Context) {
	e := &api.Error{Kind: api.KindUnknownPath, Message: "There is no such path here; GET / lists those that there are."}
	if near := nearRoute(c.Request.URL.Path); near != "" {
		e.Message = "There is no such path here; did you mean " + near + "?"
	}
	s.fail(c, e)
}

// nearRoute is the route that a path ends with or begins, or that few letters tell from it; empty where none is near.
func nearRoute(path string) string {
	const longest = 100 // of paths that are looked at
	path = strings.ToLower(path)
	if len(path) > longest {
		return ""
	}
	best, distance := "", 3 // letters that may differ, plus one
	for _, r := range table(&Config{}) {
		if r.path == "/" || strings.ContainsAny(r.path, "*:") {
			continue
		}
		if strings.HasSuffix(path, r.path) || strings.HasPrefix(r.path, path+"/") {
			return r.path // of those that end alike the longest is first in the table
		}
		if d := edits(path, r.path); d < distance {
			best, distance = r.path, d
		}
	}
	return best
}

// edits is how many letters must be changed, added or left out to make b of a (Levenshtein's distance).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0] // of the column before
		row[0] = i + 1
		for j := range len(b) {
			change := above
			if a[i] != b[j] {
				change++
			}
			above = row[j+1]
			row[j+1] = min(change, above+1, row[j]+1)
		}
	}
	return row[len(b)]
}
