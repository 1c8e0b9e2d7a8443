package dummy

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// Control tokens of made-up models: their ids come after those of the 256 bytes.
var controls = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// template renders a conversation as ChatML.
const template = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// text makes a tokenizer for a vocabulary of any size from 259 on, a chat template and an end token. In a text every byte is a token.
// Tokens beyond the bytes and the controls occur in no text; where a model samples one, it is printed as its number.
func text(vocabulary int) (weights.Assets, error) {
	if least := 256 + len(controls); vocabulary < least {
		return weights.Assets{}, fmt.Errorf("a made-up model reads and writes bytes: vocab_size is %d, and text needs %d (raise it; bench and logits need no text)", vocabulary, least)
	}
	if vocabulary > mostVocabulary {
		return weights.Assets{}, fmt.Errorf("vocab_size is %d, and a made-up tokenizer has at most %d tokens", vocabulary, mostVocabulary)
	}
	type added struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	}
	ids := make(map[string]int, vocabulary)
	for i, c := range alphabet() {
		ids[string(c)] = i
	}
	var special []added
	for i, name := range controls {
		ids[name] = 256 + i
		special = append(special, added{256 + i, name, true})
	}
	space := string(alphabet()[' '])
	for id := 256 + len(controls); id < vocabulary; id++ {
		ids[space+strconv.Itoa(id)] = id
	}
	bytes := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	tokenizer, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": special, "pre_tokenizer": bytes, "decoder": bytes,
		"model": map[string]any{"type": "BPE", "vocab": ids, "merges": []string{}},
	})
	if err != nil {
		return weights.Assets{}, err
	}
	config, err := json.Marshal(map[string]any{"eos_token": controls[2], "pad_token": controls[0]})
	return weights.Assets{Tokenizer: tokenizer, TokenizerConfig: config, ChatTemplate: []byte(template)}, err
}

// mostVocabulary is several times that of the largest published model.
const mostVocabulary = 1 << 21

// alphabet gives the character that stands for each byte in a byte-level vocabulary, as GPT-2 chose them: printable ones stand for
// themselves, the others are those from U+0100 on in their order.
func alphabet() (characters [256]rune) {
	next := rune(0x100)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			characters[b] = b
			continue
		}
		characters[b] = next
		next++
	}
	return characters
}
