#!/usr/bin/env bash
# The checks of the source: gofmt, a tidy go.mod, go vet, staticcheck (pinned in go.mod), with and without the integration tests, and the
# syntax of the scripts. They are counted like tests when an events file is named.
#
#   lint.sh [EVENTS]
set -uo pipefail
cd "$(dirname "$0")/../.."
events=${1:-/dev/null}
: >"$events"
failed=0

check() {
  local name=$1 action=pass
  shift
  if ! "$@" 2>&1; then action=fail failed=1; echo "FAIL $name"; fi
  echo "{\"Action\":\"$action\",\"Package\":\"lint\",\"Test\":\"$name\"}" >>"$events"
}

sources() { git ls-files --cached --others --exclude-standard -- "$@"; }
unformatted() { local files; files=$(sources '*.go' | xargs -r gofmt -l) && [ -z "$files" ] || { echo "not as gofmt writes it: $files"; return 1; }; }
scripts() { local file; for file in .ci/run $(sources '*.sh'); do bash -n "$file" || return 1; done; }

check gofmt unformatted
check mod go mod tidy -diff
check vet go vet -tags integration ./...
check staticcheck go tool staticcheck -tags integration ./...
check scripts scripts
exit $failed
