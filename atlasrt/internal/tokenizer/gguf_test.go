package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// smollm2 is the tokenizer of the model file, which has every key that is read here.
func smollm2(t testing.TB) *Tokenizer {
	t.Helper()
	file, err := gguf.Open(testdata.Cache(t, "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	keys := file.Metadata
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var meta GGUF
	meta.Model, err = keys.String("tokenizer.ggml.model")
	must(err)
	meta.Pre, err = keys.String("tokenizer.ggml.pre")
	must(err)
	meta.Tokens, err = keys.Strings("tokenizer.ggml.tokens")
	must(err)
	meta.Merges, err = keys.Strings("tokenizer.ggml.merges")
	must(err)
	types, err := keys.Ints("tokenizer.ggml.token_type")
	must(err)
	for _, kind := range types {
		meta.TokenTypes = append(meta.TokenTypes, int32(kind))
	}
	bos, err := keys.Int("tokenizer.ggml.bos_token_id")
	must(err)
	eos, err := keys.Int("tokenizer.ggml.eos_token_id")
	must(err)
	meta.BOS, meta.EOS = new(uint32(bos)), new(uint32(eos))
	meta.ChatTemplate, err = keys.String("tokenizer.chat_template")
	must(err)
	tokenizer, err := FromGGUF(meta)
	must(err)
	return tokenizer
}

func TestSmolLM2PromptsAgreeWithHuggingFace(t *testing.T) {
	var golden []struct {
		Text       string  `json:"text"`
		PromptIDs  []int32 `json:"prompt_ids"`
		GreedyIDs  []int32 `json:"greedy_ids"`
		GreedyText string  `json:"greedy_text"`
	}
	data, err := os.ReadFile(testdata.Shared(t, "golden/smollm2/golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &golden); err != nil || len(golden) != 6 {
		t.Fatalf("%d conversations, %v; want 6", len(golden), err)
	}
	tokenizer := smollm2(t)
	for _, want := range golden {
		if got := tokenizer.Encode(want.Text, true); !slices.Equal(got, want.PromptIDs) {
			t.Errorf("Encode(%q)\n got %v\nwant %v", want.Text, got, want.PromptIDs)
		}
		if got := tokenizer.Decode(want.PromptIDs, false); got != want.Text {
			t.Errorf("Decode(%v)\n got %q\nwant %q", want.PromptIDs, got, want.Text)
		}
		if got := tokenizer.Decode(want.GreedyIDs, false); got != want.GreedyText {
			t.Errorf("Decode(%v)\n got %q\nwant %q", want.GreedyIDs, got, want.GreedyText)
		}
	}
	bos, _ := tokenizer.BOS()
	eos, _ := tokenizer.EOS()
	if bos != 1 || eos != 2 || tokenizer.AddBOS() || tokenizer.VocabSize() != 49152 || tokenizer.splitter != "digit, gpt-2" {
		t.Errorf("bos %d, eos %d, add bos %t, %d tokens, splitter %q; want 1, 2, false, 49152, \"digit, gpt-2\"",
			bos, eos, tokenizer.AddBOS(), tokenizer.VocabSize(), tokenizer.splitter)
	}
	if template, _ := tokenizer.ChatTemplate(); !strings.Contains(template, "<|im_start|>") {
		t.Errorf("ChatTemplate() = %q, want ChatML", template)
	}
}

// A SentencePiece vocabulary as GGUF files hold it: tokens and scores, from which the merges follow.
func sentencePiece(t testing.TB) GGUF {
	t.Helper()
	published := open(t, "llama2")
	meta := GGUF{Model: "llama", BOS: new(uint32(1)), EOS: new(uint32(2)), Unknown: new(uint32(0))}
	for id, token := range published.vocabulary.tokens {
		kind := int32(tokenNormal)
		switch {
		case id == 0:
			kind = tokenUnknown
		case id < 3:
			kind = tokenControl
		case id < 259:
			kind = tokenByte
		}
		meta.Tokens = append(meta.Tokens, token)
		meta.TokenTypes = append(meta.TokenTypes, kind)
	}
	// The published file has merges in the order of the scores it was made from.
	meta.Scores = make([]float32, len(meta.Tokens))
	for _, slot := range published.model.merges.slots {
		if score := -float32(slot.rank); slot.pair != 0 && (meta.Scores[slot.id] == 0 || score > meta.Scores[slot.id]) {
			meta.Scores[slot.id] = score
		}
	}
	return meta
}

func TestScoresAgreeWithMerges(t *testing.T) {
	tokenizer, err := FromGGUF(sentencePiece(t))
	if err != nil {
		t.Fatal(err)
	}
	var all []reference
	for _, r := range references(t, "llama2") {
		if !strings.Contains(r.Text, "<unk>") { // which no GGUF file marks as findable
			all = append(all, r)
		}
	}
	compare(t, tokenizer, all)
	if !tokenizer.AddBOS() {
		t.Error("AddBOS() is false; SentencePiece models want it unless the file says otherwise")
	}
}

func TestSpacePrefixCanBeOff(t *testing.T) {
	meta := sentencePiece(t)
	meta.AddSpacePrefix, meta.AddBOS = new(false), new(false)
	tokenizer, err := FromGGUF(meta)
	if err != nil {
		t.Fatal(err)
	}
	const text = "Hello<s> world"
	ids := tokenizer.Encode(text, true)
	if got := tokenizer.Decode(ids, false); got != text || tokenizer.AddBOS() {
		t.Errorf("Decode(%v) = %q, want %q; AddBOS() = %t, want false", ids, got, text, tokenizer.AddBOS())
	}
	if got, want := tokenizer.Decode(ids, true), "Hello world"; got != want {
		t.Errorf("without special tokens: got %q, want %q", got, want)
	}
}
