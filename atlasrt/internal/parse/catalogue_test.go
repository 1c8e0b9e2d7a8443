package parse

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// written is a call of each format with the arguments that a test gives it.
type written struct {
	tools string
	call  func(name, text string) string // with one argument, x
	empty func(name string) string
	joint string // what a model puts between calls
}

func writings() []written {
	object := func(word string) func(string, string) string {
		return func(name, text string) string {
			return fmt.Sprintf(`{"name": "%s", "%s": {"x": %s}}`, name, word, quoted(text))
		}
	}
	tagged := func(before, behind string, call func(string, string) string) func(string, string) string {
		return func(name, text string) string { return before + call(name, text) + behind }
	}
	qwen := func(name, text string) string {
		return "<tool_call>\n<function=" + name + ">\n<parameter=x>\n" + text + "\n</parameter>\n</function>\n</tool_call>"
	}
	bare := func(name string) string { return `{"name": "` + name + `", "parameters": {}}` }
	return []written{
		{"hermes", tagged("<tool_call>\n", "\n</tool_call>", object("arguments")), func(name string) string { return "<tool_call>\n" + bare(name) + "\n</tool_call>" }, "\n"},
		{"qwen3_coder", qwen, func(name string) string { return "<tool_call>\n<function=" + name + ">\n</function>\n</tool_call>" }, "\n"},
		{"nemotron", qwen, func(name string) string { return "<tool_call>\n<function=" + name + ">\n</function>\n</tool_call>" }, "\n"},
		{"minimax", func(name, text string) string {
			return "<minimax:tool_call>\n<invoke name=\"" + name + "\">\n<parameter name=\"x\">" + text + "</parameter>\n</invoke>\n</minimax:tool_call>"
		}, func(name string) string {
			return "<minimax:tool_call>\n<invoke name=\"" + name + "\">\n</invoke>\n</minimax:tool_call>"
		}, "\n"},
		{"mistral", func(name, text string) string { return "[TOOL_CALLS]" + name + `[ARGS]{"x": ` + quoted(text) + "}" }, func(name string) string { return "[TOOL_CALLS]" + name + "[ARGS]{}" }, ""},
		{"gemma4", func(name, text string) string {
			return "<|tool_call>call:" + name + `{x:<|"|>` + text + `<|"|>}<tool_call|>`
		}, func(name string) string { return "<|tool_call>call:" + name + "{}<tool_call|>" }, ""},
		{"llama3_json", object("parameters"), bare, "; "},
		{"json", object("arguments"), bare, "\n"},
	}
}

// each runs a test with the calls of every format.
func each(t *testing.T, test func(t *testing.T, w written, config Config)) {
	names := map[string]bool{}
	for _, w := range writings() {
		names[w.tools] = true
		t.Run(w.tools, func(t *testing.T) { test(t, w, Config{Tools: FindTools(w.tools), Declared: declared(t)}) })
	}
	for _, name := range ToolFormats() {
		if !names[name] {
			t.Errorf("no calls are written in %s", name)
		}
	}
}

func expect(t *testing.T, config Config, answer string, want ...chat.Event) {
	t.Helper()
	pieces := atoms(&config, answer)
	every(len(pieces), func(cuts []int) {
		if got, _ := read(config, pieces, cuts...); !t.Failed() && !reflect.DeepEqual(got, want) {
			t.Errorf("%q cut at %v:\n got %+v\nwant %+v", answer, cuts, got, want)
		}
	})
}

func TestT053OneCallSplitAtEachByte(t *testing.T) {
	each(t, func(t *testing.T, w written, config Config) {
		const value = "Zürich \"CH\" {[<b>]} \\ 😀\nnext"
		answer := atoms(&config, w.call("f", value))
		for at := range len(answer) + 1 {
			events, _ := read(config, answer, at)
			if len(events) != 1 || events[0].Call.Name != "f" {
				t.Fatalf("cut at %d: %+v, want a call", at, events)
			}
			var got map[string]string
			if err := json.Unmarshal([]byte(events[0].Call.Arguments), &got); err != nil || got["x"] != value || len(got) != 1 {
				t.Fatalf("cut at %d: arguments %q (%v), want x = %q", at, events[0].Call.Arguments, err, value)
			}
		}
	})
}

func TestT054ParallelCalls(t *testing.T) {
	each(t, func(t *testing.T, w written, config Config) {
		var calls []string
		var want []chat.Event
		if !config.Tools.bare {
			calls, want = append(calls, "before "), append(want, text("before"))
		}
		for i := range 5 {
			calls = append(calls, w.call("f", fmt.Sprint(i)))
			want = append(want, call(i, "f", fmt.Sprintf(`{"x": "%d"}`, i)))
			if i == 2 && !config.Tools.bare {
				calls, want = append(calls, " between "), append(want, text("between"))
			}
		}
		expect(t, config, strings.Join(calls, w.joint)+"\nbehind", append(want, text("behind"))...)
	})
}

func TestT057EmptyArgumentsQuotesAndClosersInStrings(t *testing.T) {
	each(t, func(t *testing.T, w written, config Config) {
		expect(t, config, w.empty("f"), call(0, "f", "{}"))
		const value = `a "quoted \"one\"" </tool_call> <tool_call|> </function> b] }} </minimax:tool_call> c`
		expect(t, config, w.call("g", value), call(0, "g", `{"x": `+quoted(value)+`}`))
	})
}

