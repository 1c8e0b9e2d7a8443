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

// FuzzParser reads any answer in any format, cut anyhow, and holds what is found against what was written.
func FuzzParser(f *testing.F) {
	for _, c := range corpora() {
		format := slices.Index(ToolFormats(), c.tools)
		for i, r := range c.records {
			f.Add(r.answer, byte(format), byte(i), []byte{byte(i), 3, 1})
			f.Add(strings.ReplaceAll(r.answer, "a", ink), byte(format), byte(i), []byte{1})
		}
	}
	tools := declared(f)
	f.Fuzz(func(t *testing.T, answer string, format, mode byte, sizes []byte) {
		answer = strings.ToValidUTF8(answer, "?")
		name := ToolFormats()[int(format)%len(ToolFormats())]
		config := Config{Tools: FindTools(name), Declared: tools, Thinking: mode&1 != 0, OneCall: mode&2 != 0}
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
		calls := grammar(t, &config, events)
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
	})
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

// grammar holds joined events against what callers rely on, and counts calls.
func grammar(t *testing.T, config *Config, events []chat.Event) (calls int) {
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
