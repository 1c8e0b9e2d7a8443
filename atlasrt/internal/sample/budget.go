package sample

import "github.com/atlas-inference/atlas/atlasrt/internal/option"

// Budget bounds a stretch of what a model generates, its thoughts: behind the most tokens of them others are forced that close it. The model
// sees these as its own.
type Budget struct {
	Most    int     // tokens of thoughts, of all stretches together, before Closing is forced
	Closing []int32 // tokens that are forced one after the other
	Within  bool    // the prompt ends within thoughts
	Open    *Mark   // begins thoughts; nil: only those of the prompt count
	Shut    *Mark   // ends them
	Again   bool    // thoughts may begin more than once
}

// MaxClosing is the most tokens that may be forced.
const MaxClosing = 256

// Validate reports what is out of range as an *option.Error; vocab is the number of token ids.
func (b *Budget) Validate(vocab int32) error {
	switch {
	case b.Most < 0:
		return option.Invalid(option.ThinkingBudget, "is %d, must be at least 0", b.Most)
	case b.Shut == nil:
		return option.Invalid(option.ThinkingBudget, "has no mark that ends thoughts")
	case len(b.Closing) == 0 || len(b.Closing) > MaxClosing:
		return option.Invalid(option.ThinkingBudget, "closes with %d tokens, must be from 1 to %d", len(b.Closing), MaxClosing)
	}
	for _, token := range b.Closing {
		if token < 0 || token >= vocab {
			return option.Invalid(option.ThinkingBudget, "closes with token %d, the vocabulary has %d", token, vocab)
		}
	}
	return nil
}

// closing is how far a sequence is with its Budget.
type closing struct {
	*Budget
	within bool  // the next token is one of thoughts
	over   bool  // no more thoughts can come
	state  int32 // of the mark that is looked for
	spent  int   // tokens of thoughts
	forced int   // of Closing, those that came
	only   Entries
}

// certain is an offset that no other logit comes near to, and that stays finite when it is divided by a temperature.
const certain = 1e30

func newClosing(b *Budget) *closing {
	return &closing{Budget: b, within: b.Within, over: !b.Within && b.Open == nil,
		only: Entries{Token: []int32{0}, Bias: []float32{0}, Factor: []float32{1}, Offset: []float32{certain}}}
}

// append takes a generated token into account.
func (c *closing) append(token int32) {
	switch {
	case c.over:
	case c.due():
		if c.forced++; c.forced == len(c.Closing) {
			c.end()
		}
	case c.within:
		c.spent++
		if c.state = c.Shut.After(c.state, token); c.Shut.Found(c.state) {
			c.end()
		}
	default:
		if c.state = c.Open.After(c.state, token); c.Open.Found(c.state) {
			c.within, c.state = true, 0
		}
		c.over = c.state == Lost
	}
}

// end is behind thoughts.
func (c *closing) end() {
	c.within, c.forced, c.state = false, 0, 0
	c.over = !c.Again || c.Open == nil
}

// due tells whether the next token is forced.
func (c *closing) due() bool { return c.within && (c.forced > 0 || c.spent >= c.Most) }

// entries leave the token that is due alone: no bias can speak against it.
func (c *closing) entries() Entries {
	c.only.Token[0] = c.Closing[c.forced]
	return c.only
}

// near tells whether one of the next tokens, at least two, may be forced, whatever those before it are.
func (c *closing) near(tokens int) bool {
	switch {
	case c == nil || c.over:
		return false
	case c.within:
		return c.due() || c.spent+tokens-1 >= c.Most
	}
	return c.spent+tokens-2 >= c.Most // the first of them may begin thoughts
}
