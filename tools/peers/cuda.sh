#!/bin/sh
# Measures the kernels of a GPU beside PyTorch's on the same machine, and prints a Markdown table.
#
# usage: tools/peers/cuda.sh [HARDWARE] >tools/peers/cuda.md
#
# HARDWARE is h200 when not given. ATLASRT=bin/atlasrt is the program, OPS=Linear,Logits only some operations. Needs `make
# build`, the GPU, and Python 3 with PyTorch 2.8 or later. Run it on a machine that does nothing else.
set -eu

fail() {
    echo "cuda.sh: $*" >&2
    exit 1
}

case ${1:-} in
-*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
hardware=${1:-h200}
cd "$(dirname "$0")/../.."
program=${ATLASRT:-bin/atlasrt} ops=${OPS:-}
[ -x "$program" ] || fail "there is no $program: run \`make build\`"
python3 -c 'import torch' 2>/dev/null || fail "python3 has no torch: install PyTorch with CUDA"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
python3 tools/peers/cuda_peers.py --op "$ops" >"$scratch/peers.json" || fail "cuda_peers.py failed; its reason is above"
"$program" ops bench --hardware "$hardware" ${ops:+--op "$ops"} --json >"$scratch/ours.json" ||
    fail "$program ops bench failed; its reason is above"
python3 tools/peers/cuda_report.py "$scratch/ours.json" "$scratch/peers.json" \
    "$(git describe --always --dirty 2>/dev/null || echo unknown)"
