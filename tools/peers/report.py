#!/usr/bin/env python3
"""Prints what compare.sh measured as Markdown.

usage: report.py DIR [CONFIG TYPE]

DIR holds `about` and, for each round N, N.read (GB/s), N.atlas (of `atlasrt bench --json`) and N.llama (of `llama-bench -o
json`). With a CONFIG, of a dense Llama, the rows are atlasrt's decode as a part of the read speed instead.
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


def atlas_rate(report, what):
    (row,) = (row for row in report["measurements"] if row["what"].startswith(what))
    return row["tokens_per_second"]["median"]


def llama_rate(rows, what):
    field = {"prompt": "n_prompt", "decode": "n_gen"}[what]
    (row,) = (row for row in rows if row[field])
    return row["avg_ts"]


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
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    folder = sys.argv[1]
    rounds = list(read_rounds(folder))
    reads = [speed for speed, _, _ in rounds]
    decode = [atlas_rate(atlas, "decode") for _, atlas, _ in rounds]
    lines = [line("plain read, GB/s", reads, ".1f")]
    notes = [f"rounds: {len(rounds)}, in turns; ratios are taken round by round"]
    if len(sys.argv) == 4:
        with open(sys.argv[2], encoding="utf-8") as file:
            size = bytes_per_token(json.load(file), sys.argv[3])
        notes.append(f"bytes per token: {size / 1e9:.3f} GB of {sys.argv[3]} weights")
        prompt = [atlas_rate(atlas, "prompt") for _, atlas, _ in rounds]
        speeds = [rate * size / 1e9 for rate in decode]
        lines += [line("prefill, tok/s", prompt, ".1f"), line("decode, tok/s", decode, ".2f")]
        lines.append(line("decode, GB/s of weights", speeds, ".1f"))
        lines.append(line("decode / plain read", [speed / read for speed, read in zip(speeds, reads)], ".0%"))
    else:
        for what, name in (("prompt", "prefill"), ("decode", "decode")):
            ours = [atlas_rate(atlas, what) for _, atlas, _ in rounds]
            theirs = [llama_rate(llama, what) for _, _, llama in rounds]
            lines.append(line(f"{name}, llama.cpp, tok/s", theirs, ".1f"))
            lines.append(line(f"{name}, atlasrt, tok/s", ours, ".1f"))
            lines.append(line(f"{name}, atlasrt / llama.cpp", [a / b for a, b in zip(ours, theirs)], ".2f"))
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
