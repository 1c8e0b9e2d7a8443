package ebnf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

type language func(*rules.Builder, string) (rules.Symbol, error)

// bytesOnly is a vocabulary of single bytes.
func bytesOnly() *match.Vocabulary {
	tokens := make([][]byte, 256)
	for i := range tokens {
		tokens[i] = []byte{byte(i)}
	}
	return match.NewVocabulary(tokens, func(int32) bool { return false })
}

func compile(read language, grammar string) (*match.Machine, error) {
	b := rules.NewBuilder()
	start, err := read(b, grammar)
	if err != nil {
		return nil, err
	}
	g, err := b.Grammar(start)
	if err != nil {
		return nil, err
	}
	return match.New(g, bytesOnly(), match.Limits{})
}

func accepts(m *match.Machine, text string) bool {
	s, n := m.Start().NextBytes([]byte(text))
	return n == len(text) && s.Done()
}

type texts []string

type acceptance struct {
	name    string
	grammar string
	in, out texts
}

func check(t *testing.T, read language, cases []acceptance) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, err := compile(read, c.grammar)
			if err != nil {
				t.Fatalf("%s\n%v", c.grammar, err)
			}
			for _, text := range c.in {
				if !accepts(m, text) {
					_, n := m.Start().NextBytes([]byte(text))
					t.Errorf("%s\nrefuses %q behind %d bytes", c.grammar, text, n)
				}
			}
			for _, text := range c.out {
				if accepts(m, text) {
					t.Errorf("%s\naccepts %q", c.grammar, text)
				}
			}
		})
	}
}

const jsonGBNF = `
# any JSON value
root   ::= ws value ws
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( member ( "," ws member )* )? "}"
member ::= string ws ":" ws value ws
array  ::= "[" ws
           ( value ws
             ( "," ws value ws )*   # more of them
           )? "]"
string ::= "\"" ( [^"\\\x00-\x1F] | "\\" ( ["\\/bfnrt] | "u" hex{4} ) )* "\""
hex    ::= [0-9a-fA-F]
number ::= "-"? ( "0" | [1-9] [0-9]* ) ( "." [0-9]+ )? ( [eE] [-+]? [0-9]+ )?
ws     ::= [ \t\n\r]*
`

func jsonTexts() (in, out texts) {
	return texts{`{}`, `[]`, ` [ 1 , -0.5e+3 , "a\u00e9\"" ] `, `{"a": {"b": [true, false, null]}, "": "ü😀"}`, `"x"`, `0`},
		texts{``, `{`, `[1,]`, `{"a" 1}`, `01`, `"a`, `"\x"`, "\"\n\"", `nul`, `{}{}`, `"\u00g0"`}
}

