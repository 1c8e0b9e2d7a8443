#!/bin/sh
# Makes models of made-up weights of one shape: a folder in bf16 and one in NVFP4, and GGUF files of the first in BF16 and Q4_0, by
# llama.cpp's own converter and quantiser. tools/peers/compare.sh --model measures each of them.
#
# usage: tools/peers/hybrid.sh DIR [CONFIG]
#
# DIR is where they go: bf16, nvfp4, BF16.gguf and Q4_0.gguf, 6 GB. What is there is not made again. CONFIG is
# tools/peers/qwen3.5-1b.json when not given. PEERS=.cache/peers is where tools/peers/llama.cpp.sh has built llama-quantize. Needs
# `make build`, and PYTHON=python3 with torch, transformers, numpy, safetensors and sentencepiece.
set -eu

fail() {
    echo "hybrid.sh: $*" >&2
    exit 1
}

case ${1:-} in
'' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
python=${PYTHON:-python3}
mkdir -p "$1"
dir=$(cd "$1" && pwd)
config=${2:-$(dirname "$0")/qwen3.5-1b.json}
[ -f "$config" ] || fail "there is no $config"
config=$(cd "$(dirname "$config")" && pwd)/$(basename "$config")
cd "$(dirname "$0")/../.."
llama=${PEERS:-.cache/peers}/llama.cpp
quantize=$llama/build/bin/llama-quantize
[ -x bin/atlasrt ] || fail "there is no bin/atlasrt: run \`make build\`"
[ -x "$quantize" ] || fail "there is no $quantize: run \`tools/peers/llama.cpp.sh\`"
"$python" -c 'import numpy, safetensors, sentencepiece, torch, transformers' ||
    fail "$python lacks a package: run \`$python -m pip install numpy safetensors sentencepiece torch transformers\`, or set PYTHON"

for type in bf16 nvfp4; do
    [ -e "$dir/$type" ] || bin/atlasrt dummy --type "$type" "$config" "$dir/$type"
done
made() { # file, command that writes its last argument
    file=$1
    shift
    [ ! -f "$file" ] || return 0
    "$@" >"$dir/log" 2>&1 || fail "$(basename "$1") failed: $(tail -n 5 "$dir/log")"
    mv "$file.part" "$file"
}
made "$dir/BF16.gguf" "$python" tools/testdata/gguf_hybrids.py --convert "$llama" "$dir/bf16" "$dir/BF16.gguf.part" bf16
made "$dir/Q4_0.gguf" "$quantize" "$dir/BF16.gguf" "$dir/Q4_0.gguf.part" Q4_0
rm -f "$dir/log"
