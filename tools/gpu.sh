#!/bin/sh
# What only a GPU can prove. `make gpu-tests` packs this file with static programs and checkpoints into bin/gpu.tgz; unpack that on
# the machine with the GPU and run it there:
#   ./gpu.sh [hardware] [ops|golden|sanitizer ...]
set -u
cd "$(dirname "$0")"
hardware=${1:-h200}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- ops golden sanitizer
export ATLAS_TESTDATA="$PWD/shared" ATLAS_CACHE="$PWD/cache"
failed=0
check() { echo "== $*"; "$@" || { echo "== failed: $*"; failed=1; }; }
./atlasrt doctor || exit
for what in "$@"; do
    case $what in
    ops) check ./atlasrt ops test --hardware "$hardware" ;;
    golden) check ./golden.test -test.run "/.*/$hardware|SmolLM2/$hardware|Circumstances/$hardware|GPUAgrees" -test.skip /cpu- ;;
    sanitizer)
        for tool in memcheck racecheck; do
            check compute-sanitizer --tool $tool --error-exitcode 9 --kernel-name kernel_substring=atlas_ ./atlasrt ops test --hardware "$hardware" --short
        done ;;
    *) echo "unknown: $what (ops, golden or sanitizer)"; exit 2 ;;
    esac
done
exit $failed
