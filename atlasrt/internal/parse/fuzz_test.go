package parse

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// ink is a character that no format uses: what a model writes with it is never markup.
const ink = "Ж"

// FuzzParser reads any answer in any format, cut anyhow.
func FuzzParser(f *testing.F) {
	for _, c := range corpora() {
		format := slices.Index(ToolFormats(), c.tools)
		for i, r := range c.records {
			f.Add(r.answer, byte(format), byte(i), []byte{byte(i), 3, 1})
			f.Add(strings.ReplaceAll(r.answer, "a", ink), byte(format), byte(i), []byte{1})
		}
	}
	f.Fuzz(examine)
}

// FuzzFragments reads answers that are put together of what means something to a format.
func FuzzFragments(f *testing.F) {
	for format := range ToolFormats() {
		for mode := range 16 {
			f.Add([]byte{0, 2, 5, 9, 12, 20, 33, 7, 1, 4, 3}, byte(format), byte(mode), []byte{byte(mode), 1})
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, format, mode byte, sizes []byte) {
		words := fragments(ToolFormats()[int(format)%len(ToolFormats())])
		var b strings.Builder
		for _, c := range data[:min(len(data), 200)] {
			b.WriteString(words[int(c)%len(words)])
		}
		examine(t, b.String(), format, mode, sizes)
	})
}

// fragments are what answers in a format are made of.
func fragments(name string) []string {
	words := []string{ink, " ", "\n", "f", "h", "typed", "<think>", "</think>", "[THINK]", "[/THINK]", "<|channel>thought\n", "<channel|>", "⟦", "⟧", "{", "}", "[", "]", ",", ":", `"`, `\`, "1", "null"}
	switch name {
	case "qwen3_coder", "nemotron":
		words = append(words, "<tool_call>", "</tool_call>", "<function=", "<function=f>", "<function=typed>", "<function=h>", "</function>", "<parameter=list>", "<parameter=x>", "<parameter=name>\n", "</parameter>", "\n</parameter>\n", ">")
	case "minimax":
		words = append(words, "<minimax:tool_call>", "</minimax:tool_call>", `<invoke name="`, `<invoke name="f">`, `<invoke name="typed">`, "</invoke>", `<parameter name="list">`, `<parameter name="x">`, `<parameter name="name">`, "</parameter>", `">`)
	case "gemma4":
		words = append(words, "<|tool_call>", "<tool_call|>", "call:", "call:f{", "<|tool_call>call:g{", "<|tool_call>call:h{", `<|"|>`, "x:", "y:[", "{a:", "12")
	default:
		words = append(words, "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "<|python_tag|>", `{"name":`, `"f"`, `"h"`, `{"name":"f"`, `{"name":"h"`, `"arguments":`, `"parameters":{"a":`, `"function":`, `"id":`, ";")
	}
	return words
}

// examine reads an answer in a format, and holds what is found against what was written.
func examine(t *testing.T, answer string, format, mode byte, sizes []byte) {
	answer = strings.ToValidUTF8(answer, "?")
	name := ToolFormats()[int(format)%len(ToolFormats())]
	config := Config{Tools: FindTools(name), Declared: declared(t), Thinking: mode&1 != 0, OneCall: mode&2 != 0}
	if mode&4 != 0 {
		config.Reasoning = FindReasoning(ReasoningFormats()[int(mode>>4)%len(ReasoningFormats())])
	}
	if mode&8 != 0 {
		config.Control = controlsOf(&config)
	}
	pieces := atoms(&config, answer)
	cuts := cutsOf(sizes, len(pieces))
	events, steps := read(config, pieces, cuts...)
	if whole, _ := read(config, pieces); !reflect.DeepEqual(events, whole) {
		t.Errorf("%s, mode %d, %q cut at %v:\n got %+v\nwant %+v", name, mode, answer, cuts, events, whole)
	}
	if steps > mostSteps*(len(answer)+2*len(pieces)+1) {
		t.Errorf("%s, mode %d, %q: %d steps for %d bytes", name, mode, answer, steps, len(answer))
	}
	calls := reliable(t, &config, events)
	written, shown := strings.Count(answer, ink), strings.Count(said(events), ink)
	// Members of JSON objects that calls do not have are left out, and so is what follows the only call.
	lossy := calls > 0 && (config.OneCall || slices.Contains([]string{"hermes", "mistral", "llama3_json", "json"}, name))
	if shown > written || shown < written && !lossy {
		t.Errorf("%s, mode %d, %q: %d of %d characters that are no markup come back in %+v", name, mode, answer, shown, written, events)
	}
	none := config
	none.Declared, none.Reasoning = nil, nil
	if none.Control != nil {
		none.Control = controlsOf(&none)
	}
	pieces = atoms(&none, answer)
	want := ""
	for _, p := range pieces {
		want += p.text
	}
	if events, _ := read(none, pieces, cutsOf(sizes, len(pieces))...); said(events) != want {
		t.Errorf("%s, mode %d: no tool may be called, but %q\nis  %q", name, mode, want, said(events))
	}
}

// cutsOf cuts a length into pieces of sizes that repeat.
func cutsOf(sizes []byte, length int) (cuts []int) {
	for at, i := 0, 0; len(sizes) > 0; i++ {
		if at += int(sizes[i%len(sizes)]) + 1; at >= length {
			break
		}
		cuts = append(cuts, at)
	}
	return cuts
}

// reliable holds joined events against what callers rely on, and counts calls.
func reliable(t *testing.T, config *Config, events []chat.Event) (calls int) {
	for _, e := range events {
		ok := utf8.ValidString(said([]chat.Event{e}))
		switch e.Kind {
		case chat.EventToolCall:
			known := slices.ContainsFunc(config.Declared, func(t chat.Tool) bool { return t.Name == e.Call.Name })
			ok = ok && e.Call.Index == calls && known && e.Text == ""
			calls++
		case chat.EventText:
			ok = ok && e.Text != ""
		case chat.EventReasoning:
			ok = ok && e.Text != "" && config.Reasoning != nil
		default:
			ok = false
		}
		if !ok || config.OneCall && calls > 1 {
			t.Errorf("event %+v of %+v", e, events)
		}
	}
	return calls
}

// said is all that events show.
func said(events []chat.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Text + e.Call.Name + e.Call.Arguments)
	}
	return b.String()
}
