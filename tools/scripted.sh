#!/bin/sh
# Serves the scripts of conformance/ on a free port while a command runs: tools/scripted.sh [-f "SERVER FLAGS"] COMMAND [ARGUMENT...]
# The command finds the server in ATLAS_SCRIPTED, ATLAS_KEY and ATLAS_MODEL.
set -eu
flags=
if [ "$1" = -f ]; then flags=$2; shift 2; fi
root=$(cd "$(dirname "$0")/.." && pwd)
log=$(mktemp)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export ATLAS_SCRIPTED="http://127.0.0.1:$port" ATLAS_KEY=conformance-key ATLAS_MODEL=scripted
# shellcheck disable=SC2086 # the flags are words
(cd "$root" && exec bin/scripted -address "127.0.0.1:$port" -keys "$ATLAS_KEY,conformance-other" -names "$ATLAS_MODEL" $flags) 2>"$log" &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true; rm -f "$log"' EXIT
tries=0
until curl -sf "$ATLAS_SCRIPTED/readyz" >/dev/null; do
    tries=$((tries + 1))
    kill -0 $server 2>/dev/null && [ $tries -lt 300 ] || { cat "$log"; exit 1; }
    sleep 0.1
done
"$@" || { status=$?; tail -n 50 "$log" | grep -v level=INFO | cut -c1-300 || true; exit $status; }
