package chat

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// turn is a message as the template gets it.
type turn struct {
	Message
	from int    // the client's message that it was made of, the first where several were
	more []turn // what joins it, see joined
}

// with is the turn and others that join it.
func (t turn) with(others ...turn) turn {
	for _, other := range others {
		t.more = append(append(t.more, other), other.more...)
	}
	return t
}

// adapt puts a conversation into the form that the template takes. What the template takes as it is stays as it is.
func (c *Capabilities) adapt(r *Request) ([]turn, error) {
	if n := len(r.Messages); n > 1 && r.Messages[n-1].Role == "assistant" && r.Messages[n-2].Role == "assistant" {
		return nil, &Refusal{n - 1, "is a second assistant message at the end; only one may be last"}
	}
	given := make([]turn, len(r.Messages))
	for i, m := range r.Messages {
		given[i] = turn{Message: m, from: i}
	}
	if c.ToolCalls && !c.ParallelCalls {
		given = oneByOne(given)
	}
	turns := make([]turn, 0, len(given))
	for _, t := range given {
		t.Role = c.role(t.Role)
		if t.Content.Null && len(t.ToolCalls) == 0 { // some templates would print None
			t.Content = Content{}
		}
		c.simplify(&t.Content)
		if c.ShortCallIDs && t.ToolCallID != "" {
			t.ToolCallID = shortCallID(t.ToolCallID)
		}
		if len(t.ToolCalls) == 0 {
			turns = append(turns, t)
			continue
		}
		turns = c.addCalls(turns, t)
	}
	turns = c.mergeRepeated(c.placeSystems(turns))
	for i := range turns {
		turns[i] = turns[i].joined()
	}
	return turns, nil
}

// oneByOne makes a turn of each call, with its result behind it where one comes next.
func oneByOne(turns []turn) []turn {
	var out []turn
	for i := 0; i < len(turns); i++ {
		t := turns[i]
		if len(t.ToolCalls) < 2 {
			out = append(out, t)
			continue
		}
		results := map[string][]turn{}
		var order []string
		for i+1 < len(turns) && isResult(turns[i+1].Role) {
			i++
			id := turns[i].ToolCallID
			if results[id] == nil {
				order = append(order, id)
			}
			results[id] = append(results[id], turns[i])
		}
		for _, call := range t.ToolCalls {
			one := t
			one.ToolCalls = []ToolCall{call}
			out = append(out, one)
			t.Content, t.Reasoning = Content{Null: true}, "" // they go before the first
			out = append(out, results[call.ID]...)
			delete(results, call.ID)
		}
		for _, id := range order { // of calls that are not here
			out = append(out, results[id]...)
		}
	}
	return out
}

func isResult(role string) bool { return role == "tool" || role == "function" || role == "ipython" }

// role is what the template calls a role.
func (c *Capabilities) role(role string) string {
	switch {
	case role == "developer" && !c.Developer:
		return "system"
	case role == "function" && c.Function:
		return role
	case isResult(role):
		if c.ToolRole == "" {
			return "user"
		}
		return c.ToolRole
	}
	return role
}

// simplify makes parts one text, or a text one part, as the template takes it. Media stay parts.
func (c *Capabilities) simplify(content *Content) {
	switch {
	case content.Parts != nil && content.isText() && !c.Parts:
		*content = Content{Text: content.joined()}
	case content.Parts == nil && c.Parts && !content.Null:
		*content = Content{Parts: []Part{{Type: "text", Text: content.Text}}}
	}
}

// addCalls adds an assistant message with calls.
func (c *Capabilities) addCalls(turns []turn, t turn) []turn {
	calls := make([]ToolCall, len(t.ToolCalls))
	for i, call := range t.ToolCalls {
		if call.Arguments == "" {
			call.Arguments = "{}"
		}
		calls[i] = call
		if c.ShortCallIDs {
			calls[i].ID = shortCallID(call.ID)
		}
	}
	if !c.ToolCalls { // the model sees them as text of its own
		lines := callLines(calls)
		if text := t.Content.joined(); strings.TrimSpace(text) != "" {
			lines = text + "\n" + lines
		}
		t.Content, t.ToolCalls = Content{Text: lines}, nil
		c.simplify(&t.Content)
		return append(turns, t)
	}
	t.ToolCalls = calls
	if text := t.Content.joined(); !c.CallText && strings.TrimSpace(text) != "" {
		before := t
		before.ToolCalls = nil
		turns = append(turns, before)
		t.Content, t.Reasoning = Content{Null: true}, ""
	}
	switch blank := strings.TrimSpace(t.Content.joined()) == "" && t.Content.isText(); {
	case t.Content.Null && !c.NullContent:
		t.Content = Content{}
		c.simplify(&t.Content)
	case blank && !c.EmptyContent && c.NullContent:
		t.Content = Content{Null: true}
	}
	return append(turns, t)
}

