package instance

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// smallGGUF writes a file of float32 tensors, all zero, with these keys: a string, or a number as uint32 or float32.
func smallGGUF(t *testing.T, keys map[string]any, tensors map[string][]uint64) string {
	t.Helper()
	le := binary.LittleEndian
	text := func(b []byte, s string) []byte { return append(le.AppendUint64(b, uint64(len(s))), s...) }
	b := le.AppendUint64(le.AppendUint64(le.AppendUint32([]byte("GGUF"), 3), uint64(len(tensors))), uint64(len(keys)))
	for key, value := range keys {
		b = text(b, key)
		switch v := value.(type) {
		case string:
			b = text(le.AppendUint32(b, 8), v)
		case int:
			b = le.AppendUint32(le.AppendUint32(b, 4), uint32(v))
		case uint32: // the bits of a float32
			b = le.AppendUint32(le.AppendUint32(b, 6), v)
		}
	}
	offset := uint64(0)
	for name, shape := range tensors {
		b = le.AppendUint32(text(b, name), uint32(len(shape)))
		elements := uint64(1)
		for _, d := range shape { // the fastest dimension first
			b = le.AppendUint64(b, d)
			elements *= d
		}
		b = le.AppendUint64(le.AppendUint32(b, 0), offset)
		offset += (4*elements + 31) / 32 * 32
	}
	b = append(b, make([]byte, -len(b)&31)...)
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(path, append(b, make([]byte, offset)...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A GGUF file has no setting that turns biases off, so one that would be left out is refused.
func TestBiasesOfGGUFFilesCount(t *testing.T) {
	keys := map[string]any{
		"general.architecture": "qwen2", "qwen2.block_count": 1, "qwen2.context_length": 64, "qwen2.embedding_length": 32, "qwen2.feed_forward_length": 64,
		"qwen2.attention.head_count": 2, "qwen2.attention.layer_norm_rms_epsilon": uint32(0x358637bd),
	}
	cases := []struct{ bias, want string }{
		{"blk.0.attn_q.bias", ""}, // which qwen2 has
		{"blk.0.attn_output.bias", `biases are not served for model_type "qwen2": model.layers.0.self_attn.o_proj.bias`},
	}
	for _, c := range cases {
		checkpoint, err := weights.Open(smallGGUF(t, keys, map[string][]uint64{"token_embd.weight": {32, 50}, c.bias: {32}}))
		if err != nil {
			t.Fatal(err)
		}
		err = leaveOut(checkpoint, []weights.Want{
			{Name: "model.layers.0.self_attn.q_proj.weight"}, {Name: "model.layers.0.self_attn.q_proj.bias"}, {Name: "model.layers.0.self_attn.o_proj.weight"},
		})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.bias, err, c.want)
		}
		checkpoint.Close()
	}
}
