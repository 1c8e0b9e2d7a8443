package instance

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/solo"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/generated/ops"
)

// hybrid is the settings of a small model with a head, with changes.
func hybrid(t *testing.T, changes string) *weights.Config {
	t.Helper()
	keys := map[string]any{"model_type": "qwen3_5_moe_text", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64,
		"vocab_size": 300, "max_position_embeddings": 512, "layer_types": []string{"linear_attention", "full_attention"}, "linear_num_key_heads": 1,
		"linear_num_value_heads": 2, "linear_key_head_dim": 64, "linear_value_head_dim": 64, "num_experts": 4, "num_experts_per_tok": 2,
		"moe_intermediate_size": 64, "shared_expert_intermediate_size": 64, "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false}
	changed := map[string]any{}
	if err := json.Unmarshal([]byte("{"+changes+"}"), &changed); err != nil {
		t.Fatalf("%s: %v", changes, err)
	}
	maps.Copy(keys, changed)
	text, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	config, err := weights.ParseConfig("config.json", text)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// onHost is a target that computes in plain Go, but for steps that are only measured: those have no memory to compute in.
func onHost() *Target {
	patient := &ops.Tap{Set: oracle.New(op.F32)}
	patient.Each = func(q op.Stream, args any) bool {
		_, runs := q.(device.Stream)
		return runs && ops.Call(patient.Set, q, args)
	}
	return &Target{Device: host.New(0), Set: patient, Bundle: &bundle.Bundle{Hardware: "oracle", Activations: op.F32}}
}

// small are sizes for tests of heads.
func small(drafts int) Sizes {
	return Sizes{MaxContext: 64, MaxSequences: 4, MaxBatchTokens: 32, Memory: 1 << 30, KVType: op.F32, Drafts: drafts}
}

// without is a checkpoint that lacks tensors.
type without struct {
	weights.Checkpoint
	prefix string // of their names
}

func (w without) Info(name string) (weights.Info, bool) {
	if strings.HasPrefix(name, w.prefix) {
		return weights.Info{}, false
	}
	return w.Checkpoint.Info(name)
}

func (w without) Unused() []string {
	return slices.DeleteFunc(w.Checkpoint.Unused(), func(name string) bool { return strings.HasPrefix(name, w.prefix) })
}

// A model that cannot draft says why where it is asked to, and is served where it is not.
func TestHeadsThatAreMissing(t *testing.T) {
	cases := []struct{ name, changes, lacks, want string }{
		{"a head", ``, "", ""},
		{"no tensors", ``, "mtp.", "config.json: the checkpoint has no MTP head (tensors mtp.…), which would draft (leave --speculative out)"},
		{"the first tensor less", ``, "mtp.fc.", "the checkpoint's MTP head lacks mtp.fc.weight, so that it cannot draft (leave --speculative out)"},
		{"one tensor less", ``, "mtp.norm.", "mtp.norm.weight [128]: no such tensor in the checkpoint\n(the model can be served without its MTP head: leave --speculative out)"},
		{"said to have none", `"mtp_num_hidden_layers": 0`, "mtp.", "the settings say that the model has no MTP head"},
		{"two layers", `"mtp_num_hidden_layers": 2`, "", "the settings give the model's MTP head 2 layers"},
		{"two counts of layers", `"num_nextn_predict_layers": 2`, "", "config.json: mtp_num_hidden_layers is 1 and num_nextn_predict_layers 2, but they are two names"},
		{"one count twice", `"num_nextn_predict_layers": 1`, "", ""},
		{"an embedding of its own", `"mtp_use_dedicated_embeddings": true`, "", "mtp_use_dedicated_embeddings is true"},
		{"another family", `"model_type": "qwen3_moe", "layer_types": null, "shared_expert_intermediate_size": null`, "", `no head that drafts is known for model_type "qwen3_moe"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			made, err := Dummy(onHost(), hybrid(t, ``), dummy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkpoint := otherSettings{without{made, "none"}, hybrid(t, c.changes)}
			if c.lacks != "" {
				checkpoint.Checkpoint = without{made, c.lacks}
			}
			_, err = Prepare(onHost(), checkpoint, small(3))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.name != "another family" {
				if _, err := Prepare(onHost(), checkpoint, small(0)); err != nil {
					t.Errorf("without drafts: %v", err)
				}
			}
		})
	}
}

// otherSettings is a checkpoint with other settings.
type otherSettings struct {
	weights.Checkpoint
	config *weights.Config
}

func (s otherSettings) Config() *weights.Config { return s.config.Text() }

// Where the model itself does not fit either, to leave the head out is no advice.
func TestModelsThatFitNeitherWithAHead(t *testing.T) {
	made, err := Dummy(onHost(), hybrid(t, ``), dummy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Prepare(onHost(), without{made, "model.norm."}, small(3))
	if err == nil || !strings.Contains(err.Error(), "model.norm.weight") || strings.Contains(err.Error(), draftsFlag) {
		t.Errorf("got %v, want an error of the norm alone", err)
	}
}

// A tensor of the head that the model does not know is an error where drafts are asked for.
func TestUnknownTensorsOfHeads(t *testing.T) {
	made, err := Dummy(onHost(), hybrid(t, ``), dummy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for drafts, want := range map[int]string{0: "", 2: "mtp.layers.1.more.weight was not used\n(the model can be served without its MTP head: leave --speculative out)"} {
		p, err := Prepare(onHost(), withMore{made}, small(drafts))
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Load(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d drafts: got %v, want %q", drafts, err, want)
		}
		if err == nil {
			m.Close()
		}
	}
}

// withMore is a checkpoint with a tensor that no head has.
type withMore struct{ weights.Checkpoint }

func (w withMore) Unused() []string {
	return append(w.Checkpoint.Unused(), "mtp.layers.1.more.weight")
}

func (w withMore) Info(name string) (weights.Info, bool) {
	if name == "mtp.layers.1.more.weight" {
		return weights.Info{Name: name, Type: weights.Type(1), Shape: []int64{2}}, true
	}
	return w.Checkpoint.Info(name)
}

// Memory is planned for what a head reads and keeps, and a model without drafts takes what it took.
func TestPlansCountHeads(t *testing.T) {
	made, err := Dummy(onHost(), hybrid(t, ``), dummy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan := func(drafts int) (p *Prepared) {
		p, err := Prepare(onHost(), made, small(drafts))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	with, none := plan(3), plan(0)
	a, err := with.Plan()
	if err != nil {
		t.Fatal(err)
	}
	b, err := none.Plan()
	if err != nil {
		t.Fatal(err)
	}
	const keysAndValues = 2 * 64 * 4 // of a token in f32
	if got := a.BlockBytes - b.BlockBytes; got != keysAndValues*int64(with.Sizes.BlockSize) {
		t.Errorf("a block takes %d bytes more with a head, want %d", got, keysAndValues*with.Sizes.BlockSize)
	}
	head := 0
	for _, want := range with.Counter.Wants {
		if strings.HasPrefix(want.Name, headPrefix) {
			head++
		}
	}
	if len(with.Counter.Wants)-head != len(none.Counter.Wants) || head < 15 || a.Weights <= b.Weights || a.Activations <= b.Activations {
		t.Errorf("%d of %d tensors are the head's, beside %d; weights take %d and %d bytes, activations %d and %d",
			head, len(with.Counter.Wants), len(none.Counter.Wants), a.Weights, b.Weights, a.Activations, b.Activations)
	}
	if _, err := Prepare(onHost(), made, small(99)); err == nil || !strings.Contains(err.Error(), "99 drafts") {
		t.Errorf("99 drafts: %v", err)
	}
}

// draws loads a model, and drafts two tokens behind a prompt.
func draws(t *testing.T, p *Prepared) solo.Step {
	t.Helper()
	m, err := p.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	stream, err := m.Stream()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	s, err := m.Solo(stream, 32)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	step, err := s.Draw([]int32{3, 141, 59, 26, 5}, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// Heads are loaded from every form that checkpoints keep them in, and quantised to others.
func TestHeadsOfEveryForm(t *testing.T) {
	for _, stored := range []op.Scheme{op.SchemeBF16, op.SchemeF8, op.SchemeF8Block, op.SchemeNVFP4} {
		for _, kept := range []op.Scheme{0, op.SchemeF8, op.SchemeNVFP4} {
			t.Run(stored.String()+" as "+kept.String(), func(t *testing.T) {
				made, err := Dummy(onHost(), hybrid(t, ``), dummy.Options{Scheme: stored})
				if err != nil {
					t.Fatal(err)
				}
				sizes := small(2)
				sizes.DraftScheme = kept
				p, err := Prepare(onHost(), made, sizes)
				if err != nil {
					t.Fatal(err)
				}
				want := stored
				if stored == op.SchemeBF16 && kept != 0 {
					want = kept
				}
				if got := p.Counter.Kept("mtp.layers.0.self_attn.q_proj.weight"); got != want.String() {
					t.Errorf("kept as %s, want %s", got, want)
				}
				step := draws(t, p)
				size := 0.0
				for _, v := range step.Guess {
					size += float64(v) * float64(v) / float64(len(step.Guess))
				}
				if !(size > 0.01 && size < 100) {
					t.Errorf("squares of logits are %v in the mean, want about 1", size)
				}
			})
		}
	}
}

// A smaller draft vocabulary has the tokens below a number and those that were added; the tokens drafted are the likeliest of these.
func TestDraftVocabularies(t *testing.T) {
	made, err := Dummy(onHost(), hybrid(t, ``), dummy.Options{Text: true})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := draftable(made, 40)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(ids) || len(ids) <= 40 || len(ids) >= 300 || ids[39] != 39 || ids[40] == 40 {
		t.Fatalf("%d tokens can be drafted: %v", len(ids), ids)
	}
	if all, err := draftable(made, 300); err != nil || all != nil {
		t.Errorf("of 300 tokens: %v, %v", all, err)
	}
	if _, err := draftable(made, -1); err == nil {
		t.Error("-1 tokens are no error")
	}
	run := func(vocabulary int) (first []float32, drafts []int32) {
		sizes := small(2)
		sizes.DraftVocab = vocabulary
		p, err := Prepare(onHost(), made, sizes)
		if err != nil {
			t.Fatal(err)
		}
		got := draws(t, p)
		return got.Guess[:len(got.Guess)/2], got.Drafts
	}
	whole, _ := run(0)
	some, drafts := run(40)
	best := ids[0]
	for i, id := range ids {
		if some[i] != whole[id] {
			t.Fatalf("the logit of token %d is %v, of all tokens %v", id, some[i], whole[id])
		}
		if whole[id] > whole[best] {
			best = id
		}
	}
	if drafts[0] != best || !slices.Contains(ids, drafts[1]) {
		t.Errorf("drafted %v, want %d and another of %v", drafts, best, ids)
	}
}
