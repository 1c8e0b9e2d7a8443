package chat

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// endMark stands behind the text that an answer goes on with. Where the blank at its end is gone, the template trims texts.
const endMark = "qzthe-answer-goes-on-herezq "

// unfinished renders a conversation whose last message the answer goes on with: the prompt ends right behind its text. Blanks
// at its end go where the template would not show them either.
func (t *Template) unfinished(ctx context.Context, r *Request, turns []turn, now time.Time) (Prompt, error) {
	last := len(r.Messages) - 1
	if last < 0 || r.Messages[last].Role != "assistant" || len(r.Messages[last].ToolCalls) > 0 {
		return Prompt{}, &Refusal{max(last, 0), "must be an assistant message without tool calls, for the answer to go on with it (continue_final_message)"}
	}
	end := &turns[len(turns)-1].Content
	switch n := len(end.Parts); {
	case n == 0:
		*end = Content{Text: end.Text + endMark}
	case end.Parts[n-1].Type == "text":
		end.Parts = append([]Part(nil), end.Parts...)
		end.Parts[n-1].Text += endMark
	default:
		return Prompt{}, &Refusal{last, "must end in text, for the answer to go on with it"}
	}
	p, err := t.render(ctx, r, turns, now)
	if err != nil {
		return Prompt{}, err
	}
	if err := t.complete(ctx, p, r, turns, now); err != nil {
		return Prompt{}, err
	}
	mark := strings.TrimSpace(endMark)
	at := strings.LastIndex(p.Text, mark)
	if at < 0 || !p.isData(at, at+len(mark)) {
		return Prompt{}, &Refusal{last, "cannot be gone on with: the model's chat template does not show its end"}
	}
	if !strings.HasPrefix(p.Text[at:], endMark) {
		at = p.trimData(at)
	}
	return p.cut(at), nil
}

// trimData goes back over blanks that are data.
func (p Prompt) trimData(at int) int {
	for at > 0 {
		c, size := utf8.DecodeLastRuneInString(p.Text[:at])
		if !unicode.IsSpace(c) || !p.isData(at-size, at) {
			break
		}
		at -= size
	}
	return at
}

// cut is the prompt up to a byte.
func (p Prompt) cut(at int) Prompt {
	out := Prompt{Text: p.Text[:at]}
	for _, r := range p.Data {
		if r.End = min(r.End, at); r.Start < r.End {
			out.Data = append(out.Data, r)
		}
	}
	return out
}
