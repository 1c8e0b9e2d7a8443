package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// draftVocab is few enough tokens that each comes often.
const draftVocab = 12

// chances are the probabilities of tokens with such logits, at temperature 1.
func chances(logits []float32) (p []float64) {
	sum := 0.0
	for _, z := range logits {
		sum += math.Exp(float64(z))
	}
	for _, z := range logits {
		p = append(p, math.Exp(float64(z))/sum)
	}
	return p
}

// unlikely is χ² of counts against probabilities, over the value that one in a hundred thousand draws of such counts exceeds, by the cube root
// approximation of Wilson and Hilferty.
func unlikely(counts []int, p []float64) float64 {
	total, sum := 0, 0.0
	for _, n := range counts {
		total += n
	}
	for i, n := range counts {
		want := p[i] * float64(total)
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	k := float64(len(counts) - 1)
	const z = 4.265
	return sum / (k * math.Pow(1-2/(9*k)+z*math.Sqrt(2/(9*k)), 3))
}

// A draft is kept as often as its token is likely, and what comes in its place, and behind it, has the model's own distribution, as the rejection
// rule for certain drafts says: counted over as many draws as show a difference of a hundredth.
func TestDraftsKeepTheDistribution(t *testing.T) {
	test := func(t *testing.T, target *instance.Target) {
		const chunks, rounds = 1000, 120
		r := rand.New(rand.NewPCG(7, 8))
		first, second := make([]float32, draftVocab), make([]float32, draftVocab) // logits behind the prompt, and behind the draft
		for i := range first {
			first[i], second[i] = float32(2*r.NormFloat64()), float32(2*r.NormFloat64())
		}
		draft := int32(3)
		p, q := chances(first), chances(second)
		firsts, seconds, kept := make([]int, draftVocab), make([]int, draftVocab), 0
		for round := range int64(rounds) {
			counts, draws := sampleAndAccept(t, target, first, second, draft, chunks, round)
			for n := range chunks {
				firsts[draws[2*n]]++
				if counts[n] == 2 {
					kept++
					seconds[draws[2*n+1]]++
				}
				if (counts[n] == 2) != (draws[2*n] == draft) || counts[n] < 1 || counts[n] > 2 {
					t.Fatalf("draws %v behind draft %d: %d count", draws[2*n:2*n+2], draft, counts[n])
				}
			}
		}
		if x := unlikely(firsts, p); !(x < 1) {
			t.Errorf("first tokens: χ² is %.2f times what it may be; got %v of %d, want shares %.4v", x, firsts, chunks*rounds, p)
		}
		if x := unlikely(seconds, q); !(x < 1) {
			t.Errorf("tokens behind drafts that were kept: χ² is %.2f times what it may be; got %v of %d, want shares %.4v", x, seconds, kept, q)
		}
		if got, want := float64(kept)/(chunks*rounds), p[draft]; math.Abs(got-want) > 5*math.Sqrt(want/(chunks*rounds)) {
			t.Errorf("a draft of probability %.4f was kept in %.4f of all cases", want, got)
		}
	}
	t.Run("oracle", func(t *testing.T) { test(t, onOracle(op.F32)) })
	eachHardware(t, false, test)
}

// sampleAndAccept draws two tokens for each of so many chunks, behind a prompt and behind a draft, and counts those that count.
func sampleAndAccept(t *testing.T, target *instance.Target, first, second []float32, draft int32, chunks int, round int64) (counts, draws []int32) {
	t.Helper()
	samples := 2 * chunks
	q, err := target.Device.Stream(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	place := func(words []int32) op.Ptr {
		p, err := target.Device.Alloc(int64(4 * max(len(words), 1)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { target.Device.Free(p) })
		bytes := make([]byte, 0, 4*len(words))
		for _, w := range words {
			bytes = binary.LittleEndian.AppendUint32(bytes, uint32(w))
		}
		if err := target.Device.CopyIn(p, bytes); err != nil {
			t.Fatal(err)
		}
		return p
	}
	read := func(p op.Ptr, n int) (words []int32) {
		bytes := make([]byte, 4*n)
		if err := target.Device.CopyOut(bytes, p); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			words = append(words, int32(binary.LittleEndian.Uint32(bytes[4*i:])))
		}
		return words
	}
	var logits, ones, zeros, seeds, positions, tokens, index, starts []int32
	for n := range int32(chunks) {
		for _, z := range append(append([]float32{}, first...), second...) {
			logits = append(logits, int32(math.Float32bits(z)))
		}
		one := int32(math.Float32bits(1))
		ones, zeros, tokens = append(ones, one, one), append(zeros, 0, 0), append(tokens, 0, draft)
		for j := range int32(2) {
			seed := round*int64(chunks) + int64(n)
			seeds, positions, index = append(seeds, int32(seed), int32(seed>>32)), append(positions, 10+j), append(index, 2*n+j)
		}
		starts = append(starts, 2*n)
	}
	starts = append(starts, int32(samples))
	zero := place(append(zeros, 0))
	out, position, count := place(zeros), place(positions), place(zeros)
	target.Set.Sample(q, op.Sample{Out: out, Logits: place(logits), Temperature: place(ones), TopP: place(ones), MinP: zero, TopNSigma: zero, MinEntropy: zero, XTCProbability: zero, XTCThreshold: zero, TopK: zero,
		Seed: place(seeds), Position: position, EditStarts: zero, Rows: int32(samples), Vocab: int32(len(first))})
	target.Set.Accept(q, op.Accept{Counts: count, Next: place(zeros), Last: place(zeros), Draws: out, Behind: place(zeros), Starts: place(starts),
		Index: place(index), Tokens: place(tokens), Position: position, Rows: int32(samples), Samples: int32(samples), Chunks: int32(chunks)})
	if err := q.Sync(); err != nil {
		t.Fatal(err)
	}
	return read(count, chunks), read(out, samples)
}
