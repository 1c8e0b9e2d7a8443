package weights

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

// maxExperts bounds the experts of a stacked tensor, each of which gets a name.
const maxExperts = 4096

// hfModules gives HuggingFace's module for GGUF's; inside a layer, relative to it.
var (
	hfModules = map[string]string{
		"token_embd":  "model.embed_tokens",
		"output_norm": "model.norm",
		"output":      "lm_head",
	}
	hfLayerModules = map[string]string{
		"attn_norm":    "input_layernorm",
		"attn_q":       "self_attn.q_proj",
		"attn_k":       "self_attn.k_proj",
		"attn_v":       "self_attn.v_proj",
		"attn_output":  "self_attn.o_proj",
		"attn_q_norm":  "self_attn.q_norm",
		"attn_k_norm":  "self_attn.k_norm",
		"ffn_norm":     "post_attention_layernorm",
		"ffn_gate":     "mlp.gate_proj",
		"ffn_up":       "mlp.up_proj",
		"ffn_down":     "mlp.down_proj",
		"ffn_gate_inp": "mlp.gate",
	}
	hfExpertModules = map[string][]string{
		"ffn_gate_exps":    {"gate_proj"},
		"ffn_up_exps":      {"up_proj"},
		"ffn_down_exps":    {"down_proj"},
		"ffn_gate_up_exps": {"gate_proj", "up_proj"}, // in this order, rows of the same number
	}
)

// place says where a HuggingFace tensor lies in a GGUF file.
type place struct {
	name   string  // GGUF's
	expert int     // which slice of the outermost dimension; -1: the whole tensor
	rows   []rows  // which of its rows, one choice after the other; nil: all
	heads  int     // above 0: rows are stored in pairs for rotary embeddings, this many heads; see unpermute
	shape  []int64 // by HuggingFace
}

// namer finds HuggingFace's names.
type namer struct {
	file   *gguf.File
	arch   architecture
	sizes  sizes
	places map[string]place
}

// sizes are what rows are told apart by.
type sizes struct {
	layers              int // those that predict further tokens left out
	predicting          int // layers behind them that do
	queries, keys, head int // heads of attention, and the elements of one
	linear              linearSizes
}

// hfNames finds the HuggingFace name of every tensor. What has none keeps its own, as rope_freqs.weight does.
func hfNames(file *gguf.File, arch architecture, s sizes) (map[string]place, error) {
	n := namer{file, arch, s, map[string]place{}}
	for _, name := range file.Names() {
		if err := n.find(name); err != nil {
			return nil, err
		}
	}
	return n.places, nil
}

// add keeps where a tensor is.
func (n *namer) add(name string, p place) error {
	if other, ok := n.places[name]; ok {
		return fmt.Errorf("tensors %s and %s are both %s", other.name, p.name, name)
	}
	n.places[name] = p
	return nil
}

// find names one of the file's tensors.
func (n *namer) find(name string) error {
	t, _ := n.file.Tensor(name)
	stem, kind := name, "" // kind is weight or bias
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 && (name[dot:] == ".weight" || name[dot:] == ".bias") {
		stem, kind = name[:dot], name[dot:]
	}
	whole := place{name: name, expert: -1, shape: t.Shape}
	layer, module := splitLayer(stem)
	if layer == "" {
		if hf := hfModules[stem]; hf != "" {
			return n.add(hf+kind, whole)
		}
		return n.add(name, whole)
	}
	prefix := "model.layers." + layer + "."
	if n.arch.hybrid {
		number, _ := strconv.Atoi(layer)
		if later := number - n.sizes.layers; later >= 0 && later < n.sizes.predicting {
			if hf := hfPredictionModules[module]; hf != "" {
				return n.add("mtp."+hf+kind, whole)
			}
			prefix = fmt.Sprintf("mtp.layers.%d.", later)
		}
		if done, err := n.hybrid(layer, prefix, module, kind, whole); done || err != nil {
			return err
		}
	}
	switch {
	case hfLayerModules[module] != "":
		whole.heads = n.paired(module)
		return n.add(prefix+hfLayerModules[module]+kind, whole)
	case hfExpertModules[module] != nil:
		return n.experts(prefix, module, kind, whole)
	}
	return n.add(name, whole)
}

// experts names the matrices of a stack, one for each expert, or several of the same size.
func (n *namer) experts(prefix, module, kind string, stack place) error {
	parts := hfExpertModules[module]
	shape := stack.shape
	if len(shape) != 3 || shape[0] > maxExperts || shape[1]%int64(len(parts)) != 0 {
		t, _ := n.file.Tensor(stack.name)
		return fmt.Errorf("tensor %v: wanted [experts, rows, columns] with at most %d experts and rows for %s", t.Info, maxExperts, strings.Join(parts, " and "))
	}
	each := int(shape[1]) / len(parts)
	for expert := range int(shape[0]) {
		for i, part := range parts {
			p := place{name: stack.name, expert: expert, shape: []int64{int64(each), shape[2]}}
			if len(parts) > 1 && each > 0 {
				p.rows = []rows{{i * each, each, int(shape[1])}}
			}
			if err := n.add(fmt.Sprintf("%smlp.experts.%d.%s%s", prefix, expert, part, kind), p); err != nil {
				return err
			}
		}
	}
	return nil
}

// paired gives the heads of Q and of K where their rows are stored in pairs, else 0.
func (n *namer) paired(module string) int {
	switch {
	case n.arch.pairedRows && module == "attn_q":
		return n.sizes.queries
	case n.arch.pairedRows && module == "attn_k":
		return n.sizes.keys
	}
	return 0
}

// split names the parts of a tensor's rows.
func (n *namer) split(whole place, parts ...namedRows) error {
	for _, part := range parts {
		p := whole
		p.rows = part.rows
		count := 0
		for _, r := range p.rows {
			if len(p.shape) == 0 || r.every <= 0 || r.first < 0 || r.each <= 0 || r.each > r.every-r.first || int(p.shape[0])%r.every != 0 || p.shape[0] == 0 {
				t, _ := n.file.Tensor(p.name)
				return fmt.Errorf("tensor %v: its rows are not those that the metadata's heads have", t.Info)
			}
			count += int(p.shape[0]) / r.every * r.each
		}
		p.shape = slices.Concat([]int64{int64(count)}, p.shape[1:])
		if err := n.add(part.name, p); err != nil {
			return err
		}
	}
	return nil
}

// splitLayer takes blk.7.attn_q apart: "7" and "attn_q". The layer is empty when the name is not of this form.
func splitLayer(stem string) (layer, module string) {
	rest, ok := strings.CutPrefix(stem, "blk.")
	if !ok {
		return "", ""
	}
	layer, module, _ = strings.Cut(rest, ".")
	if n, err := strconv.ParseUint(layer, 10, 16); err != nil || strconv.FormatUint(n, 10) != layer {
		return "", ""
	}
	return layer, module
}
