package schema

import "strings"

// format is the strings of a format; nil: it is only an annotation, as unknown formats are.
func (c *compiler) format(name string) *texts {
	if t, known := c.formats[name]; known {
		return t
	}
	var t *texts
	if reason, known := unheldFormats[name]; known {
		c.unsupported("format", quote(name)+" "+reason)
	} else if pattern, known := formats[name]; known {
		t = &texts{kind: whole, pattern: pattern}
		if name == "hostname" {
			encoded := &texts{kind: whole, pattern: encodedLabel}
			t = c.bothTexts(c.bothTexts(lengthTexts(0, mostHostname), t), notTexts(encoded))
		}
	}
	c.formats[name] = t
	return t
}

// unheldFormats are those that no regular expression describes.
var unheldFormats = map[string]string{
	"idn-hostname": "depends on tables of Unicode that are not held: use \"hostname\" or a pattern",
	"regex":        "cannot be held: the form of regular expressions is not regular",
}

// What hostnames are held to besides their pattern: encoded labels are known by -- at their third place.
const (
	mostHostname = 253 // characters
	encodedLabel = `(?:[^]*\.)?[^.]{2}--[^]*`
)

// formats are patterns of whole strings. Sources: RFC 3339 (date, time), RFC 5321 (email), RFC 1123 (hostname), RFC 3986 and 3987 (uri, iri),
// RFC 4291 (ipv6), RFC 4122 (uuid), RFC 6901 (json-pointer), RFC 6570 (uri-template). A leap second is written in UTC alone. Labels of hostnames
// with -- at their third place, which are encoded ones, are left out.
var formats = func() map[string]string {
	const (
		date = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))` +
			`|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[048]|[2468][048]|[13579][26])00)-02-29)`
		offset = `[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]`
		time   = `(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[Zz]|` + offset + `)|23:59:60(?:\.[0-9]+)?(?:[Zz]|[+-]00:00))`

		clock    = `T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)`
		days     = `(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)`
		duration = `P(?:[0-9]+W|` + days + `(?:` + clock + `)?|` + clock + `)`

		octet = `(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
		ipv4  = octet + `(?:\.` + octet + `){3}`
		hex   = `[0-9A-Fa-f]`
		uuid  = hex + `{8}-` + hex + `{4}-` + hex + `{4}-` + hex + `{4}-` + hex + `{12}`
	)
	label := `(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)`
	hostname := label + `(?:\.` + label + `)*`

	group := hex + `{1,4}`
	last := `(?:` + group + `:` + group + `|` + ipv4 + `)`
	groups := func(n int) string { return `(?:` + group + `:){` + string(rune('0'+n)) + `}` }
	upTo := func(n int) string {
		if n == 0 {
			return `(?:` + group + `)?`
		}
		return `(?:(?:` + group + `:){0,` + string(rune('0'+n)) + `}` + group + `)?`
	}
	ipv6 := `(?:` + strings.Join([]string{
		groups(6) + last, `::` + groups(5) + last, upTo(0) + `::` + groups(4) + last, upTo(1) + `::` + groups(3) + last,
		upTo(2) + `::` + groups(2) + last, upTo(3) + `::` + group + `:` + last, upTo(4) + `::` + last, upTo(5) + `::` + group, upTo(6) + `::`,
	}, `|`) + `)`

	atom := `[A-Za-z0-9!#$%&'*+/=?^_` + "`" + `{|}~-]+`
	email := func(atom, quoted, domain string) string {
		return `(?:` + atom + `(?:\.` + atom + `)*|"` + quoted + `*")@(?:` + domain + `|\[` + ipv4 + `\]|\[IPv6:` + ipv6 + `\])`
	}
	idnLabel := `[A-Za-z0-9\u{80}-\u{10ffff}](?:[A-Za-z0-9\u{80}-\u{10ffff}-]*[A-Za-z0-9\u{80}-\u{10ffff}])?`

	uri := func(beyond, private string) (absolute, reference string) {
		unreserved := `[A-Za-z0-9._~` + beyond + `-]`
		character := `(?:` + unreserved + `|%` + hex + `{2}|[!$&'()*+,;=:@])`
		segments := `(?:/` + character + `*)*`
		user := `(?:` + unreserved + `|%` + hex + `{2}|[!$&'()*+,;=:])*`
		name := `(?:` + unreserved + `|%` + hex + `{2}|[!$&'()*+,;=])*`
		host := `(?:\[(?:` + ipv6 + `|[vV]` + hex + `+\.(?:[A-Za-z0-9._~!$&'()*+,;=:-])+)\]|` + name + `)`
		authority := `(?:` + user + `@)?` + host + `(?::[0-9]*)?`
		query := `(?:\?(?:` + character + `|[/?` + private + `])*)?(?:#(?:` + character + `|[/?])*)?`
		rooted := `//` + authority + segments + `|/(?:` + character + `+` + segments + `)?`
		absolute = `[A-Za-z][A-Za-z0-9+.-]*:(?:` + rooted + `|` + character + `+` + segments + `)?` + query
		noColon := `(?:` + unreserved + `|%` + hex + `{2}|[!$&'()*+,;=@])`
		reference = `(?:` + absolute + `|(?:` + rooted + `|` + noColon + `+` + segments + `)?` + query + `)`
		return absolute, reference
	}
	absolute, reference := uri("", "")
	iri, iriReference := uri(`\u{a0}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{ffef}\u{10000}-\u{1fffd}\u{20000}-\u{2fffd}\u{30000}-\u{3fffd}\u{40000}-\u{efffd}`,
		`\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}`)

	pointer := `(?:/(?:[^~/]|~[01])*)*`
	variable := `(?:[A-Za-z0-9_]|%` + hex + `{2})(?:\.?(?:[A-Za-z0-9_]|%` + hex + `{2}))*(?:\*|:[1-9][0-9]{0,3})?`
	template := `(?:[^\u0000-\u0020\u007f"<>\\^` + "`" + `{|}%]|%` + hex + `{2}|\{[+#./;?&=,!@|]?` + variable + `(?:,` + variable + `)*\})*`

	return map[string]string{
		"date":                  date,
		"time":                  time,
		"date-time":             date + `[Tt]` + time,
		"duration":              duration,
		"email":                 email(atom, `(?:[ !#-\[\]-~]|\\[ -~])`, hostname),
		"idn-email":             email(`[A-Za-z0-9!#$%&'*+/=?^_`+"`"+`{|}~\u{80}-\u{10ffff}-]+`, `(?:[ !#-\[\]-~\u{80}-\u{10ffff}]|\\[ -~])`, idnLabel+`(?:\.`+idnLabel+`)*`),
		"hostname":              hostname,
		"ipv4":                  ipv4,
		"ipv6":                  ipv6,
		"uuid":                  uuid,
		"uri":                   absolute,
		"uri-reference":         reference,
		"iri":                   iri,
		"iri-reference":         iriReference,
		"uri-template":          template,
		"json-pointer":          pointer,
		"relative-json-pointer": `(?:0|[1-9][0-9]*)(?:#|` + pointer + `)`,
	}
}()
