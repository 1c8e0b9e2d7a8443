#!/bin/sh
# Puts clients of others, at pinned versions, to a server that follows a script: tools/clients.sh go|sdks|frameworks|all
# Packages of Python come into .cache, those of JavaScript into conformance/. Each client prints a line for each check and its count.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
cache=$root/.cache/conformance
mkdir -p "$cache"
export CGO_ENABLED=0 ATLAS_RESULTS="$cache/results.tsv"
go build -tags nomsgpack -o bin/scripted ./atlasrt/internal/scripted || exit 1
: >"$ATLAS_RESULTS"
status=0
start=$(date +%s)

# part NAME...: says what begins, and how many seconds went before.
part() { echo "== $* ($(($(date +%s) - start)) s)"; }

# python NAME PROGRAM...: runs programs with the packages of conformance/python/NAME.txt.
python() {
    name=$1
    shift
    list=conformance/python/$name.txt
    if ! cmp -s "$list" "$cache/$name/installed.txt"; then
        part "Python packages of $list"
        rm -rf "${cache:?}/$name"
        python3 -m venv "$cache/$name" && "$cache/$name/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$list" &&
            cp "$list" "$cache/$name/installed.txt" || exit 1
    fi
    for program; do
        part "$program.py"
        tools/scripted.sh "$cache/$name/bin/python" "conformance/python/$program.py" || status=1
    done
}

# javascript FOLDER PROGRAM...: runs programs with the packages that a folder's lock file names.
javascript() {
    folder=conformance/$1
    shift
    if ! cmp -s "$folder/package-lock.json" "$folder/node_modules/installed.json"; then
        part "JavaScript packages of $folder"
        (cd "$folder" && npm ci --silent --no-audit --no-fund && cp package-lock.json node_modules/installed.json) || exit 1
    fi
    for program; do
        part "$program.mjs"
        tools/scripted.sh node "$folder/$program.mjs" || status=1
    done
}

golang() {
    part "Go, and the sessions of agents"
    rm -f "$cache/go.failed"
    { (cd conformance && ../tools/scripted.sh go test -count=1 -p 1 -v ./sdk ./sessions) 2>&1 || touch "$cache/go.failed"; } |
        grep --line-buffered -vE '^ *(=== |--- PASS|PASS)'
    test ! -e "$cache/go.failed" || status=1
}

sdks() {
    golang
    python sdk sdk_openai sdk_anthropic
    javascript js sdk_openai sdk_anthropic
}

frameworks() {
    python frameworks litellm_client langchain_client llama_index_client pydantic_ai_client instructor_client
    javascript ai-sdk ai_sdk
}

case ${1:-} in
go) golang ;;
sdks) sdks ;;
frameworks) frameworks ;;
all)
    sdks
    frameworks
    (cd conformance && go run ./table "$ATLAS_RESULTS" >../docs/CLIENTS.md) || exit 1
    ;;
*)
    echo "usage: tools/clients.sh go|sdks|frameworks|all" >&2
    exit 2
    ;;
esac
part "all clients were asked"
awk -F '\t' '$2 == "version" {next} {all[$1]++; if ($4 == "ok") ok[$1]++} END {for (c in all) printf "%-24s %d of %d\n", c, ok[c], all[c]}' "$ATLAS_RESULTS" | sort
exit $status
