package tokenizer

import "strings"

// pipeline is what surrounds the model: the parts a tokenizer.json names, or a GGUF file implies.
type pipeline struct {
	normalizers []normalizer
	stages      []stage
	splitters   []string // the name of each stage that cuts
	byteLevel   bool
	decoder     decoder
	classes     *classTable
}

// addScanner adds a stage that isolates what a known pattern matches.
func (p *pipeline) addScanner(pattern string) {
	scan, name := knownScanner(pattern, p.classTable())
	if scan == nil {
		panic("BUG: no scanner for pattern " + pattern)
	}
	p.stages = append(p.stages, splitStage{pattern: scan, behavior: isolated})
	p.splitters = append(p.splitters, name)
}

func (p *pipeline) classTable() *classTable {
	if p.classes == nil {
		p.classes = newClassTable()
	}
	return p.classes
}

// assemble makes a tokenizer of its parts. b has the model's flags.
func assemble(v vocabulary, added []addedToken, p pipeline, b bpe, merges []merge) (*Tokenizer, error) {
	t := &Tokenizer{
		vocabulary: v, normalizers: p.normalizers, stages: p.stages, decoder: p.decoder, model: b,
		splitter: strings.Join(p.splitters, ", "), bos: -1, eos: -1,
	}
	if t.splitter == "" {
		t.splitter = "none"
	}
	if err := t.addTokens(added); err != nil {
		return nil, err
	}
	t.model.byteLevel = p.byteLevel
	t.model.cache = newWordCache()
	t.vocabulary.fill(&t.model)
	t.fillMerges(merges)
	t.bound = t.newBound()
	t.pieces = newPieceTable(&t.decoder, t.vocabulary.tokens, t.normalized)
	return t, nil
}

// addTokens makes the matchers for added tokens, which the vocabulary has.
func (t *Tokenizer) addTokens(added []addedToken) error {
	var plain, normalized []addedToken
	var plainTexts, normalizedTexts []string
	for _, token := range added {
		if token.special {
			t.vocabulary.special[token.id] = true
		}
		if !token.normalized {
			plain = append(plain, token)
			plainTexts = append(plainTexts, token.content)
			continue
		}
		text := token.content
		for _, n := range t.normalizers {
			text, _ = n.normalize(text, nil)
		}
		token.content = text
		normalized = append(normalized, token)
		normalizedTexts = append(normalizedTexts, text)
	}
	var err error
	if t.added, err = newAddedMatcher(plain, plainTexts); err != nil {
		return err
	}
	t.normalized, err = newAddedMatcher(normalized, normalizedTexts)
	return err
}

// fillMerges fills the model's merge table. No merge makes a special token: text cannot spell one.
func (t *Tokenizer) fillMerges(merges []merge) {
	t.model.merges = newMergeTable(len(merges))
	_, hasBlank := t.vocabulary.ids[metaspace]
	if hasBlank && !t.model.byteLevel && !t.model.ignoreMerges {
		t.model.cut = &wordCut{joined: make(map[rune]bool)}
	}
	for _, m := range merges {
		if t.vocabulary.special[m.id] {
			continue
		}
		if t.model.cut != nil {
			t.model.cut.note(t.vocabulary.tokens[m.left], t.vocabulary.tokens[m.right])
		}
		t.model.merges.set(m.left, m.right, m.rank, m.id)
	}
}
