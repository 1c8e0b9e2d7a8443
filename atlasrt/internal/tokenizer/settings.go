package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SpecialToken is a token that chat templates write by name, such as pad_token. List says that the name stands for a list.
type SpecialToken struct {
	Name  string   // "pad_token"
	Texts []string // one, unless List
	List  bool     // Name stands for a list of texts
}

// settings is what tokenizer_config.json, special_tokens_map.json and added_tokens.json say.
type settings struct {
	class          string       // tokenizer_class without Fast
	named          []namedToken // in the order in which transformers adds them
	listed         []addedToken // additional_special_tokens
	decoder        []addedToken // added_tokens_decoder or added_tokens.json, by the ids that they give
	older          bool         // decoder is of added_tokens.json
	addBOS, addEOS *bool
	prefixSpace    *bool
	legacy         bool // of a SentencePiece model: a blank is put before each stretch of text, not only the first
	templates      chatTemplates
	notes          []string
}

// namedToken is a token under the name that templates use; the content is "" where the file says that there is none.
type namedToken struct {
	name  string
	token addedToken
}

// tokenText is a token, written as a string or as an object with its flags; null is no token.
type tokenText struct {
	addedToken
	object bool
}

// UnmarshalJSON takes every spelling. A flag that an object leaves out has the default of the tokenizers library.
func (t *tokenText) UnmarshalJSON(data []byte) error {
	*t = tokenText{}
	if data[0] != '{' {
		return json.Unmarshal(data, &t.content)
	}
	var object struct {
		Content    string `json:"content"`
		Special    bool   `json:"special"`
		Normalized *bool  `json:"normalized"`
		LeftStrip  bool   `json:"lstrip"`
		RightStrip bool   `json:"rstrip"`
		SingleWord bool   `json:"single_word"`
	}
	err := json.Unmarshal(data, &object)
	t.object = true
	t.addedToken = addedToken{
		content: object.Content, special: object.Special, leftStrip: object.LeftStrip, rightStrip: object.RightStrip, singleWord: object.SingleWord,
		normalized: object.Normalized == nil && !object.Special || object.Normalized != nil && *object.Normalized,
	}
	return err
}

// asSpecial is the token as one that controls the model.
func (t tokenText) asSpecial() addedToken {
	token := t.addedToken
	token.special = true
	if !t.object {
		token.normalized = false
	}
	return token
}

// readSettings follows transformers: without an added_tokens_decoder, special_tokens_map.json outweighs
// tokenizer_config.json and added_tokens.json is read; with one, neither is.
func readSettings(f *Files) (*settings, error) {
	s := &settings{}
	config, err := readFile("tokenizer_config.json", f.Config)
	if err != nil {
		return nil, err
	}
	if err := s.readConfig(config.values); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	s.readNames(config)
	if decoder, ok := config.values["added_tokens_decoder"]; ok {
		if err := s.readDecoder(decoder); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: added_tokens_decoder: %w", err)
		}
		return s, nil
	}
	more, err := readFile("special_tokens_map.json", f.SpecialTokensMap)
	if err != nil {
		return nil, err
	}
	s.readNames(more)
	if err := s.readAdded(f.AddedTokens); err != nil {
		return nil, fmt.Errorf("added_tokens.json: %w", err)
	}
	return s, nil
}

func (s *settings) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// readConfig reads what is no token. A field of the wrong type costs a note.
func (s *settings) readConfig(fields map[string]json.RawMessage) error {
	read := func(name string, into any) {
		if value, ok := fields[name]; ok && json.Unmarshal(value, into) != nil {
			s.note("tokenizer_config.json: %s is %.40s and is not used", name, oneLine(value))
		}
	}
	read("tokenizer_class", &s.class)
	s.class = strings.TrimSuffix(s.class, "Fast")
	read("add_bos_token", &s.addBOS)
	read("add_eos_token", &s.addEOS)
	read("add_prefix_space", &s.prefixSpace)
	read("legacy", &s.legacy)
	template, ok := fields["chat_template"]
	if !ok {
		return nil
	}
	var err error
	s.templates, err = readTemplates(template)
	return err
}

// oneLine is JSON without line breaks and blanks between its parts.
func oneLine(value json.RawMessage) string {
	var line bytes.Buffer
	if json.Compact(&line, value) != nil {
		return ""
	}
	return line.String()
}

