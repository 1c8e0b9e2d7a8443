package chat

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// complete refuses a prompt that leaves out the text of a message. A text is looked for as it is; a template may also change it
// (trim, escape, drop thoughts), so where one is not found the conversation is rendered again with a mark in place of each
// text, and the marks must all be there.
func (t *Template) complete(ctx context.Context, p Prompt, r *Request, turns []turn, now time.Time) error {
	if p.hasInOrder(turns) {
		return nil
	}
	marked := make([]turn, len(turns))
	var owners []int // of marks: indices of turns
	for i := range turns {
		marked[i] = turns[i]
		c := &marked[i].Content
		c.Parts = slices.Clone(c.Parts)
		c.texts(func(text *string) {
			if strings.TrimSpace(*text) != "" {
				*text = markBegin + strconv.Itoa(len(owners)) + markEnd
				owners = append(owners, i)
			}
		})
	}
	again, err := t.render(ctx, r, marked, now)
	if err != nil {
		again = Prompt{} // the template reads the texts; what it shows of them cannot be told
	}
	shown := again.marks(len(owners))
	for mark, i := range owners {
		if !shown[mark] {
			return &Refusal{turns[i].from, fmt.Sprintf("does not reach the model: its chat template shows no text of a message of role %.40q in this place (leave it out, or use another role)", r.Messages[turns[i].from].Role)}
		}
	}
	return nil
}

// Marks are words that templates pass through.
const markBegin, markEnd = "qz", "zq"

// marks says which of count marks the prompt shows, in whatever case.
func (p Prompt) marks(count int) []bool {
	shown := make([]bool, count)
	text := strings.ToLower(p.Text)
	for {
		_, after, ok := strings.Cut(text, markBegin)
		if !ok {
			return shown
		}
		digits := after[:len(after)-len(strings.TrimLeft(after, "0123456789"))]
		if n, err := strconv.Atoi(digits); err == nil && n < count && strings.HasPrefix(after[len(digits):], markEnd) {
			shown[n] = true
		}
		text = after[len(digits):]
	}
}

// hasInOrder says whether all texts, without the blanks around them, are among the data, each behind the one before it.
func (p Prompt) hasInOrder(turns []turn) bool {
	at, found := 0, true
	for i := range turns {
		turns[i].Content.texts(func(text *string) {
			want := strings.TrimSpace(*text)
			if want == "" || !found {
				return
			}
			i := strings.Index(p.Text[at:], want)
			if found = i >= 0 && p.isData(at+i, at+i+len(want)); found {
				at += i + len(want)
			}
		})
	}
	return found
}

// isData says whether the bytes from start to end lie in one range of data.
func (p Prompt) isData(start, end int) bool {
	i := sort.Search(len(p.Data), func(i int) bool { return p.Data[i].End >= end })
	return i < len(p.Data) && p.Data[i].Start <= start
}
