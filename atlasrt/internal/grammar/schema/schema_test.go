package schema

import (
	"errors"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// bytesVocabulary has one token for every byte.
var bytesVocabulary = func() *match.Vocabulary {
	tokens := make([][]byte, 256)
	for i := range tokens {
		tokens[i] = []byte{byte(i)}
	}
	return match.NewVocabulary(tokens, func(int32) bool { return false })
}()

// machine is the machine of a schema.
func machine(schema string, options Options) (*match.Machine, error) {
	b := rules.NewBuilder()
	start, err := Add(b, []byte(schema), options)
	if err != nil {
		return nil, err
	}
	g, err := b.Grammar(start)
	if err != nil {
		return nil, err
	}
	m, err := match.New(g, bytesVocabulary, match.Limits{})
	if errors.Is(err, match.ErrNothing) {
		return nil, &Unsatisfiable{}
	}
	return m, err
}

// accepts says whether a text is one of a machine, and where it stops otherwise.
func accepts(m *match.Machine, text string) (whole bool, at int) {
	state, n := m.Start().NextBytes([]byte(text))
	return n == len(text) && state.Done(), n
}

// refused is the keyword that an error names, or what else it says.
func refused(err error) string {
	var unsupported *Unsupported
	var unsatisfiable *Unsatisfiable
	switch {
	case errors.As(err, &unsupported) && unsupported.Keyword == "":
		return "too much work"
	case errors.As(err, &unsupported):
		return unsupported.Keyword
	case errors.As(err, &unsatisfiable):
		return "unsatisfiable"
	}
	return "invalid"
}

// check tries texts that a schema allows, and others.
func check(t *testing.T, schema string, options Options, valid, invalid []string) {
	t.Helper()
	m, err := machine(schema, options)
	if err != nil {
		t.Errorf("%s: %v", schema, err)
		return
	}
	for _, text := range valid {
		if ok, at := accepts(m, text); !ok {
			t.Errorf("%s: %s stops at byte %d", schema, text, at)
		}
	}
	for _, text := range invalid {
		if ok, _ := accepts(m, text); ok {
			t.Errorf("%s: %s passes", schema, text)
		}
	}
}
