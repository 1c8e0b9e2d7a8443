// Package quant reads what a checkpoint's quantization_config says of each module: how its weights are stored, and how activations are
// meant to be rounded before they are multiplied by them.
//
// Published lists are sloppy: they name modules that are not there, and leave out some that are stored as they were. So what they say is
// checked against the tensors and never replaces them.
package quant

import (
	"fmt"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// Form is how the weights of a module are said to be stored.
type Form int

// Forms. Those after NVFP4 are known and not served.
const (
	Unknown   Form = iota // nothing is said
	Plain                 // as elements of a float type
	FP8                   // e4m3 with a scale of the matrix or of each row
	FP8Blocks             // e4m3 with a scale of each block
	NVFP4                 // e2m1 with an e4m3 scale of each 16 columns
	MXFP4                 // e2m1 with a power of two of each 32 columns
	MXFP8                 // e4m3 with a power of two of each 32 columns
	Int4                  // whole numbers of 4 bits
	Int8                  // whole numbers of 8 bits
	Other                 // of a method that has no rules here
)

var formNames = [...]string{"unknown", "plain", "fp8", "fp8 of blocks", "nvfp4", "mxfp4", "mxfp8", "int4", "int8", "another format"}

// String is the name that errors and tables use.
func (f Form) String() string { return formNames[f] }

// Rule is what is said of one module.
type Rule struct {
	Form  Form   // of its weights
	Group int    // columns that share a scale; 0: nothing is said
	Block [2]int // rows and columns that share a scale, for FP8Blocks; zeros: nothing is said
	By    string // the part of the configuration that says so, such as `ignore "lm_head"`; "" where nothing does

	// Activations are meant to be rounded to e4m3, with a scale of each row, or of each 128 columns of a row. Both are said by methods that
	// leave it to the scales of weights.
	PerRow, Per128 bool
}

// String reads like `nvfp4 by config_groups.group_0`.
func (r Rule) String() string {
	if r.By == "" {
		return "nothing"
	}
	return r.Form.String() + " by " + r.By
}

// Rules is what a configuration says of all modules. It may be read by one goroutine at a time.
type Rules struct {
	Method        string // of quantisation, with its format, for people; "" where nothing is quantised
	KeysAndValues bool   // a scheme for quantising keys and values is given

	clauses []clause        // the first that matches counts
	rest    Rule            // of modules that none matches
	known   map[string]Rule // of modules that were asked for
}

// clause is a rule for the modules of a list.
type clause struct {
	*list
	rule Rule
}

// Of is what is said of a module, whose name has no suffix such as .weight. Nothing is said of routers, norms, embeddings and convolutions,
// which no method quantises and few lists name.
func (r *Rules) Of(name string) Rule {
	if r.Method == "" || exempt(name) {
		return Rule{}
	}
	rule, ok := r.known[name]
	if !ok {
		rule = r.find(moduleOf(name))
		r.known[name] = rule
	}
	return rule
}

func (r *Rules) find(m module) Rule {
	for _, c := range r.clauses {
		if entry, ok := c.find(m); ok {
			rule := c.rule
			if rule.By = c.key; entry != "" {
				rule.By += fmt.Sprintf(" %q", entry)
			}
			return rule
		}
	}
	return r.rest
}

// exempt tells modules that no method quantises.
func exempt(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch last {
	case "embed_tokens", "gate", "router", "shared_expert_gate", "conv1d", "norm":
		return true
	}
	return strings.HasSuffix(last, "norm")
}

// Read reads the quantization_config of a model's settings; what it cannot read is an error. It is empty where nothing is quantised.
func Read(config *weights.Config) (*Rules, error) {
	c := config.Object("quantization_config")
	r := &Rules{Method: c.StringOr("quant_method", ""), known: map[string]Rule{}}
	switch {
	case r.Method != "":
	case config.Has("quantization"): // a key of its own
		r.Method = "MLX"
	case c.Has("quant_algo"):
		r.Method = "modelopt"
	case c.Has("config_groups"):
		r.Method = "compressed-tensors"
	case c.Has("weight_block_size"):
		r.Method = "fp8"
	}
	switch r.Method {
	case "":
	case "compressed-tensors":
		r.ignore(c, exact)
		r.compressedTensors(c)
	case "modelopt", "modelopt_fp4", "modelopt_mixed":
		r.ignore(c, dotted)
		r.modelopt(c)
	case "fp8", "fbgemm_fp8":
		r.ignore(c, dotted)
		r.fp8(c)
	case "quark":
		r.ignore(c, dotted)
		r.quark(c)
	case "mxfp4":
		r.ignore(c, dotted)
		r.rest = Rule{Form: MXFP4, Group: 32, By: "quant_method " + r.Method}
	default:
		r.rest = Rule{Form: Other, By: "quant_method " + r.Method}
	}
	for _, key := range []string{"format", "quant_algo"} {
		if detail := c.StringOr(key, ""); detail != "" {
			r.Method += " " + detail
		}
	}
	return r, c.Err()
}

// ignore adds the lists of modules that are not quantised, under all the names that methods have for them.
func (r *Rules) ignore(c *weights.Config, kind kind) {
	for _, key := range []string{"ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers", "exclude"} {
		if entries := c.Strings(key); len(entries) > 0 {
			r.clauses = append(r.clauses, clause{newList(c, key, entries, kind), Rule{Form: Plain}})
		}
	}
}
