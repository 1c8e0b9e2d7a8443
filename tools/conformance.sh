#!/bin/sh
# Puts the official OpenAI client, and for a while many at a time, to SmolLM2 on a free port. Then both vendors' clients in three
# languages, the sessions of agents, and the many, come to a server that follows a script: tools/conformance.sh [SOAK-SECONDS]
set -eu
export ATLAS_KEY=conformance-key ATLAS_MODEL=smollm2 ATLAS_SOAK="${1:-5}"
start=$(date +%s)

# part NAME...: says what begins, and how many seconds went before.
part() { echo "== $* ($(($(date +%s) - start)) s)"; }

part "a client of OpenAI's, and many at a time, against SmolLM2"
# shellcheck disable=SC2016 # the server's shell knows these
tools/serving.sh 'bin/atlasrt serve --model smollm2 --port "$ATLAS_PORT" --api-key "$ATLAS_KEY" --max-context 2048' \
    go -C conformance test -count=1 -p 1 -v . ./soak
part "clients of others, against a server that follows a script"
tools/clients.sh sdks
part "many clients for $ATLAS_SOAK s, against a server that follows a script"
tools/soak.sh "$ATLAS_SOAK"
part "all of it"
