#!/bin/sh
# Compiles kernels and server for arm64 and runs them under an emulator, with the features that some processors lack and
# without: tools/arm64.sh [short]. Short runs a few operations; in full it runs all of them and the golden checkpoints,
# and compares the text of SmolLM2 with this machine's, which takes some ten minutes.
set -eu
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if [ -z "$qemu" ] || ! command -v aarch64-linux-gnu-gcc >/dev/null; then
    echo "arm64: no cross compiler or no emulator here (make arm64-toolchain)"
    [ -n "${CI:-}" ] && exit 1 # there it must run
    exit 0
fi
export QEMU_LD_PREFIX="${QEMU_LD_PREFIX:-/usr/aarch64-linux-gnu}" CGO_ENABLED=0
bin/atlasc build --hw cpu-arm64
GOARCH=arm64 go build -tags nomsgpack -trimpath -ldflags '-s -w' -o bin/arm64/atlasrt ./atlasrt

ops="--op RMSNorm --op SwiGLU --op Linear"
[ "${1:-}" = short ] || ops=
for cpu in max neoverse-n1; do # the first has i8mm and bf16, the second neither
    echo "== operations on $cpu"
    "$qemu" -cpu $cpu bin/arm64/atlasrt ops test --hardware cpu-arm64 --short --patience 30m $ops
done
[ "${1:-}" = short ] && exit 0

echo "== device and golden checkpoints"
GOARCH=arm64 go test -tags nomsgpack -exec "$qemu -cpu max" -timeout 60m ./atlasrt/device/cpu
CI=true GOARCH=arm64 go test -tags nomsgpack -exec "$qemu -cpu max" -timeout 60m -run 'TestExactKernels|TestDefaultKernels' ./atlasrt

echo "== SmolLM2"
chat="run --model smollm2 --temperature 0 --max-tokens 8 --max-context 128"
here=$(bin/atlasrt $chat "Name three primary colours.")
there=$("$qemu" -cpu max bin/arm64/atlasrt $chat "Name three primary colours.")
printf 'here:  %s\narm64: %s\n' "$here" "$there"
[ "$here" = "$there" ]
