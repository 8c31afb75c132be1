#!/usr/bin/env bash
# Runs the tests and ends with their number, "N passed, N failed", alone on the last line.
#
#   test.sh unit         lint and unit tests: neither network nor Docker
#   test.sh integration  the tests against a real cluster in containers
#   test.sh all          both, unit tests first
#   test.sh verify       the tests against real clusters at full length; their results go into docs/verification.md. VERSION
#                        names the versions of Pulsar, RUN the tests, as `go test -run` takes them; the results of other versions
#                        and tests stay in the document as they were. Without both: everything on 4.2.4 and 5.0.1, and what
#                        Modular and Simple clusters need on 3.0.7 and 4.0.7
set -uo pipefail
cd "$(dirname "$0")/../.."
here=deploy/ci
versions=${BALLAST_PULSAR_IMAGE:+${BALLAST_PULSAR_IMAGE##*:}}
versions=${versions:-${VERSION:-4.2.4 5.0.1}}
pattern= verifying=
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
  "$@" | report -save "$results/$name.json"
}
# kept NAME COMMAND...: the same, and the run counts.
kept() {
  events "$@" || failed=1
  runs+=("$results/$1.json")
}

# settled NAME STATUS COMMAND...: the run counts that events kept. Tests that failed run once more by themselves, on clusters of their
# own: on a machine with few processors a cluster can be late without a fault of ours. What passes only then is told at the end.
settled() {
  local name=$1 status=$2 pattern
  shift 2
  if [ "$status" -eq 0 ]; then
    runs+=("$results/$name.json")
  elif pattern=$(report -again "$results/$name.json"); then
    echo "== again $pattern"
    events "$name-again" "$@" -run "$pattern" || failed=1
    runs+=("$results/$name.json+$results/$name-again.json")
  else
    failed=1
    runs+=("$results/$name.json")
  fi
}

unit() {
  echo "== lint"
  $here/lint.sh "$results/lint.json" || failed=1
  runs+=("$results/lint.json")
  echo "== unit tests"
  kept unit go test -json -race -timeout 30m ./...
}

# matching PATTERN PACKAGE...: those of the packages that have a test of this name; all of them if there is no pattern.
matching() {
  local pattern=$1 package tests
  shift
  for package in "$@"; do
    if [ -n "$pattern" ]; then
      tests=$(go test -tags integration -list "$pattern" "$package") || { echo "$tests" >&2; return 1; }
      grep -q '^\(Test\|Fuzz\|Example\)' <<<"$tests" || continue
    fi
    echo "$package"
  done
}

# Packages outside integration/ whose tests with the tag need a cluster: they share one.
tagged() { git grep -l --untracked '^//go:build integration' -- '*_test.go' ':!integration/' | xargs -r dirname | sort -u | sed 's|^|./|'; }

integration() {
  local version=$1 time=$2 run=() own others
  [ -z "$pattern" ] || run=(-run "$pattern")
  # shellcheck disable=SC2046,SC2086 # packages are words
  own=$(matching "$pattern" ./integration/) && others=$(matching "$pattern" $(tagged)) || { failed=1; return; }
  [ -n "$own$others" ] || { [ ${#runs[@]} -gt 0 ] || { echo "no test is called $pattern" >&2; failed=1; }; return; }
  export BALLAST_PULSAR_VERSION=$version
  echo "== tests on Pulsar ${BALLAST_PULSAR_IMAGE:-$version}"
  coproc engine { exec $here/with-docker.sh sh -c 'echo ready; exec cat'; } # one engine for all that follows
  read -r _ <&"${engine[0]}" || { failed=1; return; }
  if [ -n "$own" ] && [ -z "$pattern$verifying" ]; then
    side_by_side "$version" "$time" "$own"
  elif [ -n "$own" ]; then
    # shellcheck disable=SC2086
    kept "integration-$version" go test -json -tags integration -count=1 -timeout "$time" "${run[@]}" $own
    document "$version" "integration-$version"
  fi
  if [ -n "$others" ]; then
    # shellcheck disable=SC2086
    kept "packages-$version" go run ./integration/cluster -- \
      go test -json -tags integration -count=1 -p 1 -timeout "$time" "${run[@]}" $others
    document "$version" "packages-$version"
  fi
  eval "exec ${engine[1]}>&-"
  wait "$engine_PID"
}

# side_by_side VERSION TIME PACKAGES: two halves of the tests at once, on clusters of their own: most of their time is waiting.
# With fewer than four processors they only make each other slow, and run one after the other.
first_half='^Test(Govern|Shipped|View|Faults|TakeOver|Advise|OnlyOne|Garbage|Other|Wrong|Cluster|Bundles|Traffic|Broker)'
side_by_side() {
  local test=(go test -json -tags integration -count=1 -timeout "$2") one two
  if [ "$(nproc)" -lt 4 ]; then
    # shellcheck disable=SC2086
    events "integration-$1" "${test[@]}" $3
    # shellcheck disable=SC2086
    settled "integration-$1" $? "${test[@]}" $3
    return
  fi
  # shellcheck disable=SC2086
  events "integration-1-$1" "${test[@]}" -run "$first_half" $3 & one=$!
  # shellcheck disable=SC2086
  events "integration-2-$1" "${test[@]}" -skip "$first_half" $3 & two=$!
  wait "$one"
  one=$?
  wait "$two"
  two=$?
  # shellcheck disable=SC2086
  settled "integration-1-$1" "$one" "${test[@]}" $3
  # shellcheck disable=SC2086
  settled "integration-2-$1" "$two" "${test[@]}" $3
}

# in_memory: those tests that need no Pulsar and are longer at full length.
in_memory() {
  local long='^Test(LeadersComeAndGo|ANewLeader|ADrainSurvivesALeaderChange|ALeaderChangeDoesNotCureTwice)' names
  names=$(go test -list "$long" ./control/ | grep '^Test' | grep -E -- "${pattern:-.}" | paste -sd '|')
  [ -n "$names" ] || return
  echo "== in memory"
  kept memory go test -json -count=1 -timeout 3h -run "^($names)\$" ./control/
  document memory memory
}

# document VERSION NAME: when all is verified, the results of a run go into the document as soon as they are there.
document() {
  [ -z "$verifying" ] || report -merge "$1=$results/$2.json" >/dev/null || failed=1
}

case ${1:-all} in
  unit) unit ;;
  integration) integration "${BALLAST_PULSAR_VERSION:-4.2.4}" 70m ;;
  all)
    unit
    integration "${BALLAST_PULSAR_VERSION:-4.2.4}" 70m
    ;;
  verify)
    export BALLAST_FULL=1
    verifying=1 pattern=${RUN:-}
    case $pattern in */*) echo "RUN=$pattern: it names whole tests, no subtests (no /)" >&2; exit 2 ;; esac
    in_memory
    for version in $versions; do integration "$version" 6h; done
    if [ -z "${VERSION:-}${BALLAST_PULSAR_IMAGE:-}$pattern" ]; then
      pattern='^Test(GovernOn(Modular|Simple)|Reporter.*|RestartOnModular|JavaClientReadsLoad)$'
      for version in 3.0.7 4.0.7; do integration "$version" 6h; done
    fi
    ;;
  *) sed -n '2,9p' "$0" >&2; exit 2 ;;
esac

[ ${#runs[@]} -gt 0 ] || exit 1
report "${runs[@]}" || failed=1
exit $failed