func TestGBNF(t *testing.T) {
	in, out := jsonTexts()
	check(t, GBNF, []acceptance{
		{"json", jsonGBNF, in, out},
		{"text", `root ::= "a\n\t\r\\\"\[\]\x41\u00e9\U0001F600" 'b\n"'`, texts{"a\n\t\r\\\"[]Aé😀b\\n\""}, texts{"a"}},
		{"class", `root ::= [a-c_\-\]^] [^a-c\n] [é-ü] [-x] [x-]`, texts{"axé--", "]xé-x", "^dêxx", "-😀üxx", "_Xöx-"}, texts{"dxé--", "aaé--", "a\né--", "axa--", "axé+-"}},
		{"any character", `root ::= . . `, texts{"ab", "é\n", "😀😀"}, texts{"a", "abc", "\xff\xfe", "é\xc3"}},
		{"repetitions", `root ::= "a"? "b"* "c"+ [d]{2} ("e" "f"){1,2} "g"{2,} "h"{,1} "i"{0}`, texts{"cddefgg", "abbccddefefggggh"}, texts{"ddefgg", "cdefgg", "cddgg", "cddefefefgg", "cddefg", "cddefgghh", "cddefggi"}},
		{"repetition of a rule", "root ::= x{2,3} y+\nx ::= \"(\" x? \")\"\ny ::= \"[\" y* \"]\"", texts{"()(())[]", "()()()[[][]][]"}, texts{"()[]", "()()()()[]", "()()", "()()[[]"}},
		{"repetition of what may be empty", "root ::= (x?){3} | y**\nx ::= \"(\" x \")\" | \"a\"\ny ::= \"[\" y \"]\" |", texts{"", "a", "a(a)", "aaa", "[[]][]"}, texts{"aaaa", "[", "a[]"}},
		{"lines without brackets", "root ::= a\n  | b\n  c\na ::= \"a\" |\n \"x\"\nb ::=\n \"b\"\nc ::= \"c\"", texts{"a", "x", "bc"}, texts{"b", "c"}},
		{"left recursion", "root ::= root \"+\" n | n\nn ::= [0-9]+", texts{"1", "1+22+3"}, texts{"", "1+", "+1"}},
		{"right recursion", "root ::= \"a\" root | \"\"", texts{"", strings.Repeat("a", 5000)}, texts{"b"}},
		{"hidden left recursion", "root ::= o root \"x\" | \"y\"\no ::= \"o\"?", texts{"y", "yx", "oyx", "ooyxx"}, texts{"oy", "x"}},
		{"mutual recursion", "root ::= a\na ::= \"a\" b | \"a\"\nb ::= \"b\" a | \"b\"", texts{"a", "ab", "aba"}, texts{"b", "aa"}},
		{"unit cycle", "root ::= a\na ::= b | \"x\"\nb ::= a | a a | \"y\"", texts{"x", "y", "xyx"}, texts{"", "z"}},
		{"empty loop", "root ::= a \"x\"\na ::= a | b*\nb ::= b | \"\" | a", texts{"x"}, texts{"", "xx"}},
		{"ambiguous", "root ::= root root | \"a\"", texts{"a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, texts{"", "b"}},
		{"rule that never ends, unused", "root ::= \"a\" | \"b\" loop\nloop ::= \"c\" loop", texts{"a"}, texts{"b", "bc"}},
		{"W3C", "root ::= Letter (Letter - #x62)* #x20? [#x41-#x43#xA] /* a\n comment */ | 'it''s'\nLetter ::= [a-z]", texts{"bacA", "b C", "b\n", "its"}, texts{"bbA", "b D", "A"}},
		{"W3C, taken out of texts", `root ::= [a-z]+ - ("if" | "else")`, texts{"i", "iff", "els"}, texts{"if", "else", ""}},
		{"comments", "# one\nroot ::= \"#\" # two\n  [#x] # three\n# four ::= \"five\"\n#x20 is a comment here\n", texts{"##", "#x"}, texts{"#"}},
		{"names", "root ::= a-b_2 A0\na-b_2 ::= \"1\"\nA0 ::= \"2\"", texts{"12"}, texts{"1"}},
		{"empty alternatives", "root ::= \"a\" ( | \"b\" | ) |", texts{"", "a", "ab"}, texts{"b"}},
		{"large counts", `root ::= ("a"{1000}){1000} | [b-d]{0,1000000} "."`, texts{"bcd.", strings.Repeat("b", 2000) + "."}, texts{"a", "aa", "b"}},
	})
}

func TestLark(t *testing.T) {
	check(t, Lark, []acceptance{
		{"arithmetic", `
?start: sum
?sum: product
    | sum "+" product   -> add
    | sum "-" product   -> sub
?product: atom
    | product "*" atom  -> mul
    | product "/" atom  -> div
?atom: NUMBER           -> number
     | "-" atom         -> neg
     | NAME             // a variable
     | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
`, texts{"1", "1+2", " 1.5 * ( x_1 - 2e3 ) ", "--1", "a/b/c", ".5"}, texts{"", "1+", "1 2 +", "(1", "1\n"}},
		{"json", `
start: value
?value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: ESCAPED_STRING ":" value
%import common (ESCAPED_STRING, SIGNED_NUMBER, WS)
%ignore WS
`, texts{`{}`, ` { "a" : [ 1 , -2.5 , "x\"y" ] , "b":null}`, "[\n\t1]", `""`}, texts{`{`, `[1,]`, `"a"b"`, `{a:1}`}},
		{"no blanks", `start: "a" B /c+/` + "\nB: \"b\"", texts{"abc", "abcc"}, texts{"a bc", "ab"}},
		{"text", `start: "if"i "\n\t\\\"\x41\u00e9" "K"i`, texts{"if\n\t\\\"Aék", "IF\n\t\\\"AéK", "iF\n\t\\\"Aé\u212a"}, texts{"xf", "if\n\t\\\"aék"}},
		{"range", `start: "a".."c" "é".."ü"+`, texts{"aé", "cüê"}, texts{"dé", "a", "az"}},
		{"repetitions", `start: "a"? "b"* "c"+ "d"~2 ("e" "f") ~ 1..2 ["g"] x~2` + "\nx: \"(\" x* \")\"", texts{"cddef()()", "abccddefefg(())()"}, texts{"cddef()", "cdef()()", "cddefefef()()", "cddefgg()()"}},
		{"optional rules in a row", "start: a?\n?b: \"b\"\na: b? \"a\" b\n!?c: \"c\"", texts{"", "ab", "bab"}, texts{"a", "c"}},
		{"priorities", "start.2: a | B\na.-1: \"a\"\nB.10: \"b\"", texts{"a", "b"}, texts{"c"}},
		{"regular expressions", `start: /[a-z]+(?:\/x)?/i /./ /./s` + " A\nA: /\\d{2}/u", texts{"aZb.\n12", "a/X..99"}, texts{"a\n.12", "1..12"}},
		{"terminals", "start: WORD+\nWORD: (LETTER | \"_\")~2..3\nLETTER: \"a\"..\"z\" | DIGITS\nDIGITS: /[0-9]/", texts{"a_", "a_9bc"}, texts{"a", "A_"}},
		{"ignored between all terminals", "start: a+\na: \"(\" a* \")\" | X\nX: \"x\" \"y\"\n%ignore /[ ]+/\n%ignore COMMENT\nCOMMENT: \"#\" /[^\\n]*/ \"\\n\"", texts{"( xy xy)xy", " #c\n xy", "xy #\n", "()"}, texts{"x y", "(xy", "#", ""}},
		{"empty alternatives", "start: \"a\" b |\nb: | \"b\" b", texts{"", "a", "abb"}, texts{"b"}},
		{"left recursion", "start: start \"a\" | ", texts{"", "aaa"}, texts{"b"}},
		{"comments", "// one\nstart: \"//\" // two\n | \"#\" # three\n", texts{"//", "#"}, texts{"/"}},
		{"common", "start: (HEXDIGIT | SIGNED_FLOAT | C_COMMENT | NEWLINE | SQL_COMMENT) \";\" WORD\n%import common (HEXDIGIT, SIGNED_FLOAT, C_COMMENT, NEWLINE, SQL_COMMENT, WORD)",
			texts{"f;a", "-1.;b", "+.5e-3;c", "/* * a */;d", "\r\n\n;e", "--x;f"}, texts{"1.5e;a", "/* */ */;a", "\n"}},
	})
}

func TestErrors(t *testing.T) {
	cases := []struct {
		read    language
		grammar string
		want    string
	}{
		{GBNF, ``, `line 1, column 1: no rule is named "root"`},
		{GBNF, "root ::= a", `line 1, column 10: "a" is not defined`},
		{GBNF, "root ::= \"a\"\nroot ::= \"b\"", `line 2, column 1: "root" is defined twice, first in line 1`},
		{GBNF, "root ::= (\"a\"\nb ::= \"c\"", `line 1, column 10: the bracket does not end before the rule does`},
		{GBNF, "root ::= \"é\" )", `line 1, column 14: ')' comes where a part of a rule, | or the next rule must`},
		{GBNF, "root ::= \"a", `line 1, column 10: the text does not end on its line`},
		{GBNF, "root ::= 'a\n'", `line 1, column 10: the text does not end on its line`},
		{GBNF, "root ::= [a", `line 1, column 10: the characters do not end on their line`},
		{GBNF, "root ::= []", `line 1, column 10: no character is between the brackets`},
		{GBNF, "root ::= [z-a]", `line 1, column 10: the range of characters from 'z' to 'a' is empty`},
		{GBNF, `root ::= "\q"`, `line 1, column 12: 'q' comes where one of n, r, t`},
		{GBNF, `root ::= "\u12"`, `line 1, column 15: '"' comes where a hexadecimal digit must`},
		{GBNF, `root ::= "\uD800"`, `line 1, column 11: \uD800 is no character of Unicode`},
		{GBNF, `root ::= #x110000`, `line 1, column 10: #x110000 is no character of Unicode`},
		{GBNF, `root ::= "a"{3,2}`, `line 1, column 13: {3,2}: the least number is more than the most`},
		{GBNF, `root ::= "a"{9999999}`, `line 1, column 14: a repetition may be of at most 1000000 times, not 9999999`},
		{GBNF, `root ::= "a"{2`, `line 1, column 15: the grammar ends where } must come`},
		{GBNF, `root ::= * "a"`, `line 1, column 10: '*' comes where a part of a rule must`},
		{GBNF, `root := "a"`, `line 1, column 6: ':' comes where ::= must`},
		{GBNF, "root ::= (=\"a\") \"b\"", `line 1, column 10: (= looks ahead, which is not supported`},
		{GBNF, "root ::= TagDispatch((\"a\", b))", `line 1, column 10: TagDispatch(…) is not supported`},
		{GBNF, "root ::= <think> \"b\"", `line 1, column 10: tokens as <name> or <[id]> are not supported`},
		{GBNF, "root ::= r - \"a\"\nr ::= \"b\" r | \"c\"", `line 1, column 10: what is taken out, and what it is taken out of, must not be recursive`},
		{GBNF, "root ::= /* a", `line 1, column 10: the comment does not end`},
		{GBNF, "root ::= \"\xff\"", `line 1, column 11: the text is no valid UTF-8`},
		{GBNF, "root ::= " + strings.Repeat("(", 300) + "a", `line 1, column 210: brackets nest more than 200 deep`},
		{Lark, ``, `line 1, column 1: no rule is named "start"`},
		{Lark, "start: a", `line 1, column 8: "a" is not defined`},
		{Lark, "start: A\nA: b\nb: \"b\"", `line 2, column 4: terminal "A" refers to the rule "b"`},
		{Lark, "start: A\nA: \"a\" A | \"b\"", `line 2, column 1: terminal "A" refers to itself`},
		{Lark, "start: x{A}", `line 1, column 8: x{…} uses a template`},
		{Lark, "start: \"a\"\nx{y}: \"a\" y", `line 2, column 1: x{…} is a template`},
		{Lark, "start[lazy]: \"a\"", `line 1, column 1: start[…] has attributes`},
		{Lark, "start: <|tool|>", `line 1, column 8: '<' begins what lark itself does not have`},
		{Lark, "start: A\n%import python.NAME", `line 2, column 9: %import of "python.NAME"`},
		{Lark, "start: A\n%import common.NOPE", `line 2, column 9: lark's library common has no terminal "NOPE"`},
		{Lark, "start: A\n%declare A", `line 2, column 1: %declare`},
		{Lark, "start: A\n%json {}", `line 2, column 1: %json is not supported`},
		{Lark, "start: \"a\"\n%ignore B", `line 2, column 9: "B" is no terminal that is defined`},
		{Lark, "start: \"a\"\n%ignore B\nB: C\nC: B", `line 3, column 1: terminal "B" refers to itself`},
		{Lark, "start: /a/x", `line 1, column 11: the flag x of a regular expression is not supported`},
		{Lark, "start: /a(/", `line 1, column 8: the regular expression: `},
		{Lark, "start: /a", `line 1, column 8: the regular expression does not end on its line`},
		{Lark, "start: \"ab\"..\"c\"", `line 1, column 8: a range is from one character to another`},
		{Lark, "start: (\"a\"\nb: \"c\"", `line 1, column 8: the bracket does not end before the rule does`},
		{Lark, "start: \"a\" ~ 3..2", `line 1, column 13: ~ 3..2: the least number is more than the most`},
		{Lark, "start: \"a\" )", `line 1, column 12: ')' comes where a part of a rule, | or the next rule must`},
	}
	for _, c := range cases {
		_, err := c.read(rules.NewBuilder(), c.grammar)
		var typed *Error
		if !errors.As(err, &typed) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.200s\n got %v\nwant %s", c.grammar, err, c.want)
		}
	}
}

// TestT078HostileGrammars reads grammars that are large, deep or without an end. Each ends as an error or as a grammar, and twice the text
// makes no more than twice the symbols and expressions.
func TestT078HostileGrammars(t *testing.T) {
	chain := func(n int, end string) string {
		var b strings.Builder
		b.WriteString("root ::= r0\n")
		for i := range n {
			fmt.Fprintf(&b, "r%d ::= r%d %s\n", i, i+1, end)
		}
		fmt.Fprintf(&b, "r%d ::= \"x\"\n", n)
		return b.String()
	}
	again := func(before, one, behind string) func(int) string {
		return func(n int) string { return before + strings.Repeat(one, n) + behind }
	}
	cases := []struct {
		name string
		read language
		text func(n int) string
	}{
		{"brackets", GBNF, again("root ::= ", "(", "")},
		{"closed brackets", GBNF, again("root ::= \"a\"", ")", "")},
		{"classes", GBNF, again("root ::= ", "[", "")},
		{"characters", GBNF, again("root ::= [", "a-", "]")},
		{"operators", GBNF, again("root ::= \"a\"", "*", "")},
		{"counts", GBNF, again("root ::= \"a\"", "{2,1000000}", "")},
		{"alternatives", GBNF, again("root ::= \"a\"", "|\"ab\"", "")},
		{"recursive alternatives", GBNF, again("root ::= \"a\"", "|\"ab\" root", "")},
		{"sequence", GBNF, again("root ::= ", "\"a\" ", "")},
		{"recursive sequence", GBNF, again("root ::= ", "root? ", "")},
		{"comments", GBNF, again("root ::= \"a\"", "/**/#\n", "")},
		{"names", GBNF, again("root ::= ", "a", "")},
		{"doubling", GBNF, func(n int) string {
			var b strings.Builder
			for i := range n / 8 {
				fmt.Fprintf(&b, "r%d ::= r%d r%d | r%d \"b\"\n", i, i+1, i+1, i+1)
			}
			fmt.Fprintf(&b, "r%d ::= \"a\"\nroot ::= r0", n/8)
			return b.String()
		}},
		{"chain", GBNF, func(n int) string { return chain(n/8, "") }},
		{"recursive chain", GBNF, func(n int) string { return chain(n/8, "root?") }},
		{"cycle", GBNF, func(n int) string { return strings.ReplaceAll(chain(n/8, ""), "\"x\"", "r0 | \"x\"") }},
		{"endless", GBNF, func(n int) string { return strings.ReplaceAll(chain(n/8, ""), "\"x\"", "r0") }},
		{"lark brackets", Lark, again("start: ", "[", "")},
		{"lark terminals", Lark, func(n int) string {
			var b strings.Builder
			b.WriteString("start: T0\n%ignore T1\n")
			for i := range n / 8 {
				fmt.Fprintf(&b, "T%d: T%d T%d | \"b\"\n", i, i+1, i+1)
			}
			fmt.Fprintf(&b, "T%d: \"a\"\n", n/8)
			return b.String()
		}},
		{"lark texts", Lark, again("start: ", "\"a\" x | ", "\"b\"\nx: start\n%ignore \" \"")},
		{"lark heads", Lark, again("start: \"a\"\n", "x{ ", "")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			size := func(n int) int {
				b := rules.NewBuilder()
				start, err := c.read(b, c.text(n))
				var typed *Error
				if err != nil && !errors.As(err, &typed) {
					t.Fatalf("%v, want an *Error", err)
				}
				if err == nil {
					if _, err := b.Grammar(start); err != nil {
						t.Fatal(err)
					}
				}
				return b.Size() + b.Regexes.Size()
			}
			const n = 20_000
			once, twice := size(n), size(2*n)
			if twice > 2*once+1000 {
				t.Errorf("%d symbols and expressions, and %d for twice the text", once, twice)
			}
		})
	}
}

func FuzzGrammar(f *testing.F) {
	f.Add(jsonGBNF)
	for _, seed := range []string{"root ::= a - \"b\"\na ::= [a-z]{1,3}", "root ::= root root | #x20", "start: A~1..2 [b]\nb: \"x\"i | /y+/s\nA: \"a\"..\"c\"\n%ignore \" \"", "start: a\n%import common (WS, INT)\n?a.2: INT -> b | a\n%ignore WS"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []language{GBNF, Lark} {
			b := rules.NewBuilder()
			start, err := read(b, text)
			var typed *Error
			switch {
			case err == nil:
				if _, err := b.Grammar(start); err != nil {
					t.Fatal(err)
				}
			case !errors.As(err, &typed) || typed.Line < 1 || typed.Column < 1 || typed.Reason == "":
				t.Fatalf("%v, want an *Error with a place and a reason", err)
			}
		}
	})
}
