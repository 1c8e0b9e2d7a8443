"""Converts golden checkpoints of hybrids with llama.cpp's own converter, and compares atlasrt's logits with those of transformers.

    pip install torch transformers numpy safetensors sentencepiece
    pip download --no-deps llama-cpp-python==0.3.36   # unpack it; llama.cpp is in vendor/llama.cpp
    python tools/testdata/gguf_hybrids.py LLAMA_CPP GOLDEN FOLDER

LLAMA_CPP is the folder with convert_hf_to_gguf.py, GOLDEN the one with the checkpoints, FOLDER a new one for the files. It prints the
largest difference of a logit, which is below 2e-3 in files of f32 and bf16. The goldens have no tokenizer: the files have a stub.
"""

import json
import pathlib
import runpy
import shutil
import subprocess
import sys

from safetensors import safe_open
from safetensors.torch import load_file

CHECKPOINTS = ["qwen3_next", "qwen3_next-mtp", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe-mtp"]
VARIANTS = {"f32": [], "bf16": [], "fused": ["--fuse-qkv", "--fuse-gate-up-exps"]}


def stub(model):
    """In place of a tokenizer: a name for each token."""
    n = model.hparams["vocab_size"]
    model.gguf_writer.add_tokenizer_model("gpt2")
    model.gguf_writer.add_tokenizer_pre("qwen2")
    model.gguf_writer.add_token_list([f"t{i}" for i in range(n)])
    model.gguf_writer.add_token_types([1] * n)
    model.gguf_writer.add_token_merges(["t 1"])


def convert(llama, source, target, variant):
    """Runs in a process of its own: the converter reads its arguments from sys.argv."""
    sys.path[:0] = [str(llama), str(llama / "gguf-py")]
    import conversion.base

    def absent(model):
        raise FileNotFoundError

    conversion.base.TextModel._set_vocab_gpt2 = stub
    conversion.base.TextModel._set_vocab_sentencepiece = absent
    with_mtp = any(name.startswith("mtp.") for file in source.glob("*.safetensors") for name in safe_open(file, "numpy").keys())
    kind = "f32" if variant == "fused" else variant
    script = str(llama / "convert_hf_to_gguf.py")
    sys.argv = [script, str(source), "--outfile", str(target), "--outtype", kind, *VARIANTS[variant], *([] if with_mtp else ["--no-mtp"])]
    runpy.run_path(script, run_name="__main__")


def main(llama, golden, folder):
    folder.mkdir()
    for name in CHECKPOINTS:
        source = folder / name
        source.mkdir()
        for file in ("config.json", "model.safetensors"):
            shutil.copyfile(golden / name / file, source / file)
        want = load_file(golden / name / "golden.safetensors")
        tokens = folder / "tokens.json"
        tokens.write_text(json.dumps(want["tokens"].tolist()))
        for variant in VARIANTS:
            target, out = folder / f"{name}-{variant}.gguf", folder / "logits.safetensors"
            subprocess.run([sys.executable, __file__, "--convert", llama, source, target, variant], check=True, capture_output=True)
            subprocess.run(["bin/atlasrt", "logits", "--exact", "--model", target, "--tokens", tokens, "--out", out], check=True)
            print(f"{target.name}: max |Δlogit| {(load_file(out)['logits'] - want['logits']).abs().max():.1e}", flush=True)


if sys.argv[1] == "--convert":
    convert(*map(pathlib.Path, sys.argv[2:5]), sys.argv[5])
else:
    main(*map(pathlib.Path, sys.argv[1:4]))
