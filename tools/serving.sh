#!/bin/sh
# Runs a command while a server runs: tools/serving.sh "SERVER COMMAND" COMMAND [ARGUMENT...]
# The server's command runs in a shell, in the root of the tree, and finds a free port in ATLAS_PORT; COMMAND starts once it is ready.
# If COMMAND fails, what the server said is shown.
set -eu
server=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)
log=$(mktemp)
ATLAS_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export ATLAS_PORT
(cd "$root" && eval "exec $server") 2>"$log" &
process=$!
trap 'kill $process 2>/dev/null; wait $process 2>/dev/null || true; rm -f "$log"' EXIT
tries=0
until curl -sf "http://127.0.0.1:$ATLAS_PORT/readyz" >/dev/null; do
    tries=$((tries + 1))
    kill -0 $process 2>/dev/null && [ $tries -lt 1200 ] || { cat "$log"; exit 1; }
    sleep 0.1
done
export ATLAS_URL="http://127.0.0.1:$ATLAS_PORT"
"$@" || { status=$?; tail -n 50 "$log" | grep -v level=INFO | cut -c1-300 || true; exit $status; }
