#!/bin/sh
# Measures atlasrt beside what it is compared with, in turns on the same machine, and prints a Markdown table.
#
# usage: tools/peers/compare.sh [FILE_TYPE]             against llama.cpp, on SmolLM2-135M
#        tools/peers/compare.sh --dummy CONFIG [TYPE]   against the speed at which memory is read, on dummy weights
#        tools/peers/compare.sh --model PATH            against both, on a GGUF file; a folder is none of llama.cpp's
#
# FILE_TYPE is Q4_1 when not given, which is what there is; others (Q4_K_M, Q4_0, Q8_0, BF16) are made of it by llama.cpp's
# llama-quantize, by way of BF16. TYPE is bf16 when not given (q8_0, q4_0 and q4_k are others). PATH is a model whose head is its
# embedding; tools/peers/hybrid.sh makes some.
#
# The environment may change PEERS=.cache/peers, THREADS=2, ROUNDS=5, and PROMPT=512 (0: none) and DECODE=64, the tokens of each.
# REPEAT=1 is how often both are run in a round; the median counts. BEFORE is put before each program, LLAMA_FLAGS behind
# llama-bench's flags. Run it on a machine that does nothing else. If there is none:
#
#     BEFORE='chrt -f 60 timeout -s KILL 60 chrt -f 50' PROMPT=0 DECODE=4 REPEAT=20 tools/peers/compare.sh --model FILE
#
# stops everybody else but for a twentieth of each second, and most runs are so short that they meet none of it.
#
# atlasrt's weights lie on huge pages, which in a virtual machine are up to twice as fast. llama.cpp's do so with
# GLIBC_TUNABLES=glibc.malloc.hugetlb=1 and LLAMA_FLAGS='-lm none'.
#
# Needs `make build`, a C compiler and Python 3; for llama.cpp also `make testdata` and tools/peers/llama.cpp.sh.
set -eu

threads=${THREADS:-2} rounds=${ROUNDS:-5} prompt=${PROMPT:-512} decode=${DECODE:-64} repeat=${REPEAT:-1} before=${BEFORE:-} llama_flags=${LLAMA_FLAGS:-}

fail() {
    echo "compare.sh: $*" >&2
    exit 1
}

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

config='' type=bf16 filetype=Q4_1 given='' peer=llama
case ${1:-} in
'') ;;
--dummy)
    [ $# -eq 2 ] || [ $# -eq 3 ] || usage
    [ -f "$2" ] || fail "there is no $2 (tools/peers/llama-1b.json is one)"
    config=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
    type=${3:-bf16} peer=''
    ;;
--model)
    [ $# -eq 2 ] || usage
    [ -e "$2" ] || fail "there is no $2"
    given=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
    [ -f "$given" ] || peer=''
    ;;
-* | *[!A-Z0-9_]*) usage ;;
*)
    [ $# -eq 1 ] || usage
    filetype=$1
    ;;
esac
for n in "$threads" "$rounds" "$decode" "$repeat"; do
    case $n in
    '' | *[!0-9]* | 0*) fail "THREADS, ROUNDS, DECODE and REPEAT are numbers from 1, not \"$n\"" ;;
    esac
done
case $prompt in
'' | *[!0-9]*) fail "PROMPT is a number from 0, not \"$prompt\"" ;;
esac

cd "$(dirname "$0")/../.."
peers=${PEERS:-.cache/peers}
llama=$peers/llama.cpp/build/bin/llama-bench
quantize=$peers/llama.cpp/build/bin/llama-quantize
plain=.cache/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
model=${given:-$plain}
command -v python3 >/dev/null || fail "python3 is missing: install it (Debian: apt-get install python3)"
command -v "${CC:-gcc}" >/dev/null || fail "${CC:-gcc} is missing: install a C compiler (Debian: apt-get install gcc), or set CC"
[ -x bin/atlasrt ] || fail "there is no bin/atlasrt: run \`make build\`"
if [ -n "$peer" ]; then
    [ -x "$llama" ] || fail "there is no $llama: run \`tools/peers/llama.cpp.sh $peers\`"
    [ -n "$given" ] || [ -f "$plain" ] || fail "there is no $plain: run \`make testdata\`"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
"${CC:-gcc}" -O3 -march=native -pthread -o "$scratch/read" tools/peers/read.c || fail "tools/peers/read.c does not compile"
[ "$rounds" -ge 5 ] || echo "compare.sh: fewer than 5 rounds show that it runs, not how fast" >&2

