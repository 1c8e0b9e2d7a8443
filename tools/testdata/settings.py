"""Records what HuggingFace transformers makes of a config.json: defaults, rotary frequencies, and logits of small made-up
checkpoints.

    pip install torch transformers==5.24.0 safetensors
    python tools/testdata/settings.py classes > atlasrt/internal/instance/testdata/classes.json
    python tools/testdata/settings.py rope > atlasrt/model/nn/testdata/rope.json
    go test ./atlasrt/internal/instance -run TestSettings -write /tmp/checkpoints
    python tools/testdata/settings.py logits /tmp/checkpoints > atlasrt/internal/instance/testdata/settings.json

transformers' Llama turns whole heads only. Where a config asks for a part, its rotation is replaced by the one that its Phi
has: the first elements turn, the rest pass.
"""

import json
import pathlib
import sys

sys.path.pop(0)  # this folder, whose tokenizers.py is not the package
import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
ROPE = {
    "plain": {},
    "theta": {"rope_theta": 500000.0},
    "theta inside": {"rope_theta": 7.0, "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}},
    "linear": {"rope_scaling": {"type": "linear", "factor": 4.0}},
    "linear below 1": {"rope_scaling": {"type": "linear", "factor": 0.5}},
    "two types": {"rope_scaling": {"type": "linear", "rope_type": "default", "factor": 4.0}},
    "factor without type": {"rope_scaling": {"factor": 4.0}},
    "empty scaling": {"rope_scaling": {}, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}},
    "both objects": {"rope_scaling": {"type": "linear", "factor": 8.0}, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 7.0}},
    "llama3": {"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                                        "original_max_position_embeddings": 256}},
    "llama3 without original": {"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}},
    "dynamic": {"rope_scaling": {"type": "dynamic", "factor": 4.0}},
    "yarn": {"rope_scaling": YARN},
    "yarn without original": {"rope_scaling": {"type": "yarn", "factor": 4.0}},
    "yarn with the original beside": {"original_max_position_embeddings": 512, "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}},
    "yarn betas": {"rope_scaling": YARN | {"beta_fast": 8, "beta_slow": 2}},
    "yarn betas of null": {"rope_scaling": YARN | {"beta_fast": None, "beta_slow": None}},
    "yarn untruncated": {"rope_scaling": YARN | {"truncate": False}},
    "yarn attention": {"rope_scaling": YARN | {"attention_factor": 1.5}},
    "yarn mscale": {"rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 0.7}},
    "yarn equal mscales": {"rope_scaling": YARN | {"mscale": 0.8, "mscale_all_dim": 0.8}},
    "yarn lone mscale": {"rope_scaling": YARN | {"mscale": 0.8}},
    "yarn factor 1": {"rope_scaling": YARN | {"factor": 1.0}},
    "partial": {"partial_rotary_factor": 0.5},
    "partial cut": {"partial_rotary_factor": 0.4},
    "partial inside": {"partial_rotary_factor": 0.5, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0, "partial_rotary_factor": 0.3}},
    "partial yarn": {"partial_rotary_factor": 0.5, "rope_scaling": YARN},
    "partial llama3": {"partial_rotary_factor": 0.5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                                                     "original_max_position_embeddings": 256}},
}


CLASSES = [transformers.LlamaConfig, transformers.MistralConfig, transformers.Qwen2Config, transformers.Qwen3Config, transformers.Qwen3MoeConfig]
KEYS = """hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim intermediate_size vocab_size max_position_embeddings rms_norm_eps
tie_word_embeddings hidden_act attention_bias mlp_bias sliding_window use_sliding_window max_window_layers num_experts num_experts_per_tok
moe_intermediate_size norm_topk_prob decoder_sparse_step""".split()


def record_classes():
    recorded = {}
    for kind in CLASSES:
        config = kind()
        recorded[kind.model_type] = {key: getattr(config, key) for key in KEYS if hasattr(config, key)} | {"rope_theta": config.rope_parameters["rope_theta"]}
    print(json.dumps(recorded, indent=1))


def frequencies(config):
    kind = config.rope_parameters["rope_type"]
    if kind == "default":  # as linear with a factor of 1, which knows of partial heads
        config.rope_parameters = dict(config.rope_parameters, rope_type="linear", factor=1.0)
        kind = "linear"
    return ROPE_INIT_FUNCTIONS[kind](config)


def record_rope():
    recorded = []
    for name, keys in ROPE.items():
        text = json.dumps(keys)
        config = transformers.LlamaConfig(hidden_size=80, num_attention_heads=4, head_dim=20, max_position_embeddings=8192, **json.loads(text))
        frequency, scale = frequencies(config)
        recorded.append({"name": name, "config": json.loads(text), "frequency": frequency.tolist(), "scale": scale})
    print(json.dumps(recorded, indent=1))


def part(q, k, cos, sin, unsqueeze_dim=1):
    cos, sin, dims = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim), cos.shape[-1]

    def turn(x):
        head, rest = x[..., :dims], x[..., dims:]
        half = torch.cat((-head[..., dims // 2:], head[..., :dims // 2]), dim=-1)
        return torch.cat((head * cos + half * sin, rest), dim=-1)

    return turn(q), turn(k)


def record_logits(folder):
    tokens = torch.tensor([[3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32]])
    recorded = {}
    for path in sorted(pathlib.Path(folder).iterdir()):
        keys = json.loads((path / "config.json").read_text())
        if (index := path / "model.safetensors.index.json").exists():  # it has one file, and no metadata
            index.unlink()
            next(path.glob("*.safetensors")).rename(path / "model.safetensors")
        dims = keys.pop("rotary_dim", None)
        if dims is not None:
            keys["partial_rotary_factor"] = dims / keys["head_dim"]
            (path / "config.json").write_text(json.dumps(keys))
        model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
        modeling = sys.modules[type(model).__module__]
        whole = modeling.apply_rotary_pos_emb
        if "partial_rotary_factor" in model.config.rope_parameters:
            frequency, scale = frequencies(model.config)
            rotary = model.model.rotary_emb
            rotary.inv_freq, rotary.attention_scaling = frequency, scale
            modeling.apply_rotary_pos_emb = part
        with torch.no_grad():
            logits = model(tokens).logits[0]
        modeling.apply_rotary_pos_emb = whole
        recorded[path.name] = [[round(x, 6) for x in logits[row].tolist()] for row in (4, 8, 11)]
    print(json.dumps(recorded))


if __name__ == "__main__":
    if sys.argv[1] == "classes":
        record_classes()
    elif sys.argv[1] == "rope":
        record_rope()
    else:
        record_logits(sys.argv[2])
