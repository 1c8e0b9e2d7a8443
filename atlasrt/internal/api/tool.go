package api

import (
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// toolName is what functions may be called, in every API.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// Tools gathers the tools of a request, whatever their dialect.
type Tools struct {
	List   []chat.Tool // that were added, and that the model gets to see
	limits Limits
	names  map[string]bool
}

// NewTools holds tools against limits.
func NewTools(limits Limits) *Tools { return &Tools{limits: limits, names: map[string]bool{}} }

// Add takes a tool that f reads, or blames its field.
func (t *Tools) Add(f *Fields, name string, tool chat.Tool) {
	size := len(tool.Description)
	if tool.Parameters != nil {
		size += len(jsontree.Append(nil, tool.Parameters))
	}
	switch {
	case f.Err() != nil:
	case !toolName.MatchString(tool.Name):
		f.Invalid(name, "must have from 1 to 128 letters, digits, _ and -, not %.140q", tool.Name)
	case t.names[tool.Name]:
		f.Invalid(name, "is %q, which another tool is called already", tool.Name)
	case len(t.List) == t.limits.Tools:
		f.Fail(TooMuch(LimitTools, f.Path(name), "%s: more than %d tools are declared.", f.Path(name), t.limits.Tools))
	case size > t.limits.ToolBytes:
		f.Fail(TooMuch(LimitTools, f.Path(name), "%s is of a tool with %d bytes of description and schema, at most %d are allowed.", f.Path(name), size, t.limits.ToolBytes))
	default:
		t.names[tool.Name] = true
		tool.Field = strings.TrimSuffix(f.Path(""), ".")
		t.List = append(t.List, tool)
	}
}

// Has tells whether a tool of a name was added.
func (t *Tools) Has(name string) bool { return t.names[name] }

// Keep drops the tools that are not among names.
func (t *Tools) Keep(names map[string]bool) {
	t.List = slices.DeleteFunc(t.List, func(tool chat.Tool) bool { return !names[tool.Name] })
}