// callLines writes calls as text, one a line.
func callLines(calls []ToolCall) string {
	lines := make([]string, len(calls))
	for i, call := range calls {
		o := jsontree.NewObject()
		o.Set("name", jsontree.String(call.Name))
		o.Set("arguments", argumentsOf(call.Arguments))
		lines[i] = string(jsontree.Append(nil, o))
	}
	return strings.Join(lines, "\n")
}

// shortCallID is an id of nine letters and digits: the same for the same id, and the id itself where it is one.
func shortCallID(id string) string {
	const size, digits = 9, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if len(id) == size && strings.Trim(id, digits) == "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	short := make([]byte, size)
	for i := range short {
		short[i] = digits[int(sum[i])%len(digits)]
	}
	return string(short)
}

// placeSystems keeps the texts of system messages where the template would refuse or drop them: those at the start become one,
// or the beginning of the first user turn; a later one joins the user turn beside it, or becomes one. None goes between a call
// and its results.
func (c *Capabilities) placeSystems(turns []turn) []turn {
	leading := 0
	for leading < len(turns) && turns[leading].Role == "system" {
		leading++
	}
	var out, held []turn // held wait for the next user turn
	switch {
	case !c.System:
		held = turns[:leading:leading]
	case leading > 1 && !c.Systems:
		out = append(out, turns[0].with(turns[1:leading]...))
	default:
		out = append(out, turns[:leading]...)
	}
	release := func() {
		if len(held) > 0 {
			t := held[0].with(held[1:]...)
			t.Role = "user"
			out, held = append(out, t), nil
		}
	}
	for i := leading; i < len(turns); i++ {
		t := turns[i]
		switch {
		case t.Role == "system" && !c.LateSystem:
			if last := len(out) - 1; last >= 0 && out[last].Role == "user" && (i+1 == len(turns) || turns[i+1].Role != "user") && len(held) == 0 {
				out[last] = out[last].with(t)
			} else {
				held = append(held, t)
			}
			continue
		case t.Role == "user" && len(held) > 0:
			first := held[0].with(held[1:]...).with(t)
			first.Role, first.Name, first.Extra = "user", t.Name, t.Extra
			t, held = first, nil
		case t.Role == "assistant":
			release()
		}
		out = append(out, t)
	}
	release()
	return out
}

// mergeRepeated joins turns of one role in a row where the template refuses or drops them. Of turns with calls and their results
// between them, an assistant's goes behind these, and a user's into the last result.
func (c *Capabilities) mergeRepeated(turns []turn) []turn {
	out := turns[:0]
	for _, t := range turns {
		if c.acrossCalls && len(t.ToolCalls) == 0 {
			before := len(out) - 1
			for before >= 0 && (len(out[before].ToolCalls) > 0 || isResult(out[before].Role)) {
				before--
			}
			switch again := before >= 0 && out[before].Role == t.Role; {
			case again && t.Role == "assistant":
				t = out[before].with(t)
				out = slices.Delete(out, before, before+1)
			case again && t.Role == "user" && isResult(out[len(out)-1].Role) && t.Content.isText():
				out[len(out)-1] = out[len(out)-1].with(t)
				continue
			}
		}
		if len(out) > 0 {
			last := &out[len(out)-1]
			same := last.Role == t.Role && len(last.ToolCalls)+len(t.ToolCalls) == 0
			if same && (t.Role == "user" && !c.RepeatedUsers || t.Role == "assistant" && !c.RepeatedAssistants) {
				*last = last.with(t)
				continue
			}
		}
		out = append(out, t)
	}
	return out
}

// joined is the turn with the texts of all that join it, a blank line between them.
func (t turn) joined() turn {
	if t.more == nil {
		return t
	}
	turns := append([]turn{t}, t.more...)
	t.more = nil
	texts, parts := make([]string, 0, len(turns)), false
	for i := range turns {
		parts = parts || turns[i].Content.Parts != nil
		if text := turns[i].Content.joined(); text != "" {
			texts = append(texts, text)
		}
	}
	if !parts {
		t.Content = Content{Text: strings.Join(texts, "\n\n")}
		return t
	}
	t.Content = Content{Parts: []Part{}}
	for i := range turns {
		list := turns[i].Content.Parts
		if list == nil {
			list = []Part{{Type: "text", Text: turns[i].Content.Text}}
		}
		if i > 0 && len(list) > 0 && list[0].Type == "text" {
			first := list[0]
			first.Text = "\n\n" + first.Text
			list = append([]Part{first}, list[1:]...)
		}
		t.Content.Parts = append(t.Content.Parts, list...)
	}
	return t
}
