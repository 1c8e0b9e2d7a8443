package tokenizer

import (
	"fmt"
	"slices"
)

// preTokenizer is what the name of a GGUF pre-tokenizer stands for.
type preTokenizer struct {
	names        []string
	patterns     []string // each cuts the pieces of the one before
	nfc          bool     // the file does not say so, but the model was trained so
	ignoreMerges bool
	addBOS       bool // unless the file says otherwise
}

// The patterns of pre-tokenizers that have no hand-written scanner, as published files spell them.
const (
	anyDigitsText    = `\p{N}+`
	threeASCIIText   = `[0-9][0-9][0-9]`
	lineBreakText    = `[\r\n]`
	cjkText          = `[\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+`
	bloomText        = ` ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+`
	punctuationText  = `[\p{P}\$\+<=>\^~\|]+`
	falconMarksText  = "[\\p{P}\\$\\+<=>\\^~\\|`]+"
	asianText        = `[\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+`
	afmoeScriptsText = `[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{0E40}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+`
	latinWordsText   = `\s?[A-Za-z\x{00B5}\x{00C0}-\x{00D6}\x{00D8}-\x{00F6}\x{00F8}-\x{01BA}\x{01BC}-\x{01BF}\x{01C4}-\x{0293}\x{0295}-\x{02AF}\x{0370}-\x{0373}\x{0376}\x{0377}\x{037B}-\x{037D}\x{037F}\x{0386}\x{0388}-\x{038A}\x{038C}\x{038E}-\x{03A1}\x{03A3}-\x{03F5}\x{03F7}-\x{0481}\x{048A}-\x{052F}\x{0531}-\x{0556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+`

	jais2Text = contractionsText + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+` +
		`|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`
	sparkText      = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" + `|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+`
	bailingText    = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	seedCoderText  = contractionsText + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	ufakzekaText   = `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	exaoneMoEText  = contractionsText + `|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	minicpmText    = contractionsText + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	youtuWordsText = headThenTailText + contractionsText + `?` + headOrTailText + contractionsText + `?` + `|\p{N}` + casedEndText

	notHanHead = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	notHanTail = `[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	kimiText   = `[\p{Han}]+|` + notHanHead + `*` + notHanTail + `+` + contractionsText + `?|` + notHanHead + `+` + notHanTail + `*` + contractionsText +
		`?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + whitespaceText
)

// preTokenizers are those that GGUF files name, as llama.cpp maps the names. What cuts like another and has other flags
// stands apart.
func preTokenizers() []preTokenizer {
	return []preTokenizer{
		{names: []string{"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code", "roberta-bpe", "gigachat", "a.x-4.0",
			"mellum", "modern-bert", "jais", "trillion", "granite-docling", "exaone4"}, patterns: []string{gpt2Text}},
		{names: []string{"mpt", "olmo"}, patterns: []string{gpt2Text}, nfc: true},
		{names: []string{"smollm", "smollm2", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
			patterns: []string{oneDigitText, gpt2Text}},
		{names: []string{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan"}, patterns: []string{qwen2Text}, nfc: true},
		{names: []string{"solar-open", "grok-2"}, patterns: []string{qwen2Text}},
		{names: []string{"qwen35"}, patterns: []string{qwen35Text}, nfc: true},
		{names: []string{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
			patterns: []string{llama3Text}, ignoreMerges: true, addBOS: true},
		{names: []string{"dbrx", "smaug-bpe", "chatglm-bpe"}, patterns: []string{llama3Text}},
		{names: []string{"glm4", "glm5"}, patterns: []string{llama3Text}, ignoreMerges: true},
		{names: []string{"tekken"}, patterns: []string{tekkenText}, ignoreMerges: true, addBOS: true},
		{names: []string{"gpt-4o"}, patterns: []string{o200kText}, ignoreMerges: true},
		{names: []string{"llama4", "kanana2", "talkie", "minimax-m2"}, patterns: []string{o200kText}},
		{names: []string{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, patterns: []string{threeDigitsText, hanKanaText, deepseekText}},
		{names: []string{"deepseek-llm"}, patterns: []string{lineBreakText, latinWordsText, `\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+`, `\s+$`, cjkText, anyDigitsText}},
		{names: []string{"deepseek-coder"}, patterns: []string{lineBreakText, `\s?\p{L}+`, `\s?\p{P}+`, cjkText, oneDigitText}},
		{names: []string{"falcon"}, patterns: []string{falconMarksText, gpt2Text, threeASCIIText}},
		{names: []string{"bloom", "gpt3-finnish", "poro-chat"}, patterns: []string{bloomText}},
		{names: []string{"viking"}, patterns: []string{bloomText, oneDigitText}},
		{names: []string{"jais-2"}, patterns: []string{jais2Text}},
		{names: []string{"spark2_5"}, patterns: []string{threeDigitsText, hanKanaText, sparkText, oneDigitText}},
		{names: []string{"youtu"}, patterns: []string{asianText, youtuWordsText}, ignoreMerges: true},
		{names: []string{"exaone-moe"}, patterns: []string{exaoneMoEText}},
		{names: []string{"chameleon"}, patterns: []string{`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`, `([\t\n]|    |  )`, oneDigitText,
			"[\\p{P}!-/:-@\\[-`{-~]", gpt2Text}, addBOS: true},
		{names: []string{"superbpe"}, patterns: []string{anyDigitsText, cutsFromEndText}},
		{names: []string{"tiny_aya", "cohere2moe"}, patterns: []string{groupsFromEndText, o200kText}},
		{names: []string{"bailingmoe", "bailingmoe2", "llada-moe"}, patterns: []string{bailingText}},
		{names: []string{"seed-coder"}, patterns: []string{seedCoderText}},
		{names: []string{"ufakzeka"}, patterns: []string{ufakzekaText}},
		{names: []string{"kimi-k2"}, patterns: []string{kimiText}},
		{names: []string{"afmoe"}, patterns: []string{anyDigitsText, cutsFromEndText, afmoeScriptsText, deepseekText}},
		{names: []string{"laguna"}, patterns: []string{`[^\n]+|[\n]+`, qwen2Text}},
		{names: []string{"minicpm5"}, patterns: []string{threeDigitsText, minicpmText}, ignoreMerges: true},
		{names: []string{"default"}, patterns: []string{punctuationText, gpt2Text, anyDigitsText, threeASCIIText}},
	}
}

