package oracle_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// row is a call of Sample for one row whose probabilities, before anything, are 1/10, 4/10, 2/10 and 3/10.
func row(b *bench, temperature, topP, minP float32, topK int32) op.Sample {
	logits := make([]float32, 0, 4)
	for _, p := range []float64{1, 4, 2, 3} {
		logits = append(logits, float32(math.Log(p)))
	}
	return op.Sample{
		Out: put[int32](b, 99), Logits: put(b, logits...), Temperature: put(b, temperature), TopP: put(b, topP), MinP: put(b, minP), TopK: put(b, topK),
		TopNSigma: put[float32](b, 0), MinEntropy: put[float32](b, 0), XTCProbability: put[float32](b, 0), XTCThreshold: put[float32](b, 0),
		Seed: put[int64](b, 1), Position: put[int32](b, 0), EditStarts: put[int32](b, 0, 0), Rows: 1, Vocab: 4,
	}
}

func TestChoices(t *testing.T) {
	b := newBench(t)
	inf := float32(math.Inf(-1))
	edit := func(x op.Sample, token int32, bias, factor, offset float32) op.Sample {
		x.EditStarts, x.EditToken, x.Edits = put[int32](b, 0, 1), put(b, token), 1
		x.EditBias, x.EditFactor, x.EditOffset = put(b, bias), put(b, factor), put(b, offset)
		return x
	}
	masked := func(x op.Sample, row int32, masks ...uint32) op.Sample {
		x.Mask, x.Masks, x.MaskRow = put(b, masks...), int32(len(masks)), put(b, row)
		return x
	}
	sigma := func(x op.Sample, n float32) op.Sample {
		x.TopNSigma = put(b, n)
		return x
	}
	calm := func(x op.Sample, h float32) op.Sample {
		x.MinEntropy = put(b, h)
		return x
	}
	xtc := func(x op.Sample, probability, threshold float32) op.Sample {
		x.XTCProbability, x.XTCThreshold = put(b, probability), put(b, threshold)
		return x
	}
	cases := []struct {
		name string
		x    op.Sample
		want []oracle.Choice
	}{
		{"greedy", row(b, 0, 1, 0, 0), []oracle.Choice{{1, 1}}},
		{"all", row(b, 1, 1, 0, 0), []oracle.Choice{{1, .4}, {3, .3}, {2, .2}, {0, .1}}},
		{"temperature", row(b, .5, 1, 0, 0), []oracle.Choice{{1, 16. / 30}, {3, 9. / 30}, {2, 4. / 30}, {0, 1. / 30}}},
		{"min p", row(b, 1, 1, .6, 0), []oracle.Choice{{1, 4. / 7}, {3, 3. / 7}}},
		{"top k", row(b, 1, 1, 0, 3), []oracle.Choice{{1, 4. / 9}, {3, 3. / 9}, {2, 2. / 9}}},
		{"top p", row(b, 1, .65, 0, 0), []oracle.Choice{{1, 4. / 7}, {3, 3. / 7}}},
		{"top p 0", row(b, 1, 0, 0, 0), []oracle.Choice{{1, 1}}},
		{"top p counts what top k left", row(b, 1, .75, 0, 3), []oracle.Choice{{1, 4. / 7}, {3, 3. / 7}}},
		{"mask", masked(row(b, 1, 1, 0, 0), 0, 0b0101), []oracle.Choice{{2, 2. / 3}, {0, 1. / 3}}},
		{"mask of nothing", masked(row(b, 1, 1, 0, 0), 0, 0), nil},
		{"greedy mask", masked(row(b, 0, 1, 0, 0), 0, 0b1101), []oracle.Choice{{3, 1}}},
		{"second mask", masked(row(b, 0, 1, 0, 0), 1, 0, 0b0101), []oracle.Choice{{2, 1}}},
		{"another row's mask", masked(row(b, 0, 1, 0, 0), -1, 0), []oracle.Choice{{1, 1}}},
		{"bias rules out", edit(row(b, 0, 1, 0, 0), 1, inf, 1, 0), []oracle.Choice{{3, 1}}},
		{"penalty of a positive logit", edit(row(b, 0, 1, 0, 0), 1, 0, 2, 0), []oracle.Choice{{3, 1}}},
		{"penalty of a negative logit", edit(row(b, 0, 1, 0, 0), 0, -1, 0.5, 2), []oracle.Choice{{0, 1}}},
		{"offset", edit(row(b, 0, 1, 0, 0), 0, 0, 1, 2), []oracle.Choice{{0, 1}}},
		{"edit of no token", edit(row(b, 0, 1, 0, 0), 4, 9, 1, 0), []oracle.Choice{{1, 1}}},
		{"top n sigma", sigma(row(b, 1, 1, 0, 0), 1), []oracle.Choice{{1, 4. / 7}, {3, 3. / 7}}}, // σ of the logits is 0.51, and token 2 lies 0.69 lower
		{"hot top n sigma", sigma(row(b, .5, 1, 0, 0), 2), []oracle.Choice{{1, 16. / 29}, {3, 9. / 29}, {2, 4. / 29}}},
		{"top n sigma of what the mask leaves", sigma(masked(row(b, 1, 1, 0, 0), 0, 0b0101), 1.9), []oracle.Choice{{2, 1}}},
		{"top n sigma at temperature 0", sigma(row(b, 0, 1, 0, 0), 9), []oracle.Choice{{1, 1}}},
		{"less entropy", calm(row(b, .1, 1, 0, 0), 1.29), []oracle.Choice{{1, 1}}}, // it has 1.28 nats at temperature 1
		{"more entropy", calm(row(b, 1, .65, 0, 0), 1.27), []oracle.Choice{{1, 4. / 7}, {3, 3. / 7}}},
		{"xtc", xtc(row(b, 1, 1, 0, 0), 1, .15), []oracle.Choice{{2, 2. / 3}, {0, 1. / 3}}},
		{"xtc of all", xtc(row(b, 1, 1, 0, 0), 1, .05), []oracle.Choice{{0, 1}}},
		{"xtc of one", xtc(row(b, 1, 1, 0, 0), 1, .35), []oracle.Choice{{1, .4}, {3, .3}, {2, .2}, {0, .1}}},
		{"xtc of what top k left", xtc(row(b, 1, 1, 0, 3), 1, .3), []oracle.Choice{{3, 3. / 5}, {2, 2. / 5}}},
		{"no xtc", xtc(row(b, 1, 1, 0, 0), 0, .2), []oracle.Choice{{1, .4}, {3, .3}, {2, .2}, {0, .1}}},
		{"min p above one", row(b, 1, .5, 2, 2), []oracle.Choice{}},
	}
	for _, c := range cases {
		got := oracle.Choices(c.x, 0)
		same := len(got) == len(c.want)
		for i := 0; same && i < len(got); i++ {
			same = got[i].Token == c.want[i].Token && math.Abs(got[i].Probability-c.want[i].Probability) < 1e-6
		}
		if !same {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		b.Sample(b.stream, c.x)
		drawn := get[int32](b, c.x.Out, 1)[0]
		if possible := drawn == -1 && len(got) == 0; !possible && !contains(got, drawn) {
			t.Errorf("%s: drew %d, want one of %v", c.name, drawn, got)
		}
	}
}

func contains(choices []oracle.Choice, token int32) bool {
	for _, c := range choices {
		if c.Token == token {
			return true
		}
	}
	return false
}

func TestTiesAndNumbersThatAreNot(t *testing.T) {
	b := newBench(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cases := []struct {
		name   string
		logits []float32
		want   int32
	}{
		{"tie", []float32{1, 3, 3, 2}, 1},
		{"not finite", []float32{nan, inf, -inf, -5}, 3},
		{"nothing finite", []float32{nan, inf, -inf, nan}, -1},
	}
	for _, c := range cases {
		x := row(b, 0, 1, 0, 0)
		x.Logits = put(b, c.logits...)
		b.Sample(b.stream, x)
		if got := get[int32](b, x.Out, 1)[0]; got != c.want {
			t.Errorf("%s: logits %v gave %d, want %d", c.name, c.logits, got, c.want)
		}
	}
}

// Draws follow the distribution: what top-p leaves is 4/7 and 3/7.
func TestDrawsFollowTheDistribution(t *testing.T) {
	b := newBench(t)
	const draws = 2000
	x, counts := row(b, 1, .65, 0, 0), map[int32]int{}
	for p := range int32(draws) {
		x.Position = put(b, p)
		b.Sample(b.stream, x)
		counts[get[int32](b, x.Out, 1)[0]]++
	}
	if share := float64(counts[1]) / draws; len(counts) != 2 || math.Abs(share-4./7) > .04 {
		t.Errorf("got %v of %d draws, want 4/7 of token 1 and else token 3", counts, draws)
	}
	if first, again := oracle.Choices(x, 0), oracle.Choices(x, 0); !reflect.DeepEqual(first, again) {
		t.Errorf("the same call gave %v and then %v", first, again)
	}
}
