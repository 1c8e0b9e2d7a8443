package main

import (
	"fmt"
	"strings"
)

// keyword is what becomes of one or several.
type keyword struct {
	names string // apart by blanks
	held  string // "": always
}

// keywords are those of drafts 4 to 2020-12, and of OpenAPI.
var keywords = []struct {
	about string
	list  []keyword
}{
	{"Any value", []keyword{{"type enum const", ""}, {"nullable", "as OpenAPI has it"}}},
	{"Numbers", []keyword{
		{"minimum maximum exclusiveMinimum exclusiveMaximum", "refused where a bound has very many digits"},
		{"multipleOf", "refused where remainders are too many to count"}}},
	{"Strings", []keyword{
		{"minLength maxLength", "refused where an answer would have to be longer than a million characters"},
		{"pattern", "refused with back references, with looks around that no regular expression has, and where it takes too much work"},
		{"format", "see below"}}},
	{"Arrays", []keyword{
		{"items prefixItems additionalItems minItems maxItems", ""},
		{"uniqueItems", "refused unless items are of at most eight values, or there is at most one"},
		{"contains minContains maxContains", "refused where kinds of items or their counts have too many combinations"}}},
	{"Objects", []keyword{
		{"properties required additionalProperties propertyNames", ""},
		{"patternProperties", "refused where patterns overlap in too many ways"},
		{"minProperties maxProperties", "refused beside very many properties"},
		{"dependencies dependentRequired dependentSchemas", ""}}},
	{"Schemas about the same value", []keyword{
		{"allOf anyOf if then else", "refused where taking them apart is too much work"},
		{"oneOf not", "refused where the opposite of a part cannot be held, or is too much work"},
		{"unevaluatedProperties unevaluatedItems", "refused beside very many alternatives"}}},
	{"References", []keyword{
		{"$ref", "refused unless it is to a part of the same document"},
		{"$defs definitions $id id $anchor $schema $vocabulary", ""},
		{"$dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor", "refused where several schemas could be meant"}}},
	{"Notes, which ask nothing of a value", []keyword{
		{"title description default examples $comment deprecated readOnly writeOnly contentEncoding contentMediaType contentSchema", "ignored"}}},
}

// formats are those that are held, and those that are refused.
var formats = []keyword{
	{"date time date-time duration email idn-email hostname ipv4 ipv6 uri uri-reference iri iri-reference uuid json-pointer relative-json-pointer uri-template", ""},
	{"idn-hostname regex", "refused: no regular expression describes them"},
}

// page is docs/SCHEMAS.md.
func (c *counts) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# JSON schemas

What an answer is held to by a JSON schema. Made by `+"`make schemas`"+` of a sample of MaskBench, %d schemas. %d of them (%.1f %%) are refused.

A schema that asks for what cannot be held is refused with its path and keyword, and the reason. Other keywords than these are ignored, as the
standard has it. Properties come in the order of `+"`properties`"+`, others behind them. Integers are written with digits alone under `+"`type: integer`"+`:
`+"`5`"+` and not `+"`5.0`"+`, `+"`5e0`"+` or `+"`-0`"+`, which JSON Schema takes for integers and most programs do not.

`, c.schemas, c.refusals, c.percent(c.refusals))
	b.WriteString("| Keyword | Schemas that have it | Refused for it | Held |\n|---|---|---|---|\n")
	for _, group := range keywords {
		fmt.Fprintf(&b, "| **%s** | | | |\n", group.about)
		for _, k := range group.list {
			c.rows(&b, k, "")
		}
	}
	b.WriteString("\n## Formats\n\nFormats that are not listed ask nothing.\n\n| Format | Schemas that have it | Refused for it | Held |\n|---|---|---|---|\n")
	for _, k := range formats {
		c.rows(&b, k, "format/")
	}
	return b.String()
}

func (c *counts) rows(b *strings.Builder, k keyword, prefix string) {
	for name := range strings.FieldsSeq(k.names) {
		held := k.held
		if held == "" {
			held = "yes"
		}
		fmt.Fprintf(b, "| `%s` | %.1f %% | %.1f %% | %s |\n", name, c.percent(c.having[prefix+name]), c.percent(c.refused[prefix+name]), held)
	}
}

func (c *counts) percent(n int) float64 { return 100 * float64(n) / float64(max(c.schemas, 1)) }
