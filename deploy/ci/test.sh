#!/usr/bin/env bash
# Runs the tests and ends with their number, "N passed, N failed", alone on the last line.
#
#   test.sh unit         lint and unit tests: neither network nor Docker
#   test.sh integration  the tests against a real cluster in containers
#   test.sh all          both, unit tests first
#   test.sh verify       the tests against real clusters at full length on every supported version; writes docs/verification.md
set -uo pipefail
cd "$(dirname "$0")/../.."
here=deploy/ci
versions=${BALLAST_PULSAR_IMAGE:+${BALLAST_PULSAR_IMAGE##*:}}
versions=${versions:-4.2.4 5.0.1}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failed=0
runs=()

report() { "$results/testreport" "$@"; }
go build -o "$results/testreport" ./integration/testreport || exit 1
# events NAME COMMAND...: runs `go test -json`, shows what matters and keeps the events.
events() {
  local name=$1
  shift
  "$@" | report -save "$results/$name.json" || failed=1
  runs+=("$results/$name.json")
}

unit() {
  echo "== lint"
  $here/lint.sh "$results/lint.json" || failed=1
  runs+=("$results/lint.json")
  echo "== unit tests"
  events unit go test -json -race ./...
}

# Packages outside integration/ whose tests with the tag need a cluster: they share one.
tagged() { git grep -l --untracked '^//go:build integration' -- '*_test.go' ':!integration/' | xargs -r dirname | sort -u | sed 's|^|./|'; }

integration() {
  local version=$1 time=$2 others
  export BALLAST_PULSAR_VERSION=$version
  echo "== tests on Pulsar ${BALLAST_PULSAR_IMAGE:-$version}"
  events "integration-$version" $here/with-docker.sh go test -json -tags integration -count=1 -timeout "$time" ./integration/
  mapfile -t others < <(tagged)
  if [ ${#others[@]} -gt 0 ]; then
    events "packages-$version" $here/with-docker.sh go run ./integration/cluster -- \
      go test -json -tags integration -count=1 -p 1 -timeout "$time" "${others[@]}"
  fi
}

document() {
  local args=() version
  for version in $versions; do args+=("Pulsar $version=$results/all-$version"); done
  report -markdown docs/verification.md "${args[@]}" >/dev/null || failed=1
}

case ${1:-all} in
  unit) unit ;;
  integration) integration "${BALLAST_PULSAR_VERSION:-4.2.4}" 30m ;;
  all)
    unit
    integration "${BALLAST_PULSAR_VERSION:-4.2.4}" 30m
    ;;
  verify)
    export BALLAST_FULL=1
    for version in $versions; do
      integration "$version" 6h
      cat "$results"/*-"$version".json >"$results/all-$version"
    done
    document
    ;;
  *) sed -n '2,7p' "$0" >&2; exit 2 ;;
esac

report "${runs[@]}" || failed=1
exit $failed
