#!/bin/sh
# Prints how far the answers of quantised kernels are from exact ones, for atlasrt and for llama.cpp, on SmolLM2-135M.
#
# usage: tools/peers/kl.sh [FILE_TYPE...]
#
# FILE_TYPE is Q4_1 when not given; others (Q4_0, Q4_K_M, Q8_0, BF16) are made of it as tools/peers/compare.sh makes them. Exact is
# for atlasrt the same file with --exact, and for llama.cpp the file requantised to F32. Both read tools/testdata/prose/prose.txt in
# windows of 512 tokens and count what follows the first 256 of each, as llama-perplexity does; each has its own tokenizer's marks
# of beginnings. THREADS=2 is what the environment may change, PEERS=.cache/peers and TEXT too. Needs `make build`, `make testdata`
# and `tools/peers/llama.cpp.sh .cache/peers llama-quantize llama-perplexity`.
set -eu

fail() {
    echo "kl.sh: $*" >&2
    exit 1
}

cd "$(dirname "$0")/../.."
threads=${THREADS:-2} peers=${PEERS:-.cache/peers} text=${TEXT:-tools/testdata/prose/prose.txt}
bin=$peers/llama.cpp/build/bin
plain=.cache/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
case "$threads" in
'' | *[!0-9]* | 0*) fail "THREADS is a number from 1, not \"$threads\"" ;;
esac
case ${1:-} in
-*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
[ $# -gt 0 ] || set -- Q4_1
[ -x bin/atlasrt ] || fail "there is no bin/atlasrt: run \`make build\`"
[ -f "$plain" ] || fail "there is no $plain: run \`make testdata\`"
[ -f "$text" ] || fail "there is no $text"
for tool in llama-quantize llama-perplexity; do
    [ -x "$bin/$tool" ] || fail "there is no $bin/$tool: run \`tools/peers/llama.cpp.sh $peers llama-quantize llama-perplexity\`"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

quantise() { # from, to, type
    [ ! -f "$2" ] || return 0
    "$bin/llama-quantize" --allow-requantize "$1" "$scratch/model.gguf" "$3" >"$scratch/log" 2>&1 ||
        fail "llama-quantize failed: $(tail -n 5 "$scratch/log")"
    mv "$scratch/model.gguf" "$2"
}

perplexity() { # model, flags of the comparison
    model=$1
    shift
    "$bin/llama-perplexity" -m "$model" -t "$threads" -f "$text" -c 512 -b 512 --kl-divergence-base "$scratch/base" "$@" \
        >"$scratch/log" 2>&1 || fail "llama-perplexity failed: $(tail -n 5 "$scratch/log")"
}

for type; do
    case $type in
    *[!A-Z0-9_]*) fail "there is no file type $type" ;;
    esac
    file=$peers/SmolLM2-135M-Instruct.$type.gguf
    if [ "$type" = Q4_1 ]; then
        file=$plain
    elif [ "$type" = BF16 ]; then
        quantise "$plain" "$file" BF16
    else
        quantise "$plain" "$peers/SmolLM2-135M-Instruct.BF16.gguf" BF16
        quantise "$peers/SmolLM2-135M-Instruct.BF16.gguf" "$file" "$type"
    fi
    echo "== $type, atlasrt"
    bin/atlasrt eval "$text" --model "$file" --threads "$threads" --window 512 --skip 256 --against-exact
    echo "== $type, llama.cpp"
    quantise "$file" "$scratch/exact.gguf" F32
    perplexity "$scratch/exact.gguf"
    perplexity "$file" --kl-divergence
    grep -E '^(Mean PPL|Mean +KLD|Maximum KLD|99\.0%   KLD|Same top p)' "$scratch/log"
    rm -f "$scratch/base" "$scratch/exact.gguf"
done
