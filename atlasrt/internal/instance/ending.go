package instance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// findEnds gathers what ends an answer: the tokens that the files name, the one with which the template ends an
// assistant's turn, and control tokens that are known by their text. Notes say what no file names.
func (t *Text) findEnds(c weights.Checkpoint, assets weights.Assets, generation []int) error {
	config := c.Config()
	named := append(slices.Clone(generation), config.Ints("eos_token_id")...)
	if id, ok := t.Tokenizer.EOS(); ok {
		named = append(named, int(id))
	}
	if v := assets.Vocabulary; v != nil {
		named = slices.Concat(named, []int{v.EOS, v.EOT, v.EOM}, v.EndTokens)
	}
	rows := max(config.IntOr("vocab_size", 0), t.Tokenizer.VocabSize())
	var beyond []int
	seen := map[int]bool{}
	for _, id := range named {
		switch {
		case seen[id]:
		case id >= 0 && id < rows:
			t.End = append(t.End, int32(id))
		case id >= 0 && assets.Vocabulary == nil: // -1 is none, and a GGUF file has a note of its own
			beyond = append(beyond, id)
		}
		seen[id] = true
	}
	if n := len(beyond); n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" (and so are %d more)", n-1)
		}
		t.note(fmt.Sprintf("the end token %d is left out: there are %d tokens%s", beyond[0], rows, more))
	}
	if id, ok := t.turnEnd(); ok && t.addEnd(id) {
		t.note(fmt.Sprintf("answers also end at %s (%d), with which the chat template ends a turn: no file names it as an end", t.Tokenizer.TokenBytes(id), id))
	}
	var known []string
	for _, text := range knownEnds(t.Tokenizer) {
		if id, ok := t.Tokenizer.ID(text); ok && t.Tokenizer.IsSpecial(id) && t.addEnd(id) {
			known = append(known, fmt.Sprintf("%s (%d)", text, id))
		}
	}
	if known != nil {
		t.Details = append(t.Details, "answers also end at control tokens that are known by their text: "+strings.Join(known, ", "))
	}
	if len(t.End) == 0 {
		t.note("no token ends an answer: each goes on to its limit of tokens")
	}
	return config.Err()
}

// addEnd adds an end token that is not there yet.
func (t *Text) addEnd(id int32) bool {
	if slices.Contains(t.End, id) {
		return false
	}
	t.End = append(t.End, id)
	return true
}

// turnEnd is the token that the template writes behind what an assistant said.
func (t *Text) turnEnd() (int32, bool) {
	if t.Template == nil {
		return 0, false
	}
	const said = "atlas-said-this"
	say := func(role, text string) chat.Message {
		return chat.Message{Role: role, Content: chat.Content{Text: text}}
	}
	turns := []chat.Message{say("user", "a"), say("assistant", said), say("user", "b"), say("assistant", "c")}
	for n := len(turns); n > 1; n-- { // some templates refuse conversations that end with one role or the other
		p, err := t.Template.Prompt(context.Background(), &chat.Request{Messages: turns[:n]}, time.Unix(0, 0))
		if err != nil {
			continue
		}
		_, rest, ok := strings.Cut(p.Text, said)
		ids := t.Tokenizer.Encode(strings.TrimSpace(rest), true)
		if ok && len(ids) > 0 && (t.Tokenizer.IsSpecial(ids[0]) || t.Tokenizer.IsAdded(ids[0])) {
			return ids[0], true
		}
		return 0, false
	}
	return 0, false
}

// knownEnds are texts of control tokens that end a turn or a text in the models that have them.
func knownEnds(tok *tokenizer.Tokenizer) []string {
	known := []string{
		"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>", "</s>", "<EOT>", "_<EOT>",
		"[EOT]", "[EOS]", "<end_of_utterance>", "<｜end▁of▁sentence｜>", "<|return|>", "<|call|>", "<eos>", "<turn|>", "[e~[",
	}
	_, returns := tok.ID("<|return|>")
	_, calls := tok.ID("<|call|>")
	if returns && calls { // where answers have several messages, <|end|> ends one of them
		known = slices.DeleteFunc(known, func(text string) bool { return text == "<|end|>" })
	}
	return known
}