func TestT058UnknownTool(t *testing.T) {
	each(t, func(t *testing.T, w written, config Config) {
		answer := w.call("missing", "a") + "\n then"
		expect(t, config, answer, text(answer))
		config.Declared = nil
		answer = " " + w.call("f", "a") + w.joint + w.empty("g") + " "
		expect(t, config, answer, text(answer))
	})
}

// mostSteps is how often a byte is looked at, at most and in the mean.
const mostSteps = 24

// TestT089AdversarialMarkup repeats what is hard to read, in each format, behind what makes it so. Twice the text takes twice the steps
// and twice the memory, however it is cut.
func TestT089AdversarialMarkup(t *testing.T) {
	repeated := []string{
		"<tool_call>", "<tool_call", "<tool_call>\n<function=f>", "<function=f>", "<function=h>", "<function=", "<parameter=x>", "<parameter=x>\n", "<parameter=x>1</parameter>", "</parameter> ", "</parameter> x", "\n</function>", "\n</function> \n",
		"</tool_call>", "<minimax:tool_call>", "<minimax:tool_call", `<invoke name="f">`, `<invoke name="`, `<parameter name="x">`, "[TOOL_CALLS]", "[TOOL_CALLS]f[ARGS]", "[TOOL_CALLS]f[ARGS]{", "[TOOL_CALLS][{", "[CALL_ID]", "[ARGS",
		"<|tool_call>", "<|tool_call>call:f{", "<|tool_call>call:h{", "x:{", "x:[", "[", "{", "}", "]", `<|"|>`, `<|"`, ",", "x:1,", `"`, `\`, `\"`, `{"name":"f"}`, `{"name":"f"};`, `{"name":"h"}`, `"id":1,`, `{"name":"f","arguments":`, `"x":{`, "<|python_tag|>", " ", "\n", "x", "x ",
		"<think>", "</think>", "[THINK]", "<|channel>thought", "<", "ü",
	}
	begun := map[string][]string{
		"hermes":      {"", "<tool_call>", `<tool_call>{"name":"f",`, `<tool_call>{"arguments":{"a":`, `<tool_call>{"name":"f","arguments":{"a":"`, `<tool_call>{"name":"f"}`, `<tool_call>{"name":"h","a":`},
		"qwen3_coder": {"", "<function=f>\n", "<function=f>\n<parameter=x>\n", "<function=f>\n<parameter=x>", "<function=typed>\n<parameter=list>\n", "<function=typed>\n<parameter=name>\n", "<function=h>\n<parameter=x>\n"},
		"minimax":     {"", `<invoke name="f">`, `<invoke name="f"><parameter name="x">`, `<invoke name="typed"><parameter name="object">`, `<invoke name="h"><parameter name="x">`},
		"mistral":     {"", "[TOOL_CALLS]", "[TOOL_CALLS]f[ARGS]", `[TOOL_CALLS]f[ARGS]{"a":`, `[TOOL_CALLS]f[ARGS]"`, "[TOOL_CALLS][", `[TOOL_CALLS][{"name":"f"}`},
		"gemma4":      {"", "<|tool_call>call:f{", "<|tool_call>call:f{x:", `<|tool_call>call:f{x:<|"|>`, "<|tool_call>call:f{x:[", "<|tool_call>call:h{x:"},
		"llama3_json": {"", "{", "[", "<|python_tag|>", `{"name":"f","parameters":`, `{"parameters":{"a":"`, `{"name":"f"}`},
		"json":        {"", "[", `{"name":"f","parameters":`, `{"parameters":{"a":"`},
	}
	begun["nemotron"] = begun["qwen3_coder"]
	const size = 2 << 10
	for _, name := range ToolFormats() {
		t.Run(name, func(t *testing.T) {
			if len(begun[name]) == 0 {
				t.Fatal("no beginnings of calls are written")
			}
			for _, reasoning := range ReasoningFormats() {
				config := Config{Tools: FindTools(name), Reasoning: FindReasoning(reasoning), Declared: declared(t)}
				mixed := ""
				for _, before := range begun[name] {
					for _, again := range repeated {
						mixed += before + again + again
						if reasoning == "think" {
							linear(t, config, before, again, size, 1)
							linear(t, config, before, again, size, 2*size)
						}
					}
				}
				linear(t, config, "", mixed, 520<<10, 1<<20)
				linear(t, config, "", mixed, 520<<10, 100)
			}
		})
	}
}

// linear reads a text of a size, and one of twice the size, in pieces.
func linear(t *testing.T, config Config, before, again string, size, piece int) {
	t.Helper()
	measure := func(size int) (steps, bytes int) {
		answer := before + strings.Repeat(again, size/len(again))
		var from, to runtime.MemStats
		runtime.ReadMemStats(&from)
		p := New(config)
		defer p.Close()
		for at := 0; at < len(answer); at += piece {
			p.Push(answer[at:min(at+piece, len(answer))])
		}
		p.End(false)
		runtime.ReadMemStats(&to)
		return p.Steps(), int(to.TotalAlloc - from.TotalAlloc)
	}
	steps, bytes := measure(size)
	twice, twiceBytes := measure(2 * size)
	if slack := 1000; twice > 2*steps+steps/5+slack || steps > mostSteps*(size+len(before)) {
		t.Errorf("%.100q and %.100q again to %d bytes in pieces of %d: %d steps, and %d for twice the text", before, again, size, piece, steps, twice)
	}
	if slack := 64 << 10; twiceBytes > 2*bytes+bytes/2+slack {
		t.Errorf("%.100q and %.100q again to %d bytes in pieces of %d: %d bytes allocated, and %d for twice the text", before, again, size, piece, bytes, twiceBytes)
	}
}