// readNames reads every *_token, the names of model_specific_special_tokens and extra_special_tokens, and the lists. A name that was read already is
// replaced.
func (s *settings) readNames(f fields) {
	before := s.named
	s.named = nil
	for _, name := range f.names {
		if strings.HasSuffix(name, "_token") {
			s.readName(before, name, f.values[name])
		}
	}
	for _, name := range []string{"model_specific_special_tokens", "extra_special_tokens", "additional_special_tokens"} {
		if value, ok := f.values[name]; ok {
			s.readExtra(before, name, value)
		}
	}
	for _, old := range before {
		if _, ok := s.token(old.name); !ok {
			s.named = append(s.named, old)
		}
	}
	slices.SortStableFunc(s.named, func(a, b namedToken) int { return nameOrder(a.name) - nameOrder(b.name) })
}

// nameOrder puts the names that every tokenizer has before others, as transformers adds tokens in this order.
func nameOrder(name string) int {
	standard := []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}
	if i := slices.Index(standard, name); i >= 0 {
		return i
	}
	return otherName
}

const otherName = 7 // behind the standard names

// readName reads one token; before are those of another file, which it outweighs. Numbers and truth values
// (add_bos_token) are none.
func (s *settings) readName(before []namedToken, name string, value json.RawMessage) {
	var token tokenText
	if c := value[0]; c != '"' && c != '{' && c != 'n' {
		if nameOrder(name) < otherName {
			s.note("%s is %.40s, no token, and is not used", name, oneLine(value))
		}
		return
	}
	if err := json.Unmarshal(value, &token); err != nil {
		s.note("%s is %.40s, no token, and is not used", name, oneLine(value))
		return
	}
	for _, old := range before {
		if old.name == name && old.token.content != "" && old.token.content != token.content {
			s.note("special_tokens_map.json says that %s is %.40q, tokenizer_config.json %.40q: the first counts", name, token.content, old.token.content)
		}
	}
	named := namedToken{name, token.asSpecial()}
	if i := slices.IndexFunc(s.named, func(n namedToken) bool { return n.name == name }); i >= 0 {
		s.named[i] = named
		return
	}
	s.named = append(s.named, named)
}

// readExtra reads a list of tokens or an object of named ones.
func (s *settings) readExtra(before []namedToken, name string, value json.RawMessage) {
	if bytes.HasPrefix(value, []byte("{")) {
		f, err := readFields(value)
		if err != nil {
			s.note("%s is no object of tokens and is not used", name)
			return
		}
		for _, key := range f.names {
			s.readName(before, key, f.values[key])
		}
		return
	}
	var list []tokenText
	if err := json.Unmarshal(value, &list); err != nil {
		s.note("%s is no list of tokens and is not used", name)
		return
	}
	if len(list) == 0 || len(s.listed) > 0 && name == "additional_special_tokens" {
		return // what came first counts
	}
	s.listed = nil
	for _, token := range list {
		s.listed = append(s.listed, token.asSpecial())
	}
}

// readDecoder reads an object of id to token.
func (s *settings) readDecoder(value json.RawMessage) error {
	var object map[string]tokenText
	if err := json.Unmarshal(value, &object); err != nil {
		return err
	}
	for key, token := range object {
		id, err := strconv.ParseInt(strings.TrimSpace(key), 10, 64)
		if err != nil || id < 0 || id >= maxTokens {
			return fmt.Errorf("%.40q is no id: ids are 0 to %d", key, maxTokens-1)
		}
		token.id = int32(id)
		s.decoder = append(s.decoder, token.addedToken)
	}
	s.sortDecoder()
	return nil
}

// readAdded reads an object of token to id. Those that a name stands for are special, the others plain words.
func (s *settings) readAdded(data []byte) error {
	if data == nil {
		return nil
	}
	var object map[string]int64
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	names := s.specials()
	for content, id := range object {
		if id < 0 || id >= maxTokens {
			return fmt.Errorf("%.40q has id %d: ids are 0 to %d", content, id, maxTokens-1)
		}
		special := names[content]
		s.decoder = append(s.decoder, addedToken{id: int32(id), content: content, special: special, normalized: !special})
	}
	s.older = true
	s.sortDecoder()
	return nil
}

func (s *settings) sortDecoder() {
	slices.SortFunc(s.decoder, func(a, b addedToken) int {
		if a.id != b.id {
			return int(a.id) - int(b.id)
		}
		return strings.Compare(a.content, b.content)
	})
}

// specials are the tokens that a name or a list has.
func (s *settings) specials() map[string]bool {
	special := make(map[string]bool)
	for _, n := range s.named {
		special[n.token.content] = true
	}
	for _, token := range s.listed {
		special[token.content] = true
	}
	return special
}

// token is the text of a named token; false where nothing is said about the name.
func (s *settings) token(name string) (string, bool) {
	for _, n := range s.named {
		if n.name == name {
			return n.token.content, true
		}
	}
	return "", false
}
