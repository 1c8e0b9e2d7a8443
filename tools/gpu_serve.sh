#!/bin/sh
# What a server does on a GPU: it answers many at once and ends with 0, says what is missing where memory is, and leaves nothing behind
# when it is killed. Beside atlasrt, its cache, rates.py and qwen3-*.json, as `make gpu-tests` packs them:
#   ./gpu_serve.sh [hardware]
set -eu
cd "$(dirname "$0")"
hardware=${1:-h200} port=8765
url=http://127.0.0.1:$port
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits; }
fail() { echo "gpu_serve: $*"; exit 1; }
# up PID: waits for a server to be ready.
up() {
    for _ in $(seq 600); do
        [ "$(curl -s -o /dev/null -w '%{http_code}' $url/health)" = 200 ] && return
        kill -0 "$1" || fail "the server ended before it was ready"
        sleep 0.1
    done
    fail "the server was not ready after a minute"
}
before=$(used)

echo "== SmolLM2 over HTTP"
./atlasrt serve --hardware "$hardware" --cache cache --model smollm2 --port $port & server=$!
up $server
python3 rates.py --url $url 1 8 16 64
kill $server
wait $server || fail "the server ended with $?"

# load: a model of 57 GiB that stays busy for long.
load() { ./atlasrt bench --hardware "$hardware" --load-dummy qwen3-30b-a3b.json --memory 90GiB --max-context 32768 --prompt 0 --decode 30000 --repeat 9 >/dev/null & }
# taken PID MIB: waits until a process has taken so much memory.
taken() {
    while [ "$(used)" -lt $((before + $2)) ]; do
        kill -0 "$1" || fail "the model's process ended while it loaded"
        sleep 0.2
    done
}

echo "== memory that another process has"
load && other=$!
taken $other 60000
status=0
./atlasrt bench --hardware "$hardware" --load-dummy qwen3-30b-a3b.json --prompt 0 --memory 100GiB >/dev/null 2>missing || status=$?
cat missing
[ $status = 1 ] || fail "the second model ended with $status, not 1"
grep -q memory missing || fail "nothing says that memory is missing"

echo "== a process that is killed at work, and one that is killed while it loads"
kill -9 $other && wait $other || true
load && other=$!
taken $other 5000
kill -9 $other && wait $other || true
sleep 1
[ "$(used)" -le $((before + 100)) ] || fail "$(used) MiB are in use, $before were before"
echo "== all passed"
