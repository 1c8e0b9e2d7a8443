package optest

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// stretch is the rows that one sequence brings to a step of a recurrent layer.
type stretch struct {
	rows, position   int // position is that of the first row
	drafts, accepted int // see op.Recurrent
	padding          bool
}

// stretches gives a recurrent case its sequences, and so many rows of padding at its end. Slots are in no order, and two belong to nobody.
func (c *Case) stretches(batch []stretch, padding int) *Case {
	rng := rand.New(rand.NewPCG(uint64(len(c.Name)), uint64(len(batch))))
	free := rng.Perm(len(batch) + 2)
	starts, rows := []int32{0}, 0
	var lengths, slots, drafts, accepted []int32
	for i, s := range batch {
		rows += s.rows
		slot := int32(free[i])
		if s.padding {
			slot = -1 - int32(i)
		}
		starts, lengths, slots = append(starts, int32(rows)), append(lengths, int32(s.position+s.rows)), append(slots, slot)
		drafts, accepted = append(drafts, int32(s.drafts)), append(accepted, int32(s.accepted))
	}
	c.size("Rows", rows+padding)
	c.size("Seqs", len(batch))
	c.size("Slots", len(free))
	set(c, "Starts", starts)
	set(c, "Lengths", lengths)
	set(c, "Slot", slots)
	if c.args.FieldByName("Drafts").IsValid() && c.number("MaxDrafts") > 0 {
		set(c, "Drafts", drafts)
		set(c, "Accepted", accepted)
		c.with("Journal", "Drafts", "Accepted")
	}
	return c
}

// size sets an integer of the case's struct.
func (c *Case) size(name string, n int) { c.args.FieldByName(name).SetInt(int64(n)) }

// number is an integer of the case's struct.
func (c *Case) number(name string) int { return int(c.args.FieldByName(name).Int()) }

// normals are n normally distributed numbers of some deviation.
func normals(rng *rand.Rand, n int, deviation float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = deviation * rng.NormFloat64()
	}
	return values
}

// conv makes a case of a convolution, whose sums have a deviation of about one.
func conv(name string, x op.CausalConv, batch []stretch, padding int) *Case {
	x.InPitch = max(x.InPitch, x.Channels)
	c := of(name, x).stretches(batch, padding)
	c.numbers["Filter"] = normals(c.random(0), int(x.Channels*x.Width), 1/math.Sqrt(float64(x.Width)))
	return c
}

// delta makes a case of the delta rule.
func delta(name string, x op.DeltaRule, batch []stretch, padding int) *Case {
	x.GatesPitch = max(x.GatesPitch, 2*x.ValueHeads)
	c := of(name, x).stretches(batch, padding).decays().states()
	rng, values, pitch := c.random(1), int(x.ValueHeads), int(x.GatesPitch)
	var gates []float64
	for range c.number("Rows") {
		row := slices.Repeat([]float64{math.NaN()}, pitch)
		copy(row, gatesOf(rng, values))
		gates = append(gates, row...)
	}
	c.numbers["Gates"] = gates[:max(len(gates)-pitch+2*values, 0)]
	return c
}

// deltaNet makes a case of the layer that holds the convolution, the delta rule and the norm.
func deltaNet(name string, x op.DeltaNet, batch []stretch, padding int) *Case {
	c := of(name, x).stretches(batch, padding).decays().states()
	rng, values := c.random(1), int(x.ValueHeads)
	channels := 2*int(x.KeyHeads*x.KeyDim) + values*int(x.ValueDim)
	c.numbers["Filter"] = normals(rng, channels*int(x.Width), 2/math.Sqrt(float64(x.Width)))
	for range c.number("Rows") {
		c.numbers["In"] = append(c.numbers["In"], normals(rng, channels+values*int(x.ValueDim), 1)...)
		c.numbers["In"] = append(c.numbers["In"], gatesOf(rng, values)...)
	}
	return c
}

// gatesOf is b and a of a row. Some a are so large that the state nearly vanishes.
func gatesOf(rng *rand.Rand, values int) []float64 {
	gates := normals(rng, 2*values, 1.5)
	for i := values; i < len(gates); i++ {
		if rng.IntN(40) == 0 {
			gates[i] += 6
		}
	}
	return gates
}

// decays makes the decay and bias of each head as models have them: α is 0.8 to 1 for most heads and rows.
func (c *Case) decays() *Case {
	rng := c.random(2)
	for range c.number("ValueHeads") {
		c.numbers["Decay"] = append(c.numbers["Decay"], -math.Exp(rng.Float64()*math.Log(16)))
		c.numbers["Bias"] = append(c.numbers["Bias"], -6+3*rng.Float64())
	}
	return c
}

// states makes states of the size that they keep over many rows, and journals.
func (c *Case) states() *Case {
	rng := c.random(3)
	keys, values, keyDim, valueDim, slots := c.number("KeyHeads"), c.number("ValueHeads"), c.number("KeyDim"), c.number("ValueDim"), c.number("Slots")
	c.numbers["State"] = normals(rng, slots*values*valueDim*keyDim, 2/math.Sqrt(float64(keyDim)))
	if !c.given["Journal"] {
		return c
	}
	var journal []float64
	for range slots * (2*c.number("MaxDrafts") + 1) {
		journal = append(journal, normals(rng, keys*keyDim, 1/math.Sqrt(float64(keyDim)))...)
		journal = append(journal, normals(rng, values*valueDim, 0.5)...)
		for range values {
			journal = append(journal, 0.8+0.2*rng.Float64())
		}
	}
	c.numbers["Journal"] = journal
	return c
}
