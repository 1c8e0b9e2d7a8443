#!/bin/sh
# Runs every fuzz target of the tree for a time each: tools/fuzz.sh 60s
set -eu
time=${1:-60s}
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
    sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$file" | while read -r target; do
        echo "== $(dirname "$file") $target for $time"
        go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$(dirname "$file")" </dev/null
    done
done
