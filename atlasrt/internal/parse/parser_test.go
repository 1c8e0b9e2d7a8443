package parse

import (
	"reflect"
	"slices"
	"testing"
)

// TestRecords reads every record at every cut, with marks that are spelled and with marks that are control tokens.
func TestRecords(t *testing.T) {
	count := map[string]int{}
	cuts := 0
	for _, c := range corpora() {
		count[c.tools] += len(c.records)
		for _, r := range c.records {
			for _, control := range []bool{false, true} {
				if control && r.marks == spelledMarks || !control && r.marks == controlMarks {
					continue
				}
				config := c.config(t, &r, control)
				answer := atoms(&config, r.answer)
				failed := false
				every(len(answer), func(at []int) {
					got, _ := read(config, answer, at...)
					if cuts++; !failed && !reflect.DeepEqual(got, r.want) {
						failed = true
						t.Errorf("%s, %s, control tokens %v: %q cut at %v:\n got %+v\nwant %+v", c.tools, r.name, control, r.answer, at, got, r.want)
					}
				})
			}
		}
	}
	for _, name := range ToolFormats() {
		if count[name] < 12 {
			t.Errorf("%s has %d records, want 12", name, count[name])
		}
	}
	for _, name := range ReasoningFormats() {
		if !slices.ContainsFunc(corpora(), func(c corpus) bool { return c.reasoning == name }) {
			t.Errorf("thoughts of %s have no records", name)
		}
	}
	t.Logf("%v records, %d ways to cut them", count, cuts)
}
