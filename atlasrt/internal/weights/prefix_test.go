package weights

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// decoderOf lists the tensors of a decoder of one layer under a prefix.
func decoderOf(prefix string) []string {
	return []string{prefix + "embed_tokens.weight", prefix + "layers.0.mlp.up_proj.weight", prefix + "norm.weight"}
}

func TestPrefix(t *testing.T) {
	const all = "lm_head.weight model.embed_tokens.weight model.layers.0.mlp.up_proj.weight model.norm.weight"
	headless := strings.TrimPrefix(all, "lm_head.weight ")
	cases := []struct {
		name  string
		files []string // tensors
		want  string   // names that can be asked for
		note  string
		err   string
	}{
		{"as HuggingFace names them", append(decoderOf("model."), "lm_head.weight"), all, "", ""},
		{"none", decoderOf(""), headless, "tensors are named embed_tokens.weight", ""},
		{"none, with a head", append(decoderOf(""), "lm_head.weight"), all, "tensors are named embed_tokens.weight", ""},
		{"language model", append(decoderOf("language_model.model."), "language_model.lm_head.weight"), all, "tensors are named language_model.model.embed_tokens.weight", ""},
		{"language model inside", append(decoderOf("model.language_model."), "lm_head.weight"), all, "tensors are named model.language_model.", ""},
		{"compiled", append(decoderOf("_orig_mod.model."), "_orig_mod.lm_head.weight"), all, "tensors are named _orig_mod.model.", ""},
		{"transformer", append(decoderOf("transformer."), "lm_head.weight"), all, "tensors are named transformer.", ""},
		{"none, with scales and others", append(decoderOf(""), "layers.0.mlp.up_proj.weight_scale", "visual.x"),
			headless[:len("model.embed_tokens.weight model.layers.0.mlp.up_proj.weight")] + " model.layers.0.mlp.up_proj.weight_scale model.norm.weight visual.x", "tensors are named", ""},
		{"a draft beside", append(decoderOf("model."), decoderOf("draft.model.")...), "draft.model.embed_tokens.weight draft.model.layers.0.mlp.up_proj.weight draft.model.norm.weight " + headless, "", ""},
		{"a head that drafts with an embedding of its own", append(decoderOf("model.language_model."), decoderOf("mtp.")...), headless + " mtp.embed_tokens.weight mtp.layers.0.mlp.up_proj.weight mtp.norm.weight",
			"tensors are named model.language_model.", ""},
		{"such a head alone", decoderOf("mtp."), "mtp.embed_tokens.weight mtp.layers.0.mlp.up_proj.weight mtp.norm.weight", "", ""},
		{"two models", append(decoderOf("encoder."), decoderOf("decoder.")...), "", "", `begin with "decoder.", "encoder."`},
		{"two heads", append(decoderOf("language_model.model."), "language_model.lm_head.weight", "lm_head.weight"), "", "", "would both be lm_head.weight"},
		{"no decoder", []string{"x.embed_tokens.weight", "y.norm.weight"}, "x.embed_tokens.weight y.norm.weight", "", ""},
		{"part of a word", decoderOf("un"), "unembed_tokens.weight unlayers.0.mlp.up_proj.weight unnorm.weight", "", ""},
	}
	for _, c := range cases {
		path := folderOf(t, map[string]string{"config.json": "{}", "model.safetensors": shards(t, c.files...)})
		checkpoint := opened(t, c.name, path, c.want, c.note, c.err)
		if checkpoint == nil {
			continue
		}
		for _, name := range checkpoint.Unused() {
			info, ok := checkpoint.Info(name)
			x, err := checkpoint.Tensor(name)
			if !ok || info.Name != name || err != nil || x.Name != name || len(x.Data) != 2 {
				t.Errorf("%s: %s: %v, %v, %v", c.name, name, info, x.Info, err)
			}
			checkpoint.Release(x)
		}
		if left := checkpoint.Unused(); len(left) > 0 {
			t.Errorf("%s: unused after all were asked for: %v", c.name, left)
		}
		if _, err := checkpoint.Tensor("none"); !matches(err, "none: no such tensor") {
			t.Errorf("%s: a tensor that is not there: %v", c.name, err)
		}
		checkpoint.Close()
	}
}

func TestHeadOfItsOwn(t *testing.T) {
	cases := []struct {
		name, config string
		head         string // empty: none
		kind         Type
		tied, noted  bool
	}{
		{"copy", `{"tie_word_embeddings": true}`, "abcd", tensor.U8, true, false},
		{"another", `{"tie_word_embeddings": true}`, "abcx", tensor.U8, false, true},
		{"of another type", `{"tie_word_embeddings": true}`, "abcd", tensor.I8, false, true},
		{"none", `{"tie_word_embeddings": true}`, "", 0, true, false},
		{"untied", `{"tie_word_embeddings": false}`, "abcx", tensor.U8, false, false},
	}
	for _, c := range cases {
		all := []Tensor{{Info: Info{Name: "model.embed_tokens.weight", Type: tensor.U8, Shape: []int64{4}}, Data: []byte("abcd")}}
		if c.head != "" {
			all = append(all, Tensor{Info: Info{Name: "lm_head.weight", Type: c.kind, Shape: []int64{4}}, Data: []byte(c.head)})
		}
		folder := folderOf(t, map[string]string{"config.json": c.config})
		if err := safetensors.Write(filepath.Join(folder, safetensors.SingleName), all...); err != nil {
			t.Fatal(err)
		}
		checkpoint, err := Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		if got := checkpoint.Config().Bool("tie_word_embeddings"); got != c.tied || len(checkpoint.Notes()) > 0 != c.noted {
			t.Errorf("%s: tied is %v, notes %v; want %v, noted %v", c.name, got, checkpoint.Notes(), c.tied, c.noted)
		}
		checkpoint.Close()
	}
}

func TestMissingTensorsHaveNeighbours(t *testing.T) {
	path := folderOf(t, map[string]string{"config.json": "{}", "model.safetensors": shards(t,
		"model.layers.0.self_attn.qkv_proj.weight", "model.layers.1.self_attn.o_proj.weight", "gpt.model.embed_tokens.weight", "gpt.lm_head.weight")})
	cases := []struct{ missing, want string }{
		{"model.layers.0.self_attn.q_proj.weight", "(it has model.layers.0.self_attn.qkv_proj.weight)"},
		{"model.embed_tokens.weight", "(it has gpt.model.embed_tokens.weight)"},
		{"lm_head.weight", "(it has gpt.lm_head.weight)"},
		{"vision.tower.weight", "no such tensor in the checkpoint"},
	}
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wants := []Want{{Name: "model.layers.1.self_attn.o_proj.weight", Shape: []int64{2}}}
	for _, cc := range cases {
		wants = append(wants, Want{Name: cc.missing, Shape: []int64{2}})
	}
	err = Check(c, wants)
	if err == nil {
		t.Fatal("missing tensors gave no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, cc := range cases {
		at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, cc.missing+" ") })
		if at < 0 || !strings.HasSuffix(lines[at], cc.want) {
			t.Errorf("%s: got %q, want a line that ends in %q", cc.missing, err, cc.want)
		}
	}
	headless := folderOf(t, map[string]string{"config.json": "{}", "model.safetensors": shards(t, decoderOf("model.")...)})
	h, err := Open(headless)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := Check(h, []Want{{Name: "lm_head.weight", Shape: []int64{2}}}); !matches(err, "is this a model without its head?") {
		t.Errorf("a model without a head: %v", err)
	}
}
