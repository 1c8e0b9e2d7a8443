#!/bin/sh
# Puts the official OpenAI client, and for a while many at a time, to SmolLM2 on a free port. Then both vendors' clients in three
# languages, the sessions of agents, and the many, come to a server that follows a script: tools/conformance.sh [SOAK-SECONDS]
set -eu
soak=${1:-5}
log=$(mktemp)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
key=conformance-key
bin/atlasrt serve --model smollm2 --port "$port" --api-key "$key" --max-context 2048 2>"$log" &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true; rm -f "$log"' EXIT
tries=0
until curl -sf "http://127.0.0.1:$port/readyz" >/dev/null; do
    tries=$((tries + 1))
    kill -0 $server 2>/dev/null && [ $tries -lt 300 ] || { cat "$log"; exit 1; }
    sleep 0.1
done
(cd conformance && ATLAS_URL="http://127.0.0.1:$port" ATLAS_KEY=$key ATLAS_MODEL=smollm2 ATLAS_SOAK=$soak go test -count=1 -p 1 -v . ./soak) || { cat "$log"; exit 1; }
tools/clients.sh sdks
tools/soak.sh "$soak"
