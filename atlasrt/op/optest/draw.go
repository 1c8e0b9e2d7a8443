package optest

import (
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// drawMargin is how far u may lie outside a token's part of the cumulative distribution for the token to count as right: sums of 150000
// probabilities in f32 are not more exact.
const drawMargin = 1e-4

// forgive replaces drawn tokens that are within the margin by those that the oracle drew.
func forgive(draws [][]oracle.Choice, before contents, want, got []byte) {
	seeds, positions := get[int64](before["Seed"]), get[int32](before["Position"])
	tokens := get[int32](got)
	for r, choices := range draws {
		if acceptable(choices, float64(op.Uniform(seeds[r], positions[r])), tokens[r]) {
			copy(got[4*r:4*r+4], want[4*r:])
		}
	}
}

// acceptable reports whether u lies in the token's part of the cumulative distribution, or within the margin of it.
func acceptable(choices []oracle.Choice, u float64, token int32) bool {
	sum := 0.0
	for _, c := range choices {
		if c.Token == token {
			return sum <= u+drawMargin && sum+c.Probability >= u-drawMargin
		}
		sum += c.Probability
	}
	return len(choices) == 0 && token == -1
}
