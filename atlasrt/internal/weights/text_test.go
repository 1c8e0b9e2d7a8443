package weights

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// A text model's settings are those inside, with those around them where it says nothing.
func TestTextSettings(t *testing.T) {
	const nested = `{"model_type": "outer", "dtype": "bfloat16", "eos_token_id": 7, "tie_word_embeddings": false, "quantization_config": {"quant_method": "outer"},
		"text_config": {"model_type": "inner", "hidden_size": "wide", "eos_token_id": null, "tie_word_embeddings": true, "quantization_config": {"quant_method": "inner"}, "rope_parameters": {"rope_theta": 5}},
		"vision_config": {"hidden_size": 3}}`
	c, err := ParseConfig("config.json", []byte(nested))
	if err != nil {
		t.Fatal(err)
	}
	text := c.Text()
	if kind, dtype, end := text.String("model_type"), text.String("dtype"), text.Int("eos_token_id"); kind != "inner" || dtype != "bfloat16" || end != 7 {
		t.Errorf("got %q, %q, %d", kind, dtype, end)
	}
	if tied, method := text.Bool("tie_word_embeddings"), text.Object("quantization_config").String("quant_method"); tied || method != "outer" {
		t.Errorf("tied is %v, method %q: those inside count", tied, method)
	}
	if theta := text.Object("rope_parameters").Float("rope_theta"); theta != 5 || text.Has("text_config") {
		t.Errorf("theta is %v", theta)
	}
	text.Int("hidden_size")
	if err := text.Err(); !matches(err, `config.json: text_config.hidden_size is "wide", wanted an integer`) {
		t.Errorf("got %v", err)
	}
	if left := strings.Join(text.Unread(), " "); left != "vision_config.hidden_size" && left != "vision_config" {
		t.Errorf("unread: %s", left)
	}
	if err := text.Fresh().Err(); err != nil {
		t.Errorf("a fresh reader has %v", err)
	}
	flat, err := ParseConfig("config.json", []byte(`{"tie_word_embeddings": true}`))
	if err != nil || flat.Text() != flat {
		t.Errorf("settings without an object inside are others: %v", err)
	}
}

// Whether the head is tied is read around text_config. Where nothing is said there, it is tied where there is none of its own.
func TestHeadOfWrappedModels(t *testing.T) {
	embedding := numbered("model.embed_tokens.weight", tensor.BF16, 0, 2, 2)
	head, packed := numbered("lm_head.weight", tensor.BF16, 9, 2, 2), numbered("lm_head.weight_packed", tensor.U8, 9, 2, 2)
	cases := []struct {
		name, config string
		all          []Tensor
		tied         bool
	}{
		{"own, said inside to be tied", `{"text_config": {"tie_word_embeddings": true}}`, []Tensor{embedding, head}, false},
		{"none, said inside to be its own", `{"text_config": {"tie_word_embeddings": false}}`, []Tensor{embedding}, true},
		{"packed", `{"text_config": {}}`, []Tensor{embedding, packed}, false},
		{"none, said around to be tied", `{"text_config": {}, "tie_word_embeddings": true}`, []Tensor{embedding}, true},
		{"own, said around to be tied", `{"text_config": {}, "tie_word_embeddings": true}`, []Tensor{embedding, head}, false},
		{"none, said around to be its own", `{"text_config": {}, "tie_word_embeddings": false}`, []Tensor{embedding}, false},
	}
	for _, c := range cases {
		checkpoint, err := openedTensors(t, c.config, c.all...)
		if err != nil {
			t.Fatal(err)
		}
		if got := checkpoint.Config().Bool("tie_word_embeddings"); got != c.tied {
			t.Errorf("%s: tied is %v", c.name, got)
		}
	}
}

// Older exports of modelopt say in a file of its own how weights are quantised.
func TestQuantizationBesideTheConfig(t *testing.T) {
	const beside = `{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}}`
	cases := []struct {
		name, config, beside string
		method, algorithm    string
		note, err            string
	}{
		{"beside", `{}`, beside, "modelopt", "NVFP4", "is read as the quantization_config that config.json lacks", ""},
		{"null in the config", `{"quantization_config": null}`, beside, "modelopt", "NVFP4", "hf_quant_config.json", ""},
		{"both", `{"quantization_config": {"quant_method": "fp8"}}`, beside, "fp8", "", "", ""},
		{"neither", `{}`, "", "", "", "", ""},
		{"damaged", `{}`, `{`, "", "", "", "hf_quant_config.json: line 1: EOF"},
		{"of another form", `{}`, `{"quantization": "NVFP4"}`, "", "", "", `quantization is "NVFP4", wanted an object`},
	}
	for _, c := range cases {
		files := map[string]string{"config.json": c.config, "model.safetensors": shards(t, "xx")}
		if c.beside != "" {
			files["hf_quant_config.json"] = c.beside
		}
		checkpoint := opened(t, c.name, folderOf(t, files), "xx", c.note, c.err)
		if checkpoint == nil {
			continue
		}
		q := checkpoint.Config().Object("quantization_config")
		if method, algorithm := q.StringOr("quant_method", ""), q.StringOr("quant_algo", ""); method != c.method || algorithm != c.algorithm {
			t.Errorf("%s: got %q, %q", c.name, method, algorithm)
		}
		checkpoint.Close()
	}
}
