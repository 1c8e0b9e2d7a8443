#!/usr/bin/env python3
"""Records which tokens the package llguidance allows at states of answers to JSON schemas.

usage: masks.py DIR CASES.jsonl

CASES.jsonl is of MaskBench's form. DIR/tokenizers must be there (see tokenizers.py). Writes DIR/masks/NAME.jsonl for two published
tokenizers: a line is {"name", "tokens", "masks", "done"}: the case, the first tokens of its first valid instance, before each of them the key of
the allowed tokens, and whether the text may end there. Cases that llguidance refuses are left out. DIR/masks/NAME.sets.json has the sets by
key: bits of tokens, the lowest first, compressed with zlib, in base64. White space is not allowed. The package comes from PyPI and is pinned by
checksum. Nothing is done when the files are there and neither this script nor the cases have changed. Needs Python 3 and pip.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zlib

TOKENIZERS = ("qwen3", "llama3")
REQUIREMENT = """llguidance==1.9.1 \\
    --hash=sha256:dfac6021d9c4c5ef16b3a1d336c05ca5e8208ff30dec29d1c63ebcafbee3a346 \\
    --hash=sha256:31b75c9f6e09d000d062ef7e4eb3bcb3759fc1eda5619be50fdd8a830b0e8bdf
"""  # Linux x86-64, Linux arm64
EVERY = 3  # cases
TOKENS = 40  # of an instance at most
SPACES = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}


class Failure(Exception):
    """What went wrong and what to do about it."""


def install(folder):
    """Puts llguidance into folder, and in front of what Python imports."""
    requirements = os.path.join(folder, "requirements.txt")
    with open(requirements, "w", encoding="utf-8") as file:
        file.write(REQUIREMENT)
    target = os.path.join(folder, "packages")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--root-user-action=ignore", "--target", target, "--requirement", requirements]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Failure(f"pip install llguidance failed (no network?):\n{done.stdout}")
    sys.path.insert(0, target)
    import llguidance

    return llguidance


def walk(llguidance, tokenizer, case, sets):
    """The states of a case's first valid instance; None where there are none."""
    valid = [test["data"] for test in case["tests"] if test["valid"]]
    if not valid:
        return None
    if not isinstance(case["schema"], dict):
        return None
    # Without no_forcing, only the tokens are allowed that the tokenizer would cut forced text into.
    grammar = '%llguidance {"no_forcing": true}\nstart: %json ' + json.dumps({**case["schema"], "x-guidance": SPACES})
    states = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
    if states.is_error():
        return None
    line = {"name": case["name"], "tokens": [], "masks": [], "done": []}
    for token in tokenizer.tokenize_str(json.dumps(valid[0], ensure_ascii=False, separators=(",", ":")))[:TOKENS]:
        mask = states.compute_bitmask()
        key = hashlib.sha256(mask).hexdigest()[:16]
        if key not in sets:
            sets[key] = base64.b64encode(zlib.compress(mask)).decode()
        line["masks"].append(key)
        line["done"].append(states.is_accepting())
        line["tokens"].append(token)
        if not states.consume_token(token):
            break
    return line


def record(llguidance, root, name, cases, target):
    tokenizer = llguidance.LLTokenizer(os.path.join(root, "tokenizers", name, "tokenizer.json"))
    sets = {}
    with open(os.path.join(target, name + ".jsonl"), "w", encoding="utf-8") as file:
        for case in cases[::EVERY]:
            line = walk(llguidance, tokenizer, case, sets)
            if line:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
    with open(os.path.join(target, name + ".sets.json"), "w", encoding="utf-8") as file:
        json.dump(sets, file)


def update(root, path):
    """Brings the files up to date."""
    digest = hashlib.sha256()
    for source in (__file__, path):
        with open(source, "rb") as file:
            digest.update(file.read())
    stamp = digest.hexdigest()
    target = os.path.join(root, "masks")
    mark = os.path.join(target, "stamp")
    os.makedirs(target, exist_ok=True)
    if os.path.exists(mark):
        with open(mark, encoding="utf-8") as file:
            if file.read() == stamp:
                print(f"masks: {target} is current")
                return
        os.remove(mark)
    with open(path, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target) as scratch:
        llguidance = install(scratch)
        for name in TOKENIZERS:
            record(llguidance, root, name, cases, target)
            print(f"masks: {name}, done", flush=True)
    with open(mark, "w", encoding="utf-8") as file:
        file.write(stamp)


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        update(sys.argv[1], sys.argv[2])
    except (Failure, OSError) as failure:
        sys.exit(f"masks: {failure}")


if __name__ == "__main__":
    main()
