package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// fromVocab reads vocab.json and merges.txt: byte-level BPE. The files do not say how words are cut, so the tokenizer's
// class does, or else the family of the model.
func fromVocab(f *Files, s *settings) (*parts, error) {
	if len(f.Vocab) > maxFileBytes || len(f.Merges) > maxFileBytes {
		return nil, fmt.Errorf("vocab.json and merges.txt have %d and %d bytes: at most %d are allowed", len(f.Vocab), len(f.Merges), maxFileBytes)
	}
	if !utf8.Valid(f.Vocab) || !utf8.Valid(f.Merges) {
		return nil, errors.New("vocab.json or merges.txt is not UTF-8")
	}
	if !json.Valid(f.Vocab) {
		return nil, errors.New("vocab.json is not JSON")
	}
	p := &parts{bos: -1, eos: -1, model: bpe{unknown: -1}}
	var err error
	if p.vocabulary, err = readVocabulary(f.Vocab); err != nil {
		return nil, fmt.Errorf("vocab.json: %w", err)
	}
	if p.merges, err = p.vocabulary.readMergesText(f.Merges); err != nil {
		return nil, fmt.Errorf("merges.txt: %w", err)
	}
	pattern, nfc := gpt2Text, false
	switch s.class = vocabClass(s.class, f.ModelType); {
	case strings.HasPrefix(s.class, "Qwen3_5"):
		pattern, nfc = qwen35Text, true
	case strings.HasPrefix(s.class, "Qwen"):
		pattern, nfc = qwen2Text, true
	}
	if nfc {
		p.pipeline.normalizers = []normalizer{unicodeNormalizer(norm.NFC)}
	}
	if s.prefixSpace != nil && *s.prefixSpace {
		p.pipeline.stages = append(p.pipeline.stages, prefixStage{})
	}
	p.pipeline.addScanner(pattern)
	p.pipeline.byteLevel, p.pipeline.decoder.byteLevel = true, true
	p.notes = append(p.notes, fmt.Sprintf("there is no tokenizer.json: vocab.json and merges.txt are taken as a %s, words are cut as %s does",
		s.class, p.pipeline.splitters[len(p.pipeline.splitters)-1]))
	return p, nil
}

// vocabClass is the class of a tokenizer whose file names one that says how words are cut, or else the one of the model's family.
func vocabClass(named, modelType string) string {
	switch {
	case strings.HasPrefix(named, "Qwen"), strings.HasPrefix(named, "GPT2"):
		return named
	case strings.HasPrefix(modelType, "qwen3_5"):
		return "Qwen3_5Tokenizer"
	case strings.HasPrefix(modelType, "qwen"):
		return "Qwen2Tokenizer"
	}
	return "GPT2Tokenizer"
}

// readMergesText reads a line "left right" for each merge; the first line may be a comment.
func (v *vocabulary) readMergesText(data []byte) (merges []merge, err error) {
	rank := 0
	for line := range bytes.Lines(data) {
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" || rank == 0 && strings.HasPrefix(text, "#version") {
			continue
		}
		left, right, _ := strings.Cut(text, " ")
		if merges, err = v.merge(merges, left, right, rank); err != nil {
			return nil, err
		}
		rank++
	}
	return merges, nil
}
