package quant

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// compressedTensors reads groups of modules, each with its scheme. A module that a group names counts as its, also where another group has
// its class.
func (r *Rules) compressedTensors(c *weights.Config) {
	r.KeysAndValues = c.Has("kv_cache_scheme")
	groups := c.Object("config_groups")
	var classes []clause
	for _, name := range groups.Keys() {
		g := groups.Object(name)
		rule, key := compressedGroup(g), "config_groups."+name
		targets := g.Strings("targets")
		if len(targets) == 0 {
			targets = []string{"Linear"}
		}
		l := newList(g, "targets", targets, exact)
		l.key = key
		if l.linear {
			classes = append(classes, clause{&list{key: key, linear: true}, rule})
			l.linear = false
		}
		r.clauses = append(r.clauses, clause{l, rule})
	}
	r.clauses = append(r.clauses, classes...)
	if len(groups.Keys()) > 0 {
		r.rest = Rule{Form: Plain, By: "config_groups, which have no such target"}
	}
}

// compressedGroup is the rule of a group.
func compressedGroup(g *weights.Config) Rule {
	w := g.Object("weights")
	kind, bits, strategy := w.StringOr("type", ""), w.IntOr("num_bits", 0), w.StringOr("strategy", "")
	rule := Rule{Group: max(0, w.IntOr("group_size", 0))} // -1: there are no groups
	switch {
	case kind == "float" && bits == 4 && (rule.Group == 32 || strings.HasPrefix(g.StringOr("format", ""), "mxfp4")):
		rule.Form = MXFP4
	case kind == "float" && bits == 4:
		rule.Form = NVFP4
	case kind == "float" && bits == 8 && strategy == "block":
		rule.Form = FP8Blocks
		rule.Block = blockStructure(w)
	case kind == "float" && bits == 8 && strategy == "group" && rule.Group == 32:
		rule.Form = MXFP8
	case kind == "float" && bits == 8:
		rule.Form = FP8
	case kind == "int" && bits == 4:
		rule.Form = Int4
	case kind == "int" && bits == 8:
		rule.Form = Int8
	case kind != "" || bits != 0:
		rule.Form = Other
	}
	in := g.Object("input_activations")
	if in.StringOr("type", "") == "float" && in.IntOr("num_bits", 0) == 8 && in.Any("dynamic") == true {
		switch strategy := in.StringOr("strategy", ""); {
		case strategy == "group" && in.IntOr("group_size", 0) == 128:
			rule.Per128 = true
		case strategy == "token":
			rule.PerRow = true
		}
	}
	return rule
}

// blockStructure is the size of blocks, which stands in an array or in a text such as "128x128"; zeros: nothing is said.
func blockStructure(w *weights.Config) [2]int {
	const key = "block_structure"
	if text, ok := w.Any(key).(string); ok {
		var rows, cols int
		if n, err := fmt.Sscanf(text, "%dx%d", &rows, &cols); n != 2 || err != nil {
			w.Fail(key, "is %q, wanted rows and columns such as 128x128", text)
			return [2]int{}
		}
		return block(w, key, []int{rows, cols})
	}
	if !w.Has(key) {
		return [2]int{}
	}
	return block(w, key, w.Ints(key))
}

// block is the size of blocks that a key gives.
func block(c *weights.Config, key string, size []int) [2]int {
	switch {
	case len(size) != 2:
		c.Fail(key, "has %d numbers, wanted rows and columns", len(size))
	case min(size[0], size[1]) < 1:
		c.Fail(key, "is %v, wanted rows and columns of at least 1", size)
	default:
		return [2]int(size)
	}
	return [2]int{}
}

// modelopt reads one algorithm for all modules that no list leaves out, or a table of modules.
func (r *Rules) modelopt(c *weights.Config) {
	r.KeysAndValues = c.Has("kv_cache_scheme") || c.StringOr("kv_cache_quant_algo", "") != ""
	algorithm, group := c.StringOr("quant_algo", ""), c.IntOr("group_size", 0)
	if algorithm == "" {
		return
	}
	if algorithm != "MIXED_PRECISION" {
		r.rest = modeloptRule(algorithm, group)
		r.rest.By = "quant_algo " + algorithm
		return
	}
	layers := c.Object("quantized_layers")
	modules := map[Rule][]string{}
	for _, name := range layers.Keys() {
		layer := layers.Object(name)
		rule := modeloptRule(layer.StringOr("quant_algo", ""), layer.IntOr("group_size", 0))
		modules[rule] = append(modules[rule], name)
	}
	for _, rule := range slices.SortedFunc(maps.Keys(modules), func(a, b Rule) int { return strings.Compare(modules[a][0], modules[b][0]) }) {
		r.clauses = append(r.clauses, clause{newList(c, "quantized_layers", modules[rule], dotted), rule})
	}
	if len(modules) > 0 {
		r.rest = Rule{Form: Plain, By: "quantized_layers, which have no such module"}
	}
}

// modeloptRule is what an algorithm means.
func modeloptRule(algorithm string, group int) Rule {
	rule := Rule{Form: Other, Group: group}
	switch algorithm {
	case "":
		rule.Form = Unknown
	case "FP8":
		rule.Form = FP8
	case "FP8_PER_CHANNEL_PER_TOKEN":
		rule.Form, rule.PerRow = FP8, true
	case "FP8_PB_WO":
		rule.Form, rule.Group = FP8Blocks, 0
	case "NVFP4", "NVFP4_AWQ", "W4A16_NVFP4", "W4A8_NVFP4_FP8":
		rule.Form = NVFP4
	case "MXFP4", "W4A8_MXFP4_FP8":
		rule.Form = MXFP4
	case "MXFP8":
		rule.Form = MXFP8
	case "INT4_AWQ", "W4A16_AWQ", "W4A8_AWQ":
		rule.Form = Int4
	case "INT8_SQ", "W8A8_SQ_PER_CHANNEL", "W8A16":
		rule.Form = Int8
	}
	return rule
}

// fp8 reads one scheme for all modules that no list leaves out.
func (r *Rules) fp8(c *weights.Config) {
	r.rest = Rule{Form: FP8, By: "quant_method " + r.Method}
	if key := "weight_block_size"; c.Has(key) {
		r.rest.Form, r.rest.Block = FP8Blocks, block(c, key, c.Ints(key))
	}
	if c.StringOr("quant_method", "") == "fp8" && c.StringOr("activation_scheme", "dynamic") == "dynamic" { // the only other is static
		r.rest.PerRow, r.rest.Per128 = true, true
	}
}

// quark reads one scheme for all modules that no list leaves out; schemes of single layers are not looked at, as none is served.
func (r *Rules) quark(c *weights.Config) {
	w := c.Object("global_quant_config").Object("weight")
	r.rest = Rule{Form: Other, Group: max(0, w.IntOr("group_size", 0)), By: "global_quant_config"}
	switch dtype := w.StringOr("dtype", ""); {
	case dtype == "fp4":
		r.rest.Form = MXFP4
	case dtype == "fp8_e4m3" && w.StringOr("qscheme", "") != "per_group":
		r.rest.Form = FP8
	case strings.HasSuffix(dtype, "int4"):
		r.rest.Form = Int4
	case strings.HasSuffix(dtype, "int8"):
		r.rest.Form = Int8
	}
}
