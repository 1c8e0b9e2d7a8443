#!/usr/bin/env python3
"""Measures atlasrt's server beside llama.cpp's, in turns on the same machine, and prints a Markdown table: tokens per second of all
streams of chat answers together (tools/rates.py), least / median / most of the rounds.

    tools/peers/serve.py [--model FILE.gguf] [--threads 2] [--rounds 5] [--tokens 64] 8 32

Needs `make build`, `make testdata`, and `tools/peers/llama.cpp.sh .cache/peers llama-server`. Run it on a machine that does nothing
else."""
import argparse, json, pathlib, platform, statistics, subprocess, sys, time, urllib.error, urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PORT = 8471


def commands(a):
    """The servers, each with room for the most streams and 1024 tokens of each."""
    most = max(a.streams)
    return {
        "llama.cpp": [".cache/peers/llama.cpp/build/bin/llama-server", "-m", a.model, "-t", a.threads, "-tb", a.threads, "-np", most, "-c", 1024 * most, "--port", PORT],
        "atlasrt": ["bin/atlasrt", "serve", "--model", a.model, "--threads", a.threads, "--max-sequences", most, "--max-context", 1024, "--port", PORT],
    }


def measure(name, command, a):
    with open(f"/tmp/serve-{name}.log", "w") as log:
        server = subprocess.Popen([str(word) for word in command], cwd=ROOT, stdout=log, stderr=log)
    try:
        for _ in range(240):
            if server.poll() is not None:
                sys.exit(f"serve.py: {name} ended with {server.returncode}: see {log.name}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1)
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.25)
        words = [sys.executable, "tools/rates.py", "--url", f"http://127.0.0.1:{PORT}", "--tokens", a.tokens, "--json", *a.streams]
        rows = json.loads(subprocess.run([str(word) for word in words], cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    finally:
        server.terminate()
        server.wait(60)
    for row in rows:
        if row["failed"]:
            sys.exit(f"serve.py: {row['failed']} of {row['streams']} streams of {name} failed")
    return {row["streams"]: row["rate"] for row in rows}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default=".cache/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("streams", type=int, nargs="+")
    a = p.parse_args()
    servers = commands(a)
    for name, command in servers.items():
        if not (ROOT / command[0]).exists():
            sys.exit(f"serve.py: there is no {command[0]} ({__doc__.split('Needs ')[1].split('.  ')[0].splitlines()[0]})")
    rates = {name: {n: [] for n in a.streams} for name in servers}
    for turn in range(a.rounds):
        for name in sorted(servers, reverse=turn % 2 == 1):
            for n, rate in measure(name, servers[name], a).items():
                rates[name][n].append(rate)
            print(f"serve.py: round {turn + 1} of {a.rounds}: {name} {[round(r[-1]) for r in rates[name].values()]}", file=sys.stderr)
    print(f"{pathlib.Path(a.model).name}, {a.threads} threads, {a.tokens} tokens of each stream, {a.rounds} rounds in turns, {platform.processor() or platform.machine()}\n")
    print("| streams | llama.cpp, tok/s | atlasrt, tok/s | ratio of medians |\n|--:|--:|--:|--:|")
    for n in a.streams:
        theirs, ours = rates["llama.cpp"][n], rates["atlasrt"][n]
        spread = lambda v: f"{min(v):.1f} / {statistics.median(v):.1f} / {max(v):.1f}"
        print(f"| {n} | {spread(theirs)} | {spread(ours)} | {statistics.median(ours) / statistics.median(theirs):.2f} |")


main()
