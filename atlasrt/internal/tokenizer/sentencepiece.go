package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// sentencePieceModel is what a tokenizer.model says: a protocol buffer, ModelProto of sentencepiece_model.proto.
type sentencePieceModel struct {
	meta                 GGUF // tokens, scores and types, which GGUF took from here
	kind                 uint64
	unknown              int32
	dummyPrefix, squeeze bool
	charsMap             bool // text is rewritten by a table
	bos, eos             int32
}

// The kinds of model that a TrainerSpec names.
const (
	unigramModel = 1
	bpeModel     = 2
)

// fromSentencePiece reads a tokenizer.model of the kind that Llama 2 and Mistral were published with.
func fromSentencePiece(data []byte, s *settings) (*parts, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%d bytes: at most %d are allowed", len(data), maxFileBytes)
	}
	if len(data) > 0 && (data[0] == '{' || utf8.Valid(data[:min(len(data), 64)]) && strings.Contains(string(data[:min(len(data), 64)]), "= ")) {
		return nil, errors.New("it is no SentencePiece model but text, as of tiktoken (save the tokenizer with transformers, which writes tokenizer.json)")
	}
	m := sentencePieceModel{kind: unigramModel, dummyPrefix: true, squeeze: true, bos: 1, eos: 2}
	if err := m.read(data); err != nil {
		return nil, err
	}
	switch {
	case m.kind != bpeModel:
		return nil, fmt.Errorf("it is a SentencePiece model of kind %d, and only BPE (2) is supported (save the tokenizer with transformers, which writes tokenizer.json)", m.kind)
	case m.charsMap || m.squeeze:
		return nil, errors.New("it rewrites text before it cuts it, which is not supported (save the tokenizer with transformers, which writes tokenizer.json)")
	}
	p := &parts{bos: -1, eos: -1, addBOS: true}
	p.model = bpe{byteFallback: true, fuseUnknown: true, unknown: m.unknown}
	p.pipeline.decoder = decoder{
		byteFallback: true,
		rewrite:      []func(string) string{func(s string) string { return strings.ReplaceAll(s, metaspace, " ") }},
	}
	m.blanks(&p.pipeline, s)
	if err := m.meta.readTokens(p); err != nil {
		return nil, err
	}
	tokens := int32(len(m.meta.Tokens))
	if m.bos < tokens {
		p.bos = m.bos
	}
	if m.eos < tokens {
		p.eos = m.eos
	}
	if m.unknown < 0 || m.unknown >= tokens {
		p.model.unknown = -1
	}
	var err error
	p.merges, err = m.meta.scoredMerges(&p.vocabulary)
	p.notes = append(p.notes, "there is no tokenizer.json: tokenizer.model is used")
	return p, err
}

// blanks makes ▁ of blanks, and puts one before the text, or, as older conversions do, before each stretch between two
// control tokens.
func (m *sentencePieceModel) blanks(p *pipeline, s *settings) {
	prefix := m.dummyPrefix
	if s.prefixSpace != nil {
		prefix = *s.prefixSpace
	}
	if prefix {
		p.decoder.stripContent, p.decoder.stripStart = ' ', 1
	}
	if prefix && s.legacy {
		p.normalizers = []normalizer{prependNormalizer(metaspace), replaceNormalizer{literal(" "), metaspace}}
		return
	}
	space := metaspaceStage{replacement: metaspace, prepend: "never"}
	if prefix {
		space.prepend = "first"
	}
	p.stages, p.splitters = []stage{space}, []string{"metaspace"}
}

// read takes the pieces and the settings that matter here.
func (m *sentencePieceModel) read(data []byte) error {
	return eachField(data, func(number int, value uint64, bytes []byte) error {
		switch number {
		case 1:
			if len(m.meta.Tokens) >= maxTokens {
				return fmt.Errorf("more than %d pieces", maxTokens)
			}
			return m.piece(bytes)
		case 2:
			return eachField(bytes, func(number int, value uint64, _ []byte) error {
				switch number {
				case 3:
					m.kind = value
				case 40:
					m.unknown = int32(value)
				case 41:
					m.bos = int32(value)
				case 42:
					m.eos = int32(value)
				}
				return nil
			})
		case 3:
			return eachField(bytes, func(number int, value uint64, bytes []byte) error {
				switch number {
				case 2:
					m.charsMap = len(bytes) > 0
				case 3:
					m.dummyPrefix = value != 0
				case 4:
					m.squeeze = value != 0
				}
				return nil
			})
		}
		return nil
	})
}

// piece reads a token with its score and type.
func (m *sentencePieceModel) piece(data []byte) error {
	text, score, kind := "", float32(0), int32(tokenNormal)
	err := eachField(data, func(number int, value uint64, bytes []byte) error {
		switch number {
		case 1:
			text = string(bytes)
		case 2:
			score = math.Float32frombits(uint32(value))
		case 3:
			kind = int32(value)
		}
		return nil
	})
	m.meta.Tokens = append(m.meta.Tokens, text)
	m.meta.Scores = append(m.meta.Scores, score)
	m.meta.TokenTypes = append(m.meta.TokenTypes, kind)
	return err
}

// eachField walks over the fields of a protocol buffer's message: bytes is nil but for fields that have a length.
func eachField(data []byte, visit func(number int, value uint64, bytes []byte) error) error {
	for len(data) > 0 {
		key, n := binary.Uvarint(data)
		if n <= 0 || key>>3 == 0 || key>>3 > math.MaxInt32 {
			return errBroken
		}
		data = data[n:]
		var value uint64
		var bytes []byte
		switch key & 7 {
		case 0:
			if value, n = binary.Uvarint(data); n <= 0 {
				return errBroken
			}
		case 1:
			if n = 8; len(data) < n {
				return errBroken
			}
			value = binary.LittleEndian.Uint64(data)
		case 2:
			length, m := binary.Uvarint(data)
			if m <= 0 || length > uint64(len(data)-m) {
				return errBroken
			}
			n = m + int(length)
			bytes = data[m:n]
		case 5:
			if n = 4; len(data) < n {
				return errBroken
			}
			value = uint64(binary.LittleEndian.Uint32(data))
		default:
			return errBroken
		}
		data = data[n:]
		if err := visit(int(key>>3), value, bytes); err != nil {
			return err
		}
	}
	return nil
}

var errBroken = errors.New("it is no SentencePiece model (download it again; a Git LFS pointer is a small text)")
