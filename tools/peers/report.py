#!/usr/bin/env python3
"""Prints what compare.sh measured as Markdown.

usage: report.py DIR [CONFIG TYPE | MODEL]

DIR holds `about` and, for each round N, N.read (GB/s), N.atlas (of `atlasrt bench --json`) and N.llama (of `llama-bench -o
json`), if there is one. With a CONFIG, of a dense Llama, or a MODEL, whose `atlasrt plan --json` is in `plan`, rows with
atlasrt's decode as a part of the read speed follow. The median of a round's runs counts.
"""

import itertools
import json
import os
import statistics
import sys

# Of one weight, with its block's scales.
BYTES = {"bf16": 2, "q8_0": 34 / 32, "q4_0": 18 / 32, "q4_1": 20 / 32, "q5_0": 22 / 32, "q4_k": 144 / 256, "q6_k": 210 / 256}


def bytes_per_token(config, kind):
    """What is read to decode one token at a short context: every matrix, one row of the embeddings, f32 norms."""
    if config.get("model_type") != "llama":
        sys.exit(f"report.py: bytes per token are known for model_type llama only, not {config.get('model_type')}")
    hidden, layers, heads = (config[key] for key in ("hidden_size", "num_hidden_layers", "num_attention_heads"))
    head = config.get("head_dim") or hidden // heads
    query, keys = heads * head, config.get("num_key_value_heads", heads) * head
    layer = hidden * (2 * query + 2 * keys) + 3 * hidden * config["intermediate_size"]
    matrices = layers * layer + hidden * config["vocab_size"] + hidden
    return matrices * BYTES[kind] + 4 * hidden * (2 * layers + 1)


def bytes_of_model(path, plan):
    """The same of a checkpoint: all weights, of which the embeddings are the head as well."""
    files = [path]
    if os.path.isdir(path):
        files = [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".safetensors")]
    for file in files:
        with open(file, "rb") as opened:
            head = opened.read(64 << 20)
        if b'"lm_head.weight"' in head or b"\x0d" + bytes(7) + b"output.weight" in head:
            sys.exit(f"report.py: {path} has a head beside its embeddings, of which a token reads one row: choose a model with one for both")
    return plan["Weights"]


def atlas_rate(report, what):
    (row,) = (row for row in report["measurements"] if row["what"].startswith(what))
    return row["tokens_per_second"]["median"]


def llama_rate(rows, what):
    field = {"prompt": "n_prompt", "decode": "n_gen"}[what]
    (row,) = (row for row in rows if row[field])
    return statistics.median(row["samples_ts"])


def read_rounds(folder):
    """Yields for each round (GB/s, atlasrt's report, llama.cpp's rows or None)."""
    for n in itertools.count(1):
        path = os.path.join(folder, str(n))
        if not os.path.exists(path + ".read"):
            return
        with open(path + ".read", encoding="utf-8") as file:
            speed = float(file.read())
        with open(path + ".atlas", encoding="utf-8") as file:
            atlas = json.load(file)
        llama = None
        if os.path.exists(path + ".llama"):
            with open(path + ".llama", encoding="utf-8") as file:
                llama = json.load(file)
        yield speed, atlas, llama


def line(name, values, form):
    least, median, most = min(values), statistics.median(values), max(values)
    return f"| {name} | {least:{form}} | {median:{form}} | {most:{form}} |"


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    folder = sys.argv[1]
    rounds = list(read_rounds(folder))
    reads = [speed for speed, _, _ in rounds]
    lines = [line("plain read, GB/s", reads, ".1f")]
    notes = [f"rounds: {len(rounds)}, in turns; ratios are taken round by round"]
    for what, name in (("prompt", "prefill"), ("decode", "decode")):
        if not any(row["what"].startswith(what) for row in rounds[0][1]["measurements"]):
            continue
        ours = [atlas_rate(atlas, what) for _, atlas, _ in rounds]
        if rounds[0][2]:
            theirs = [llama_rate(llama, what) for _, _, llama in rounds]
            lines.append(line(f"{name}, llama.cpp, tok/s", theirs, ".1f"))
            lines.append(line(f"{name}, atlasrt / llama.cpp", [a / b for a, b in zip(ours, theirs)], ".2f"))
        lines.append(line(f"{name}, atlasrt, tok/s", ours, ".2f"))
    if len(sys.argv) > 2:
        size = None
        if len(sys.argv) == 4:
            with open(sys.argv[2], encoding="utf-8") as file:
                size = bytes_per_token(json.load(file), sys.argv[3])
        else:
            with open(os.path.join(folder, "plan"), encoding="utf-8") as file:
                size = bytes_of_model(sys.argv[2], json.load(file))
        notes.append(f"bytes per token: {size / 1e9:.3f} GB of weights")
        speeds = [atlas_rate(atlas, "decode") * size / 1e9 for _, atlas, _ in rounds]
        lines.append(line("decode, atlasrt, GB/s of weights", speeds, ".1f"))
        lines.append(line("decode, atlasrt / plain read", [speed / read for speed, read in zip(speeds, reads)], ".0%"))
    if rounds[0][2]:
        first = rounds[0][2][0]
        notes.append(
            f"llama.cpp: {first['build_commit']}, backend {first['backends']}, {first['model_type']}, keys and values"
            f" {first['type_k']}/{first['type_v']}, flash attention {first['flash_attn']}"
        )
    with open(os.path.join(folder, "about"), encoding="utf-8") as file:
        about = file.read().splitlines()
    print("\n".join(["| measured | least | median | most |", "|---|--:|--:|--:|", *lines, ""]))
    print("\n".join(f"* {note}" for note in about + notes))


if __name__ == "__main__":
    main()
