package weights

import (
	"slices"
	"strings"
)

// EndsIn reports whether a name, of a tensor or of a file, ends in one of the endings.
func EndsIn(name string, endings ...string) bool {
	return slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(name, ending) })
}
