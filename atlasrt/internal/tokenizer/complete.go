package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// completion adds to the added tokens of a vocabulary's file those that only other files name, as transformers does when
// it loads: what is known keeps its id, what is new gets the next one.
type completion struct {
	*settings
	vocabulary *vocabulary
	file       string // that the vocabulary is of
	rows       int    // ids that the model has; 0: not known
	added      []addedToken
	places     map[string]int // content → index in added
	named      int            // where in added those begin that only a name adds
	kinds      []noteKind
}

// noteKind is what there may be to say of many tokens: it is said of the first, with the number of the others.
type noteKind struct {
	kind, first string
	others      int
}

func (c *completion) note(kind, format string, args ...any) {
	for i := range c.kinds {
		if c.kinds[i].kind == kind {
			c.kinds[i].others++
			return
		}
	}
	c.kinds = append(c.kinds, noteKind{kind: kind, first: fmt.Sprintf(format, args...)})
}

// tell hands the notes to the settings, one line for each kind.
func (c *completion) tell() {
	for _, kind := range c.kinds {
		line := kind.first
		if kind.others > 0 {
			line += fmt.Sprintf(" (and so for %d more)", kind.others)
		}
		c.notes = append(c.notes, line)
	}
}

// complete enters all added tokens into p's vocabulary and returns them with the ids that count.
func (s *settings) complete(p *parts, rows int) []addedToken {
	c := completion{settings: s, vocabulary: &p.vocabulary, file: p.file, rows: rows, places: make(map[string]int)}
	for _, token := range p.added {
		c.enter(p.file, token)
	}
	file, taken := "added_tokens_decoder", map[int32]string{}
	if s.older {
		file = "added_tokens.json"
		for _, token := range p.added {
			taken[token.id] = token.content
		}
	}
	special := s.specials()
	for _, token := range s.decoder {
		if content, ok := taken[token.id]; ok {
			if content != token.content {
				c.note("taken", "added_tokens.json gives %.40q the id %d, which %s gives %.40q: it is left out", token.content, token.id, p.file, content)
			}
			continue
		}
		token.special = token.special || special[token.content]
		if at, ok := c.places[token.content]; ok {
			c.repeat(at, token)
			continue
		}
		c.enter(file, token)
	}
	c.named = len(c.added)
	for _, named := range s.named {
		c.name(named.name, named.token)
	}
	for _, token := range s.listed {
		c.name("additional_special_tokens", token)
	}
	c.tell()
	return c.added
}

// enter adds a token that is not there yet.
func (c *completion) enter(file string, token addedToken) {
	if token.content == "" {
		return
	}
	if at, ok := c.places[token.content]; ok {
		c.repeat(at, token)
		return
	}
	id, known := c.vocabulary.ids[token.content]
	if !known {
		id = int32(len(c.vocabulary.tokens))
		// Where the vocabulary's own file leaves a hole, its id is free and counts.
		if file == c.file && (int(token.id) >= len(c.vocabulary.tokens) || c.vocabulary.tokens[token.id] == "") {
			id = token.id
		}
	}
	if id != token.id {
		c.note("moved", "%s gives %.40q the id %d: it has %d", file, token.content, token.id, id)
	}
	c.place(token, id)
}

// repeat gives a token the flags that a later file says; its id stays.
func (c *completion) repeat(at int, token addedToken) {
	old := c.added[at]
	if old.id != token.id {
		c.note("ids", "%.40q has the ids %d and %d: the first counts", token.content, old.id, token.id)
		token.id = old.id
	}
	if old != token {
		c.note("flags", "%.40q has other flags in the tokenizer's configuration than in %s: those of the first count", token.content, c.file)
		c.added[at] = token
	}
}

// name adds a token that has a name, unless it is added already.
func (c *completion) name(name string, token addedToken) {
	if token.content == "" {
		return
	}
	if at, ok := c.places[token.content]; ok {
		if at >= c.named { // of two names, the last one's flags count
			token.id = c.added[at].id
			c.added[at] = token
		}
		return
	}
	id, known := c.vocabulary.ids[token.content]
	if !known {
		id = int32(len(c.vocabulary.tokens))
		c.note("new "+name, "%s is %.40q, which the vocabulary lacks: it gets the id %d", name, token.content, id)
	} else if text, ok := fromAlphabet(token.content); utf8.RuneCountInString(token.content) == 1 || ok && len(text) == 1 {
		c.note("letter", "%s is %.40q, a letter that texts need: it stays text", name, token.content)
		return
	}
	c.place(token, id)
}

// place adds a token, unless the model has no row for its id.
func (c *completion) place(token addedToken, id int32) {
	token.id = id
	_, known := c.vocabulary.ids[token.content]
	if !known && c.rows > 0 && int(id) >= c.rows {
		c.note("rows", "%.40q is left out: the model has %d ids, and none is free", token.content, c.rows)
		return
	}
	if strings.TrimSpace(token.content) == "" && token.special {
		token.special = false // white space is text
	}
	if err := c.vocabulary.add(token.content, int64(id)); err != nil {
		c.note("wrong", "%v: it is left out", err)
		return
	}
	c.places[token.content] = len(c.added)
	c.added = append(c.added, token)
}
