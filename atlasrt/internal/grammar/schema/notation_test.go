package schema_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
)

// machine recognises the values of a schema in a notation. Its tokens are bytes.
func machine(t *testing.T, text string, options schema.Options) *match.Machine {
	t.Helper()
	tokens := make([][]byte, 256)
	for i := range tokens {
		tokens[i] = []byte{byte(i)}
	}
	b := rules.NewBuilder()
	start, err := schema.Add(b, []byte(text), options)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	g, err := b.Grammar(start)
	if err != nil {
		t.Fatal(err)
	}
	m, err := match.New(g, match.NewVocabulary(tokens, func(int32) bool { return false }), match.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// pieces are what ends values, and texts that look like other values.
var pieces = []string{"\n</parameter>\n", "</parameter>\n", `<|"|>`, `"`, "null", "None", "TRUE", "false", " 5 ", "[1]", "{", "-0.5e3", "<parameter", "</", "\n", "\u00a0null", "é"}

// draw is a random text of a machine: pieces, and letters that end values soon, are likely. "" where none came to its end.
func draw(m *match.Machine, random *rand.Rand) string {
	state := m.Start()
	var text []byte
	mask := make([]uint32, 8)
	for len(text) < 400 {
		if state.Done() && (random.IntN(3) == 0 || state.Mask(mask) == nil && empty(mask)) {
			return string(text)
		}
		if piece := pieces[random.IntN(len(pieces))]; random.IntN(2) == 0 {
			if next, n := state.NextBytes([]byte(piece)); n == len(piece) {
				state, text = next, append(text, piece...)
				continue
			}
		}
		clear(mask)
		if err := state.Mask(mask); err != nil || empty(mask) {
			return ""
		}
		var allowed, likely []byte
		for b := range 256 {
			if mask[b/32]>>(b%32)&1 == 1 {
				allowed = append(allowed, byte(b))
				if strings.IndexByte(`<>/"]},:01ntfNTFae pmrl=`+"\n", byte(b)) >= 0 {
					likely = append(likely, byte(b))
				}
			}
		}
		if len(likely) > 0 && random.IntN(8) > 0 {
			allowed = likely
		}
		next := allowed[random.IntN(len(allowed))]
		var ok bool
		if state, ok = state.Next(int32(next)); !ok {
			return ""
		}
		text = append(text, next)
	}
	return ""
}

func empty(mask []uint32) bool {
	for _, word := range mask {
		if word != 0 {
			return false
		}
	}
	return true
}

// arguments reads the call that a model wrote around some arguments.
func arguments(format, before, written, behind string, parameters jsontree.Value) (string, bool) {
	p := parse.New(parse.Config{Tools: parse.FindTools(format), Declared: []chat.Tool{{Name: "f", Parameters: parameters}}})
	defer p.Close()
	var read strings.Builder
	calls := 0
	events := append([]chat.Event(nil), p.Push(before+written+behind)...)
	events = append(events, p.End(true)...)
	for _, e := range events {
		if e.Kind == chat.EventToolCall {
			if e.Call.Name != "" {
				calls++
			}
			read.WriteString(e.Call.Arguments)
		} else if e.Text != "" {
			return "", false
		}
	}
	return read.String(), calls == 1
}

var parameterSchemas = []string{
	`{"type":"object","properties":{"text":{"type":"string"},"flag":{"type":"boolean"},"n":{"type":"integer"}},"required":["text","flag"],"additionalProperties":false}`,
	`{"type":"object","properties":{"maybe":{"type":["string","null"]},"either":{"type":["string","integer"]},"mixed":{"type":["string","boolean","null"]}},"required":["maybe","either","mixed"],"additionalProperties":false}`,
	`{"type":"object","properties":{"list":{"type":"array","items":{"type":"string"},"maxItems":2},"object":{"type":"object","properties":{"a":{"type":"string"},"B":{"type":["number","null"]}},"additionalProperties":false},"text or list":{"type":["string","array"],"maxItems":1}},"required":["list"],"additionalProperties":false}`,
	`{"type":"object","properties":{"size":{"enum":["small","large",3,null,true]},"word":{"type":"string","pattern":"^[a-z<>/]{1,5}$"},"empty":{"type":"string","maxLength":1}},"required":["size"],"additionalProperties":false}`,
	`{"$defs":{"tree":{"type":"object","properties":{"left":{"$ref":"#/$defs/tree"},"value":{"type":"number","minimum":0}},"additionalProperties":false}},"type":"object","properties":{"tree":{"$ref":"#/$defs/tree"},"anything":{}},"required":["tree"]}`,
	`{"type":"object","properties":{"either":{"anyOf":[{"type":"integer"},{"type":"object","additionalProperties":{"type":"boolean"},"maxProperties":1},{"type":"string","minLength":2}]}},"required":["either"],"additionalProperties":{"type":"string","maxLength":3}}`,
}

// What a grammar allows is read back as values that the schema allows, whatever text it is.
func TestNotationsAreReadBack(t *testing.T) {
	formats := []struct {
		notation               schema.Notation
		format, before, behind string
	}{
		{schema.QwenXML, "qwen3_coder", "<tool_call>\n<function=f>\n", "</function>\n</tool_call>"},
		{schema.MiniMax, "minimax", "<minimax:tool_call>\n<invoke name=\"f\">\n", "</invoke>\n</minimax:tool_call>"},
		{schema.Gemma, "gemma4", "<|tool_call>call:f", "<tool_call|>"},
		{schema.Spaced, "hermes", `<tool_call>` + "\n" + `{"name": "f", "arguments": `, "}\n</tool_call>"},
	}
	for _, f := range formats {
		random := rand.New(rand.NewPCG(3, 4))
		for _, text := range parameterSchemas {
			parameters, err := jsontree.Decode([]byte(text), jsontree.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			writes := machine(t, text, schema.Options{Notation: f.notation})
			reads := machine(t, text, schema.Options{})
			drawn := 0
			for range 300 {
				written := draw(writes, random)
				if written == "" {
					continue
				}
				drawn++
				read, ok := arguments(f.format, f.before, written, f.behind, parameters)
				if !ok {
					t.Errorf("%s: %q is no call: %q", f.notation, written, read)
					continue
				}
				value, err := jsontree.Decode([]byte(read), jsontree.Limits{})
				if err != nil && strings.Contains(err.Error(), "duplicate key") {
					continue
				}
				if err != nil {
					t.Errorf("%s: %q is read as %q: %v", f.notation, written, read, err)
					continue
				}
				again := string(jsontree.AppendDumps(nil, inOrder(parameters, value), jsontree.Compact))
				if strings.Contains(again, "Infinity") {
					continue // a number is larger than floats are
				}
				if !whole(reads, again) {
					t.Errorf("%s: %s\n\t%q is read as %s", f.notation, text, written, again)
				}
			}
			if drawn < 20 {
				t.Errorf("%s: %s: only %d texts were drawn", f.notation, text, drawn)
			}
		}
	}
}

func whole(m *match.Machine, text string) bool {
	state, n := m.Start().NextBytes([]byte(text))
	return n == len(text) && state.Done()
}

// inOrder is a value with the properties that a schema declares first, in its order: notations that sort them lose it.
func inOrder(s, v jsontree.Value) jsontree.Value {
	declared, _ := s.(*jsontree.Object)
	o, ok := v.(*jsontree.Object)
	if !ok || declared == nil {
		return v
	}
	if reference, ok := declared.Get("$ref"); ok && reference == jsontree.String("#/$defs/tree") {
		return inOrder(treeSchema, v)
	}
	list, _ := declared.Get("properties")
	properties, _ := list.(*jsontree.Object)
	sorted := jsontree.NewObject()
	for name, s := range properties.All() {
		if member, ok := o.Get(name); ok {
			sorted.Set(name, inOrder(s, member))
		}
	}
	for name, member := range o.All() {
		if _, done := sorted.Get(name); !done {
			sorted.Set(name, member)
		}
	}
	return sorted
}

var treeSchema = func() jsontree.Value {
	v, err := jsontree.Decode([]byte(`{"properties":{"left":{"$ref":"#/$defs/tree"},"value":{}}}`), jsontree.Limits{})
	if err != nil {
		panic(err)
	}
	return v
}()

// Calls are what the models' templates write.
func TestNotations(t *testing.T) {
	const text = `{"type":"object","properties":{"to":{"type":"string"},"At":{"type":["integer","null"]},"ok":{"type":"boolean"},"list":{"type":"array"},"o":{"type":"object"}}}`
	cases := []struct {
		notation       schema.Notation
		valid, invalid []string
	}{
		{schema.Compact, []string{`{}`, `{"to":"a","At":1,"ok":true,"list":[1,"x"],"o":{"k":{}}}`, `{"At":null,"more":[]}`}, []string{`{ }`, `{"to": "a"}`, `{"At":1,"to":"a"}`, `{"to":1}`, `{"x":1,"to":"a"}`, `{"to":"a",}`, `{"to":"a"} `}},
		{schema.Spaced, []string{`{}`, `{"to": "a", "At": 1, "ok": true, "list": [1, "x"], "o": {"k": {}}}`}, []string{`{"to":"a"}`, `{"to": "a","At": 1}`, `{"list": [1,2]}`}},
		{schema.Flexible, []string{`{}`, "{ }", "{\n  \"to\" : \"a\" ,\n\t\"list\":[ 1,2 ] }", `{"to":"a","At":1}`}, []string{"{\n\n}", "{" + strings.Repeat(" ", 21) + "}", "{\"to\":\n\n\"a\"}", ` {}`}},
		{schema.QwenXML, []string{"", "<parameter=to>\na <b> & \"c\"\n\n</parameter>\n<parameter=At>\n1\n</parameter>\n<parameter=ok>\nTrue\n</parameter>\n<parameter=list>\n[1, \"x\"]\n</parameter>\n<parameter=o>\n{\"k\": {}}\n</parameter>\n",
			"<parameter=to>\n\n</parameter>\n<parameter=At>\nNone\n</parameter>\n<parameter=more>\ntext\n</parameter>\n"},
			[]string{"<parameter=to>a</parameter>\n", "<parameter=to>\n</parameter>\n</parameter>\n", "<parameter=At>\nx\n</parameter>\n", "<parameter=ok>\ntrue\n</parameter>\n<parameter=to>\na\n</parameter>\n"}},
		{schema.MiniMax, []string{"", "<parameter name=\"to\">a\n</parameter>\n<parameter name=\"At\">1</parameter>\n<parameter name=\"list\">[1, \"x\"]</parameter>\n"}, []string{"<parameter name=\"At\">\n1</parameter>\n", "<parameter=to>a</parameter>\n"}},
		{schema.Gemma, []string{`{}`, `{At:1,list:[1,<|"|>x<|"|>],o:{k:{}},ok:true,to:<|"|>a "b"<|"|>}`, `{At:null}`}, []string{`{to:<|"|>a<|"|>,At:1}`, `{"to":"a"}`, `{ok: true}`, `{to:<|"|>a<|"|><|"|>}`}},
	}
	for _, c := range cases {
		m := machine(t, text, schema.Options{Notation: c.notation})
		for _, written := range c.valid {
			if !whole(m, written) {
				state, n := m.Start().NextBytes([]byte(written))
				t.Errorf("%s: %q stops at byte %d, done %v", c.notation, written, n, state.Done())
			}
		}
		for _, written := range c.invalid {
			if whole(m, written) {
				t.Errorf("%s: %q passes", c.notation, written)
			}
		}
	}
	marked := machine(t, text, schema.Options{Notation: schema.Gemma, Mark: func(text string) string { return "\xff" + text + "\xfe" }})
	if !whole(marked, "{to:\xff<|\"|>\xfea<|\"|>b\xff<|\"|>\xfe}") || whole(marked, `{to:<|"|>a<|"|>}`) {
		t.Error("the quote of Gemma is not spelled as a control token")
	}
}
