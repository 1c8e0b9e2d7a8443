package weights

import (
	"fmt"
	"strings"
)

// Listed joins names with commas for a line of text: the first of them, at most most, and how many more there are.
func Listed(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
