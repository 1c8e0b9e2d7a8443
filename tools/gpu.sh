#!/bin/sh
# What only a GPU can prove. `make gpu-tests` packs this file with static programs and checkpoints into bin/gpu.tgz; unpack that on
# the machine with the GPU and run it there:
#   ./gpu.sh [hardware] [ops|jitter|golden|steps|serve|start|sanitizer ...]
set -u
cd "$(dirname "$0")"
hardware=${1:-h200}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- ops jitter golden steps serve start sanitizer
export ATLAS_TESTDATA="$PWD/shared" ATLAS_CACHE="$PWD/cache"
failed=0
check() { echo "== $*"; "$@" || { echo "== failed: $*"; failed=1; }; }
./atlasrt doctor || exit
for what in "$@"; do
    case $what in
    ops)
        check ./atlasrt ops test --hardware "$hardware"
        # inputs for which tensor cores that sum 512 columns, not 256, lose more than is allowed
        check ./atlasrt ops test --hardware "$hardware" -o Linear --match "f8 40×640 rows 2051" --seed 7529867449013541037 ;;
    jitter) check ./atlasrt ops test --hardware "$hardware" --kernels jitter --patience 10m ;; # warps wait at random
    golden) check ./golden.test -test.run "/.*/$hardware|SmolLM2/$hardware|Circumstances/$hardware|GPUAgrees" -test.skip /cpu- ;;
    steps) # at sizes of real models, of every scheme and of many sizes: a kernel that waits for itself does so here
        for type in bf16 q8_0 q4_0 q4_1 q6_k f8 f8block nvfp4; do
            for model in qwen3-8b qwen3-30b-a3b; do
                for exact in "" --exact; do
                    check timeout 120 ./atlasrt bench --hardware "$hardware" $exact --load-dummy $model.json --dummy-type $type \
                        --max-context 512 --context 37 --prompt 150,300,480 --concurrency 1,3,5,7,12,20,33,48,64 --decode 6 --repeat 2
                done
            done
        done ;;
    serve) check ./gpu_serve.sh "$hardware" ;;
    start) # from a checkpoint of 8 billion weights, just written and so in the page cache, to the second token, by stages
        for type in bf16 f8block nvfp4; do
            rm -rf start
            check ./atlasrt dummy qwen3-8b.json start --type $type
            check ./atlasrt bench --hardware "$hardware" --model start --max-context 2048 --prompt 0 --concurrency 1 --decode 40
        done
        rm -rf start ;;
    sanitizer)
        for tool in memcheck racecheck; do
            check compute-sanitizer --tool $tool --error-exitcode 9 --kernel-name kernel_substring=atlas_ ./atlasrt ops test --hardware "$hardware" --short --patience 30m
        done ;;
    *) echo "unknown: $what (ops, jitter, golden, steps, serve, start or sanitizer)"; exit 2 ;;
    esac
done
exit $failed
