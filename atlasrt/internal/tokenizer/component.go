package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// component is any normalizer, pre-tokenizer, post-processor or decoder: the fields of all of them.
type component struct {
	Type          string          `json:"type"`
	Normalizers   []component     `json:"normalizers"`
	PreTokenizers []component     `json:"pretokenizers"`
	Processors    []component     `json:"processors"`
	Decoders      []component     `json:"decoders"`
	Pattern       *patternJSON    `json:"pattern"`
	Content       string          `json:"content"`
	Prepend       string          `json:"prepend"`
	StripLeft     bool            `json:"strip_left"`
	StripRight    bool            `json:"strip_right"`
	Behavior      string          `json:"behavior"`
	Invert        bool            `json:"invert"`
	AddPrefix     *bool           `json:"add_prefix_space"`
	UseRegex      *bool           `json:"use_regex"`
	Individual    bool            `json:"individual_digits"`
	Replacement   string          `json:"replacement"`
	PrependScheme string          `json:"prepend_scheme"`
	Split         *bool           `json:"split"`
	Delimiter     string          `json:"delimiter"`
	Start         int             `json:"start"`
	Stop          int             `json:"stop"`
	Single        []templatePart  `json:"single"`
	First         json.RawMessage `json:"cls"` // of RobertaProcessing: a token and its id
	Last          json.RawMessage `json:"sep"`
	SpecialTokens map[string]struct {
		IDs []int64 `json:"ids"`
	} `json:"special_tokens"`
}

type patternJSON struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

// templatePart is a step of TemplateProcessing: a special token, or the text.
type templatePart struct {
	SpecialToken *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
	Sequence *struct{} `json:"Sequence"`
}

// matcher is the pattern's hand-written scanner if it has one, by name.
func (p *pipeline) matcher(pattern *patternJSON) (m matcher, name string, err error) {
	switch {
	case pattern != nil && pattern.String != nil && *pattern.String != "":
		return literal(*pattern.String), fmt.Sprintf("string %q", *pattern.String), nil
	case pattern == nil || pattern.Regex == nil:
		return nil, "", errors.New(`pattern: want {"String": …} or {"Regex": …}`)
	}
	return p.regex(*pattern.Regex)
}

// regex is the hand-written form of a pattern if it has one, by name.
func (p *pipeline) regex(pattern string) (m matcher, name string, err error) {
	if scan, name := knownScanner(pattern, p.classTable()); scan != nil {
		return scan, name, nil
	}
	if m, name := knownDigits(pattern); m != nil {
		return m, name, nil
	}
	m, err = newExpression(pattern)
	return m, fmt.Sprintf("regexp2 %q", pattern), err
}

func (p *pipeline) normalizer(c *component) error {
	if c == nil {
		return nil
	}
	switch c.Type {
	case "Sequence":
		for i := range c.Normalizers {
			if err := p.normalizer(&c.Normalizers[i]); err != nil {
				return err
			}
		}
		return nil
	case "NFC":
		p.normalizers = append(p.normalizers, unicodeNormalizer(norm.NFC))
	case "NFD":
		p.normalizers = append(p.normalizers, unicodeNormalizer(norm.NFD))
	case "NFKC":
		p.normalizers = append(p.normalizers, unicodeNormalizer(norm.NFKC))
	case "NFKD":
		p.normalizers = append(p.normalizers, unicodeNormalizer(norm.NFKD))
	case "Lowercase":
		p.normalizers = append(p.normalizers, lowercaseNormalizer{})
	case "Prepend":
		p.normalizers = append(p.normalizers, prependNormalizer(c.Prepend))
	case "Strip":
		p.normalizers = append(p.normalizers, stripNormalizer{c.StripLeft, c.StripRight})
	case "Replace":
		m, _, err := p.matcher(c.Pattern)
		if err != nil {
			return fmt.Errorf("component Replace: %w", err)
		}
		p.normalizers = append(p.normalizers, replaceNormalizer{m, c.Content})
	default:
		return fmt.Errorf("type %q is not supported (save the tokenizer without it)", c.Type)
	}
	return nil
}

func (p *pipeline) preTokenizer(c *component) error {
	if c == nil {
		return nil
	}
	behind := p.byteLevel // what stands behind ByteLevel sees its alphabet
	add := func(s stage, name string) {
		if behind {
			s = alphabetStage{s}
		}
		p.stages = append(p.stages, s)
		if name != "" {
			p.splitters = append(p.splitters, name)
		}
	}
	switch c.Type {
	case "Sequence":
		for i := range c.PreTokenizers {
			if err := p.preTokenizer(&c.PreTokenizers[i]); err != nil {
				return err
			}
		}
	case "ByteLevel":
		if behind {
			return errors.New("ByteLevel is there twice")
		}
		if c.AddPrefix == nil || *c.AddPrefix {
			add(prefixStage{}, "")
		}
		if c.UseRegex == nil || *c.UseRegex {
			p.addScanner(gpt2Text)
		}
		p.byteLevel = true
	case "Split":
		m, name, err := p.matcher(c.Pattern)
		if err != nil {
			return fmt.Errorf("component Split: %w", err)
		}
		b, err := parseBehavior(c.Behavior)
		if err != nil {
			return fmt.Errorf("component Split: %w", err)
		}
		add(splitStage{m, b, c.Invert}, name)
	case "Digits":
		b := contiguous
		if c.Individual {
			b = isolated
		}
		add(splitStage{pattern: digitScanner(p.classTable(), 1), behavior: b}, "digit")
	case "Punctuation":
		b := isolated
		if c.Behavior != "" {
			var err error
			if b, err = parseBehavior(c.Behavior); err != nil {
				return fmt.Errorf("component Punctuation: %w", err)
			}
		}
		add(splitStage{pattern: oneOf(isPunctuation), behavior: b}, "punctuation")
	case "Whitespace":
		add(splitStage{pattern: scanner(wordsAndSymbols), behavior: removed, invert: true}, "words")
	case "BertPreTokenizer":
		add(splitStage{pattern: oneOf(unicode.IsSpace), behavior: removed}, "whitespace")
		add(splitStage{pattern: oneOf(isPunctuation), behavior: isolated}, "punctuation")
	case "CharDelimiterSplit":
		if c.Delimiter == "" {
			return errors.New("component CharDelimiterSplit: there is no delimiter")
		}
		add(splitStage{pattern: literal(c.Delimiter), behavior: removed}, fmt.Sprintf("string %q", c.Delimiter))
	case "WhitespaceSplit":
		add(splitStage{pattern: oneOf(unicode.IsSpace), behavior: removed}, "whitespace")
	case "Metaspace":
		if behind {
			return errors.New("component Metaspace: it stands behind ByteLevel, which leaves no blanks (save the tokenizer with one of the two)")
		}
		m := metaspaceStage{replacement: c.Replacement, prepend: c.PrependScheme, cut: c.Split == nil || *c.Split}
		if m.prepend == "" {
			m.prepend = "always"
			if c.AddPrefix != nil && !*c.AddPrefix {
				m.prepend = "never"
			}
		}
		if utf8.RuneCountInString(m.replacement) != 1 || !strings.Contains("always first never", m.prepend) {
			return fmt.Errorf("component Metaspace: replacement %.40q, prepend_scheme %.40q", m.replacement, m.prepend)
		}
		add(m, "metaspace")
	default:
		return fmt.Errorf("type %q is not supported", c.Type)
	}
	return nil
}
