package workload

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
)

const dense = `{"model_type":"qwen3","hidden_size":4096,"num_hidden_layers":36,"num_attention_heads":32,"num_key_value_heads":8,
	"head_dim":128,"intermediate_size":12288,"vocab_size":151936}`

const mixture = `{"model_type":"qwen3_moe","hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":32,"num_key_value_heads":4,
	"head_dim":128,"moe_intermediate_size":768,"num_experts":128,"num_experts_per_tok":8,"vocab_size":151936}`

func TestRead(t *testing.T) {
	cases := []struct{ text, want string }{
		{dense, ""},
		{mixture, ""},
		{`{`, "config.json: unexpected end"},
		{`{"model_type":"bert"}`, `the calls of model_type "bert" are not known (known: [llama`},
		{strings.Replace(dense, "4096", "-1", 1), "hidden_size is -1 (it must be between 1 and 131072)"},
		{strings.Replace(dense, `"vocab_size":151936`, `"vocab_size":0`, 1), "vocab_size is 0"},
		{strings.Replace(mixture, `"num_experts_per_tok":8`, `"num_experts_per_tok":1000`, 1), "num_experts_per_tok is 1000"},
	}
	for _, c := range cases {
		_, err := Read([]byte(c.text))
		if got := message(err); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.text, got, c.want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(dense))
	f.Add([]byte(mixture))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read(data)
		if err != nil {
			return
		}
		for _, call := range c.Calls("bf16", Step{1, 1, 1024}) {
			for name, n := range call.Args {
				if n < 0 {
					t.Errorf("%s: %s of %s is %d", data, name, call.Op, n)
				}
			}
		}
	})
}

// The bytes of a step are those that are easy to count by hand: two for each parameter, two caches.
func TestBytes(t *testing.T) {
	contracts, err := contract.Read("../../..", "atlasrt/op")
	if err != nil {
		t.Fatal(err)
	}
	sizes := Sizes{2, func(rows, cols int64) int64 { return 2 * rows * cols }}
	cases := []struct {
		config string
		step   Step
		op     string
		what   string
		want   int64
		count  int64
	}{
		{dense, Step{1, 1, 1024}, "Linear", "qkv", 2 * (6144*4096 + 4096 + 6144), 36},
		{dense, Step{16, 1, 1024}, "Linear", "down", 2 * (4096*12288 + 16*(12288+4096)), 36},
		{dense, Step{1, 1, 1024}, "PagedAttention", "attention", 2*2*1024*8*128 + 2*2*32*128 + 4*(2+1+64), 36},
		{dense, Step{1, 1, 1024}, "RMSNorm", "hidden", 2*2*4096 + 4*4096, 73},
		{dense, Step{2, 1, 1024}, "Embedding", "embedding", 2*(2*4096) + 2*2*4096 + 4*2, 1},
		{dense, Step{1, 512, 512}, "Logits", "logits", 2*(151936*4096+512*4096) + 4*151936 + 4, 1},
		{mixture, Step{1, 1, 1024}, "ExpertUp", "experts' gate and up", 2*(8*1536*2048) + 2*(8*768+2048) + 4*(2*8+129), 48},
		{mixture, Step{64, 1, 1024}, "ExpertDown", "experts' down", 2*(128*768*2048) + 2*64*(2048+8*768) + 4*(3*64*8+129), 48},
	}
	for _, x := range cases {
		c, err := Read([]byte(x.config))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, call := range c.Calls("bf16", x.step) {
			if _, err := call.Bytes(contracts, sizes); err != nil {
				t.Errorf("%s %s: %v", call.Op, call.What, err)
			}
			if call.Op != x.op || call.What != x.what {
				continue
			}
			found = true
			if got, _ := call.Bytes(contracts, sizes); got != x.want || call.Count != x.count {
				t.Errorf("%s %s %+v: got %d bytes, %d times, want %d, %d times", x.op, x.what, x.step, got, call.Count, x.want, x.count)
			}
		}
		if !found {
			t.Errorf("%s: there is no call %s %s", x.config, x.op, x.what)
		}
	}
}
