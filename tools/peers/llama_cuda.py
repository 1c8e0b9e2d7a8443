#!/usr/bin/env python3
"""Measures atlasrt beside llama.cpp on a GPU, in turns, with made-up weights of the same shapes and types: a Markdown table.

usage: llama_cuda.py CONFIG TYPE...

CONFIG is a config.json that gguf_dummy.py takes, TYPE one or more of BF16, Q8_0, Q4_0, Q4_K_M. ATLASRT=bin/atlasrt,
LLAMA=.cache/peers/llama.cpp/build-cuda/bin, HARDWARE=h200, ROUNDS=3 and TMPDIR, for a file of the weights' size, are what the environment may
change. Needs what tools/peers/llama.cpp.sh builds with CUDA set (llama-bench and llama-batched-bench) and numpy.

Decoding is of 40 tokens for each sequence after 1024, prompts are one sequence's. llama.cpp's n=1 is llama-bench's, more are
llama-batched-bench's; of prompts in pieces of 512, 2048 and 8192 tokens the fastest counts.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SEQUENCES, PROMPTS, CONTEXT, DECODE = (1, 4, 16, 64), (512, 8192), 1024, 40
HERE = pathlib.Path(__file__).resolve().parent
ATLASRT = os.environ.get("ATLASRT", "bin/atlasrt")
LLAMA = pathlib.Path(os.environ.get("LLAMA", ".cache/peers/llama.cpp/build-cuda/bin"))
HARDWARE = os.environ.get("HARDWARE", "h200")
BUILD = "CUDA=90 tools/peers/llama.cpp.sh .cache/peers llama-bench llama-batched-bench"
ROUNDS = int(os.environ.get("ROUNDS", "3"))


def output(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"llama_cuda.py: {command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def numbers(values):
    return ",".join(map(str, values))


def llama_round(file):
    """Tokens per second by (what, how many)."""
    model = ("-m", file, "-ngl", 99, "-fa")
    rates = {}
    rows = json.loads(output(LLAMA / "llama-bench", *model, 1, "-p", 0, "-n", DECODE, "-d", CONTEXT, "-r", 2, "-o", "json"))
    rates["decode", 1] = rows[0]["avg_ts"]
    rows = json.loads(output(LLAMA / "llama-bench", *model, 1, "-p", numbers(PROMPTS), "-n", 0, "-b", 8192, "-ub", "512,2048,8192", "-r", 2, "-o", "json"))
    for row in rows:
        key = "prompt", row["n_prompt"]
        rates[key] = max(rates.get(key, 0), row["avg_ts"])
    several, most = SEQUENCES[1:], SEQUENCES[-1] * (CONTEXT + DECODE)
    lines = output(LLAMA / "llama-batched-bench", *model, "on", "-c", most, "-b", 2048, "-ub", 2048, "-npp", CONTEXT, "-ntg", DECODE,
                   "-npl", numbers(several), "--output-format", "jsonl")
    for row in map(json.loads, (line for line in lines.splitlines() if line.startswith("{"))):
        rates["decode", row["pl"]] = row["speed_tg"]
    return rates


def atlas_round(config, kind):
    common = (ATLASRT, "bench", "--hardware", HARDWARE, "--load-dummy", config, "--dummy-type", kind.lower(), "--context", CONTEXT, "--decode", DECODE, "--repeat", 2, "--json")
    rates = {}
    report = json.loads(output(*common, "--max-batch-tokens", 4096, "--max-context", 2048, "--prompt", 0, "--concurrency", numbers(SEQUENCES)))
    for row in report["measurements"]:
        if row["what"].startswith("decode"):
            rates["decode", row["sequences"]] = row["tokens_per_second"]["median"]
    report = json.loads(output(*common, "--max-batch-tokens", 8192, "--max-context", 10240, "--prompt", numbers(PROMPTS), "--concurrency", 1))
    for row in report["measurements"]:
        if row["what"].startswith("prompt"):
            rates["prompt", int(row["what"].split()[-1])] = row["tokens_per_second"]["median"]
    return rates


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for program, how in ((ATLASRT, "make cuda"), (LLAMA / "llama-bench", BUILD), (LLAMA / "llama-batched-bench", BUILD)):
        if not os.path.exists(program):
            sys.exit(f"llama_cuda.py: there is no {program}: run {how}")
    config, columns = sys.argv[1], [("decode", n) for n in SEQUENCES] + [("prompt", n) for n in PROMPTS]
    print(f"{pathlib.Path(config).stem}, tok/s, medians of {ROUNDS} rounds in turns: llama.cpp → atlasrt (ratio)\n")
    print("| |" + "|".join(f" {'n=' if what == 'decode' else 'prompt of '}{n} " for what, n in columns) + "|\n|---|" + "--:|" * len(columns))
    for kind in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.gguf")
            output(sys.executable, HERE / "gguf_dummy.py", config, kind, file)
            llama, atlas = [], []
            for number in range(ROUNDS):
                turns = [lambda: llama.append(llama_round(file)), lambda: atlas.append(atlas_round(config, kind))]
                for turn in turns if number % 2 == 0 else turns[::-1]:
                    turn()
        cells = []
        for column in columns:
            theirs, ours = (statistics.median(round[column] for round in rounds) for rounds in (llama, atlas))
            cells.append(f" {theirs:.0f} → {ours:.0f} ({ours / theirs:.2f}) ")
        print(f"| {kind} |" + "|".join(cells) + "|", flush=True)


if __name__ == "__main__":
    main()