# A model file of a type, by way of BF16. What there is is not made again.
make_model() { # type
    model=$peers/SmolLM2-135M-Instruct.$1.gguf
    [ ! -f "$model" ] || return 0
    [ -x "$quantize" ] || fail "there is no $quantize: run \`tools/peers/llama.cpp.sh $peers\`"
    from=$plain
    if [ "$1" != BF16 ]; then
        make_model BF16
        from=$model model=$peers/SmolLM2-135M-Instruct.$1.gguf
    fi
    echo "compare.sh: making $model" >&2
    "$quantize" --allow-requantize "$from" "$scratch/model.gguf" "$1" >"$scratch/error" 2>&1 ||
        fail "llama-quantize failed: $(tail -n 5 "$scratch/error")"
    mv "$scratch/model.gguf" "$model"
}
[ -n "$config$given" ] || [ "$filetype" = Q4_1 ] || make_model "$filetype"

# From one token, as llama-bench does, which generates from an empty context.
common="--threads $threads --prompt $prompt --decode $decode --context 1 --concurrency 1 --repeat $repeat --json"

# Percent of the processors that others use. Two threads that wait for each other lose most of their speed to one of those.
others() {
    { grep '^cpu ' /proc/stat && sleep 2 && grep '^cpu ' /proc/stat; } | awk '
        { idle = $5 + $6 - idle; all = $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 - all }
        END { printf "%d\n", 100 * (1 - idle / all) + 0.5 }'
}

# shellcheck disable=SC2086 # flags and what comes before a program are words
run_read() {
    $before "$scratch/read" "$threads" >"$scratch/$1.read" 2>"$scratch/error"
}

# shellcheck disable=SC2086
run_llama() {
    $before "$llama" -m "$model" -t "$threads" -p $prompt -n $decode -r $repeat $llama_flags -o json >"$scratch/$1.llama" 2>"$scratch/error"
}

# shellcheck disable=SC2086
run_atlas() {
    if [ -n "$config" ]; then
        $before bin/atlasrt bench --load-dummy "$config" --dummy-type "$type" $common >"$scratch/$1.atlas" 2>"$scratch/error"
    else
        $before bin/atlasrt bench --model "$model" $common >"$scratch/$1.atlas" 2>"$scratch/error"
    fi
}

{
    date -u '+date: %Y-%m-%d %H:%M UTC'
    awk -F' *\t*: ' '!($1 in cpu) { cpu[$1] = $2 }
        END { printf "CPU: %s, family %s, model %s\n", cpu["model name"], cpu["cpu family"], cpu["model"] }' /proc/cpuinfo
    echo "processors: $(nproc), threads used: $threads"
    echo "atlasrt: $(git describe --always --dirty 2>/dev/null || echo unknown), bin/atlasrt of $(date -u -r bin/atlasrt '+%Y-%m-%d %H:%M UTC')"
    if [ -n "$config" ]; then
        echo "command: \`bin/atlasrt bench --load-dummy $(basename "$config") --dummy-type $type $common\`"
    else
        echo "command: \`bin/atlasrt bench --model $(basename "$model") $common\`"
    fi
    [ -z "$peer" ] || echo "command: \`llama-bench -m $(basename "$model") -t $threads -p $prompt -n $decode -r $repeat${llama_flags:+ $llama_flags} -o json\`"
    echo "command: \`read $threads\` (1 GiB, best of 10 passes)"
    [ -z "$before" ] || echo "before each command: \`$before\`"
} >"$scratch/about"

round=1
while [ "$round" -le "$rounds" ]; do
    busy=$(others)
    echo "$busy" >>"$scratch/busy"
    [ "$busy" -le 5 ] || echo "compare.sh: others use $busy % of the processors: the figures are not worth much" >&2
    order='read llama atlas' # the one that is second here is first in the next round
    [ $((round % 2)) -eq 1 ] || order='read atlas llama'
    for what in $order; do
        [ "$what" != llama ] || [ -n "$peer" ] || continue
        echo "compare.sh: round $round of $rounds: $what" >&2
        "run_$what" "$round" || fail "$what failed: $(tail -n 5 "$scratch/error")"
    done
    round=$((round + 1))
done
echo "used by others before the rounds, % of the processors: $(paste -sd' ' "$scratch/busy")" >>"$scratch/about"
if [ -n "$given" ]; then
    bin/atlasrt plan --model "$given" --json >"$scratch/plan" || fail "atlasrt plan failed; its reason is above"
fi
python3 tools/peers/report.py "$scratch" ${config:+"$config" "$type"} ${given:+"$given"}
