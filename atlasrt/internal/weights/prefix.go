package weights

import (
	"fmt"
	"slices"
	"strings"
)

// HuggingFace's names of a decoder and its head.
const (
	decoder       = "model."
	embeddingName = "embed_tokens.weight"
	headName      = "lm_head."
	draftPrefix   = "mtp." // of a head that drafts, which may have an embedding
)

// rename finds under which prefix the files keep a decoder, by its embedding, and gives its tensors the names that are
// asked for. Exports of a bare decoder have none; wrapped models have longer ones.
func (f *folder) rename() error {
	all := f.tensors.Names()
	prefixes := decoders(all)
	if len(prefixes) == 0 || slices.Contains(prefixes, decoder) {
		return nil
	}
	if len(prefixes) > 1 {
		return fmt.Errorf("the checkpoint holds several models, whose tensors begin with %s: which one is meant is not known (give a checkpoint of one)", Listed(quoted(prefixes), maxListed))
	}
	prefix := prefixes[0]
	head := strings.TrimSuffix(prefix, decoder) + headName
	f.names = map[string]origin{}
	for _, name := range all {
		asked := name
		if rest, ok := strings.CutPrefix(name, prefix); ok && (prefix != "" || ofDecoder(rest)) {
			asked = decoder + rest
		} else if rest, ok := strings.CutPrefix(name, head); ok {
			asked = headName + rest
		}
		if other, ok := f.names[asked]; ok {
			return fmt.Errorf("tensors %s and %s would both be %s", other.name, name, asked)
		}
		f.names[asked] = origin{name: name}
	}
	if f.config.nested == nil { // a wrapped model has a prefix
		f.notes = append(f.notes, fmt.Sprintf("tensors are named %s%s and so on: read as %s%s", prefix, embeddingName, decoder, embeddingName))
	}
	return nil
}

// decoders lists the prefixes under which there are an embedding, a first layer and a last norm, but for that of a head that drafts.
func decoders(sorted []string) []string {
	var prefixes []string
	for _, name := range sorted {
		prefix, ok := strings.CutSuffix(name, embeddingName)
		if !ok || prefix != "" && !strings.HasSuffix(prefix, ".") || prefix == draftPrefix {
			continue
		}
		_, norm := slices.BinarySearch(sorted, prefix+"norm.weight")
		at, _ := slices.BinarySearch(sorted, prefix+"layers.0.")
		if norm && at < len(sorted) && strings.HasPrefix(sorted[at], prefix+"layers.0.") {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// ofDecoder reports whether a tensor without a prefix belongs to a decoder.
func ofDecoder(name string) bool {
	module, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{"embed_tokens", "layers", "norm", "rotary_emb"}, module)
}

func quoted(all []string) []string {
	quoted := make([]string, len(all))
	for i, text := range all {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return quoted
}
