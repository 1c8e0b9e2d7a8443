#!/bin/sh
# Fetches and builds llama.cpp, to measure against: DIR/llama.cpp/build/bin/llama-bench and llama-quantize
#
# usage: tools/peers/llama.cpp.sh [DIR [TARGET...]]
#
# DIR is .cache/peers when not given, TARGET llama-bench llama-quantize; llama-server is another one. JOBS=N sets how many compilers run.
# CUDA=ARCH (90 for an H200) builds for a GPU as well, into build-cuda; nvcc is in the path, and cuBLAS beside it.
# The source is vendor/llama.cpp of the PyPI sdist below (77 MB), fetched with pip. What is there is not done again.
# Needs Python 3 with pip, cmake, make or ninja, a C and C++ compiler, and 1 GB of free space.
set -eu

VERSION=0.3.36
SHA256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
COMMIT=0c1e570                   # of llama.cpp, from the sdist's .git/modules/vendor/llama.cpp/HEAD
BACKEND=scikit-build-core==1.1.2 # pip asks it for the sdist's metadata, though nothing of that is used

fail() {
    echo "llama.cpp.sh: $*" >&2
    exit 1
}

need() { # program, how to get it
    command -v "$1" >/dev/null || fail "$1 is missing: $2"
}

fetch() { # to $1: the sdist's file, checked
    python3 -m pip --version >/dev/null 2>&1 || fail "python3 has no pip: install it (Debian: apt-get install python3-pip)"
    echo "llama.cpp.sh: fetching llama-cpp-python $VERSION (77 MB) with pip"
    python3 -m pip install --quiet --only-binary=:all: --target "$scratch/backend" "$BACKEND" ||
        fail "pip could not install $BACKEND; its reason is above"
    # pip checks the hash before it runs anything of the sdist. Its temporary copy goes to where there is room.
    echo "llama-cpp-python==$VERSION --hash=sha256:$SHA256" >"$scratch/requirements.txt"
    mkdir "$scratch/tmp"
    PYTHONPATH="$scratch/backend" TMPDIR="$scratch/tmp" python3 -m pip download --quiet --no-cache-dir \
        --no-deps --no-binary=:all: --no-build-isolation --require-hashes \
        --dest "$scratch/sdist" --requirement "$scratch/requirements.txt" ||
        fail "pip could not fetch the sdist; its reason is above (no network? set HTTPS_PROXY, or PIP_INDEX_URL to a mirror of PyPI)"
    set -- "$1" "$scratch"/sdist/*
    [ $# -eq 2 ] && [ -f "$2" ] || fail "pip reported success but left no single file in $scratch/sdist"
    mv "$2" "$1"
}

unpack() { # the sdist's file $1 to $source
    echo "$SHA256  $1" | sha256sum --check --status ||
        fail "$1 has another sha256 than $SHA256 (a mirror altered it, or the download broke; run this again)"
    mkdir "$scratch/source"
    # Without its .git, or git would be asked about the repository around it.
    tar -xzf "$1" -C "$scratch/source" --strip-components=3 --exclude=.git "llama_cpp_python-$VERSION/vendor/llama.cpp"
    echo "$SHA256" >"$scratch/source/.sha256"
    rm -rf "$source"
    mv "$scratch/source" "$source"
}

case ${1:-} in
-*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
dir=${1:-.cache/peers}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- llama-bench llama-quantize

need python3 "install it (Debian: apt-get install python3 python3-pip)"
need cmake "install it (Debian: apt-get install cmake, or pip install cmake)"
export CC="${CC:-gcc}" CXX="${CXX:-g++}" PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
need "$CC" "install a C compiler (Debian: apt-get install gcc), or set CC"
need "$CXX" "install a C++ compiler (Debian: apt-get install g++), or set CXX"
[ -n "${CMAKE_GENERATOR:-}" ] || need make "install it (Debian: apt-get install make), or set CMAKE_GENERATOR=Ninja"

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
source=$dir/llama.cpp
if [ "$(cat "$source/.sha256" 2>/dev/null)" != "$SHA256" ]; then
    free=$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1024) }')
    [ "$free" -ge 1000 ] || fail "$dir has $free MiB of free space and 1000 MiB are needed (make room)"
    scratch=$(mktemp -d "$dir/.fetch-XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT TERM
    fetch "$scratch/sdist.tar.gz"
    unpack "$scratch/sdist.tar.gz"
fi

build=$source/build gpu=''
if [ -n "${CUDA:-}" ]; then
    need nvcc "install CUDA's toolkit and add its bin to the path"
    build=$source/build-cuda gpu="-DGGML_CUDA=ON -DGGML_CUDA_NO_VMM=ON -DGGML_CUDA_NCCL=OFF -DCMAKE_CUDA_ARCHITECTURES=$CUDA-real"
fi

# Static, so that the programs are files of their own; no web page, which would be downloaded.
# shellcheck disable=SC2086 # what a GPU wants is words
cmake -S "$source" -B "$build" $gpu -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON -DGGML_CCACHE=OFF \
    -DLLAMA_OPENSSL=OFF -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
    -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_COMMIT=$COMMIT -DLLAMA_BUILD_NUMBER=0 \
    >"$dir/cmake.log" 2>&1 || fail "cmake failed: $(tail -n 20 "$dir/cmake.log")"
cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "$@" ||
    fail "the build failed; the compiler's reason is above (out of memory? run it with JOBS=1)"
for target; do
    echo "llama.cpp.sh: built $build/bin/$target"
done
