package weights

import (
	"fmt"
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
	hfExpertModules = map[string]string{
		"ffn_gate_exps": "gate_proj",
		"ffn_up_exps":   "up_proj",
		"ffn_down_exps": "down_proj",
	}
)

// place says where a HuggingFace tensor lies in a GGUF file.
type place struct {
	name   string // GGUF's
	expert int    // which slice of the outermost dimension; -1: the whole tensor
	heads  int    // above 0: rows are stored in pairs for rotary embeddings, this many heads; see unpermute
}

// hfNames finds the HuggingFace name of every tensor. What has none keeps its own, as rope_freqs.weight does.
func hfNames(file *gguf.File, heads pairedHeads) (map[string]place, error) {
	places := map[string]place{}
	add := func(name string, p place) error {
		if other, ok := places[name]; ok {
			return fmt.Errorf("tensors %s and %s are both %s", other.name, p.name, name)
		}
		places[name] = p
		return nil
	}
	for _, name := range file.Names() {
		stem, kind := name, "" // kind is weight or bias
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			stem, kind = name[:dot], name[dot:]
		}
		layer, module := splitLayer(stem)
		var err error
		switch {
		case layer == "" && hfModules[stem] != "":
			err = add(hfModules[stem]+kind, place{name, -1, 0})
		case layer != "" && hfLayerModules[module] != "":
			err = add("model.layers."+layer+"."+hfLayerModules[module]+kind, place{name, -1, heads.of(module)})
		case layer != "" && hfExpertModules[module] != "":
			t, _ := file.Tensor(name)
			if len(t.Shape) != 3 || t.Shape[0] > maxExperts {
				return nil, fmt.Errorf("tensor %v: wanted [experts, rows, columns] with at most %d experts", t.Info, maxExperts)
			}
			for expert := 0; expert < int(t.Shape[0]) && err == nil; expert++ {
				err = add(fmt.Sprintf("model.layers.%s.mlp.experts.%d.%s%s", layer, expert, hfExpertModules[module], kind), place{name, expert, 0})
			}
		default:
			err = add(name, place{name, -1, 0})
		}
		if err != nil {
			return nil, err
		}
	}
	return places, nil
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

// pairedHeads are the heads of Q and of K where their rows are stored in pairs, else zeros.
type pairedHeads struct{ query, key int }

func (h pairedHeads) of(module string) int {
	switch module {
	case "attn_q":
		return h.query
	case "attn_k":
		return h.key
	}
	return 0
}
