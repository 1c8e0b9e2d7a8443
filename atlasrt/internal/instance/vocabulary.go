package instance

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// openTokenizer makes a tokenizer of a folder's files, or of a GGUF file's metadata.
func openTokenizer(c weights.Checkpoint, assets weights.Assets) (*tokenizer.Tokenizer, error) {
	if assets.Vocabulary != nil {
		return tokenizer.FromGGUF(ggufTokenizer(assets.Vocabulary))
	}
	config := c.Config()
	return tokenizer.FromFiles(tokenizer.Files{
		Tokenizer: assets.Tokenizer, Config: assets.TokenizerConfig, SpecialTokensMap: assets.SpecialTokensMap, AddedTokens: assets.AddedTokens,
		Vocab: assets.Vocab, Merges: assets.Merges, SentencePiece: assets.SentencePiece,
		ModelType: config.StringOr("model_type", ""), Rows: config.IntOr("vocab_size", 0),
	})
}

// chatTemplate is the template of conversations, "" where there is none: a file of its own comes before
// tokenizer_config.json, that before the older chat_template.json.
func chatTemplate(assets weights.Assets, tok *tokenizer.Tokenizer) (source, note string, err error) {
	if len(assets.ChatTemplate) > 0 {
		return string(assets.ChatTemplate), "", nil
	}
	if source, note = tok.ChatTemplate(); source != "" || assets.ChatTemplateJSON == nil {
		return source, note, nil
	}
	return tokenizer.ParseTemplateFile(assets.ChatTemplateJSON)
}

// ChatTemplate is the text of a checkpoint's template of conversations, "" where it has none.
func ChatTemplate(c weights.Checkpoint) (string, error) {
	assets, err := c.Assets()
	if err != nil || len(assets.ChatTemplate) > 0 {
		return string(assets.ChatTemplate), err
	}
	tok, err := openTokenizer(c, assets)
	if err != nil {
		return "", err
	}
	source, _, err := chatTemplate(assets, tok)
	return source, err
}

// specialTokens are those that templates write by name.
func specialTokens(tok *tokenizer.Tokenizer) []chat.SpecialToken {
	var special []chat.SpecialToken
	for _, token := range tok.SpecialTokens() {
		if token.List {
			special = append(special, chat.SpecialToken{Variable: token.Name, Texts: token.Texts})
			continue
		}
		special = append(special, chat.SpecialToken{Variable: token.Name, Text: token.Texts[0]})
	}
	return special
}

// ggufTokenizer hands a GGUF file's vocabulary to the tokenizer.
func ggufTokenizer(v *weights.Vocabulary) tokenizer.GGUF {
	id := func(n int) *uint32 {
		if n < 0 { // there is none
			return nil
		}
		return new(uint32(n))
	}
	g := tokenizer.GGUF{
		Model: v.Model, Pre: v.Pre, Tokens: v.Tokens, Scores: v.Scores, Merges: v.Merges, ChatTemplate: v.ChatTemplate,
		BOS: id(v.BOS), EOS: id(v.EOS), Unknown: id(v.Unknown), Padding: id(v.Padding), Separator: id(v.Separator), Class: id(v.Class), Mask: id(v.Mask),
		EOT: id(v.EOT), EOM: id(v.EOM), AddBOS: v.AddBOS, AddEOS: v.AddEOS, AddSpacePrefix: v.AddSpacePrefix,
	}
	for _, t := range v.Types {
		g.TokenTypes = append(g.TokenTypes, int32(t))
	}
	return g
}
