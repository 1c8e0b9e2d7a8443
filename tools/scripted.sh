#!/bin/sh
# Serves the scripts of conformance/ while a command runs: tools/scripted.sh [-f "SERVER FLAGS"] COMMAND [ARGUMENT...]
# The command finds the server in ATLAS_SCRIPTED, ATLAS_KEY and ATLAS_MODEL.
set -eu
flags=
if [ "$1" = -f ]; then flags=$2; shift 2; fi
export ATLAS_KEY=conformance-key ATLAS_MODEL=scripted
# shellcheck disable=SC2016 # the inner shells know these
exec "$(dirname "$0")/serving.sh" 'bin/scripted -address "127.0.0.1:$ATLAS_PORT" -keys "$ATLAS_KEY,conformance-other" -names "$ATLAS_MODEL" '"$flags" \
    sh -c 'ATLAS_SCRIPTED=$ATLAS_URL; unset ATLAS_URL; export ATLAS_SCRIPTED; exec "$@"' sh "$@"
