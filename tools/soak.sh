#!/bin/sh
# Puts many clients in all dialects to a server that follows scripts: tools/soak.sh [SECONDS]
set -eu
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 ATLAS_SOAK="${1:-60}"
go build -tags nomsgpack -o bin/scripted ./atlasrt/internal/scripted
exec tools/scripted.sh -f "-scripts conformance/soak/scripts.json" go -C conformance test -count=1 -v ./soak