// namedPreTokenizer is what a name stands for.
func namedPreTokenizer(name string) (preTokenizer, bool) {
	all := preTokenizers()
	i := slices.IndexFunc(all, func(p preTokenizer) bool { return slices.Contains(p.names, name) })
	if i < 0 {
		return preTokenizer{}, false
	}
	return all[i], true
}

// preTokenizer is the one that the file names. Files without a name were written before there was one: tokens that only
// one family has tell which it is, and the note says so. A name that nobody knows is refused: every guess would give
// other tokens than the model was trained with, and nothing would show it.
func (meta *GGUF) preTokenizer() (pre preTokenizer, note string, err error) {
	name := meta.Pre
	if name == "" || name == "default" {
		name = "default"
		switch has := func(token string) bool { return slices.Contains(meta.Tokens, token) }; {
		case has("<|begin_of_text|>") && has("<|eot_id|>"):
			name = "llama-bpe"
		case has("<|im_start|>") && has("<|endoftext|>") && len(meta.Tokens) > 150_000:
			name = "qwen2"
		}
		note = fmt.Sprintf("tokenizer.ggml.pre names no pre-tokenizer: %q is assumed", name)
	}
	pre, ok := namedPreTokenizer(name)
	if !ok {
		return pre, "", fmt.Errorf("tokenizer.ggml.pre %q is not known (convert the model again with a newer llama.cpp, or set the key to the name of the pre-tokenizer it was trained with)", name)
	}
	return pre, note, nil
}
