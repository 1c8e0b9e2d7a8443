package tokenizer

import (
	"cmp"
	"fmt"
	"slices"
)

// scoredMerges is every way to make a token of two others. Tokens of one score share a rank: the leftmost goes first.
func (meta *GGUF) scoredMerges(v *vocabulary) ([]merge, error) {
	byScore := make([]int32, 0, len(meta.Tokens))
	plain := func(id int32) bool {
		kind := meta.tokenType(int(id))
		return kind == tokenNormal || kind == tokenUserDefined
	}
	for id, score := range meta.Scores {
		if score != score {
			return nil, fmt.Errorf("the score of token %d is not a number", id)
		}
		if plain(int32(id)) {
			byScore = append(byScore, int32(id))
		}
	}
	slices.SortStableFunc(byScore, func(a, b int32) int { return cmp.Compare(meta.Scores[b], meta.Scores[a]) })
	var merges []merge
	rank := int32(0)
	for i, id := range byScore {
		if i > 0 && meta.Scores[id] != meta.Scores[byScore[i-1]] {
			rank++
		}
		token := v.tokens[id]
		if v.ids[token] != id { // doubled, or empty
			continue
		}
		if len(token) > maxScoredBytes {
			return nil, fmt.Errorf("token %.40q… has %d bytes: at most %d are allowed here", token, len(token), maxScoredBytes)
		}
		for at := range token {
			left, leftOK := v.ids[token[:at]]
			right, rightOK := v.ids[token[at:]]
			if at > 0 && leftOK && rightOK && plain(left) && plain(right) {
				merges = append(merges, merge{left, right, rank, id})
			}
		}
		if len(merges) > maxMerges {
			return nil, fmt.Errorf("the tokens can be joined in more than %d ways", maxMerges)
		}
	}
	return merges, nil
}

// maxScoredBytes bounds the time it takes to cut a token in two in every way.
const maxScoredBytes = 1 << 10
