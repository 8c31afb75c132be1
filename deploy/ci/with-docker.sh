#!/usr/bin/env bash
# Runs a command with a Docker engine: the one that answers, else (as root) one that is started for the time. What earlier
# runs of the tests left in the engine is removed afterwards.
#
#   with-docker.sh COMMAND [ARGUMENT...]
set -euo pipefail

log=${TMPDIR:-/tmp}/ballast-dockerd.log
engine=
answers() { docker version >/dev/null 2>&1; }

start_engine() {
  if [ "$(id -u)" != 0 ] || ! command -v dockerd >/dev/null; then
    echo "no Docker engine answers, and only root can start one with dockerd" >&2
    return 1
  fi
  setsid dockerd >"$log" 2>&1 </dev/null & # a session of its own: an interrupt is for the command first
  engine=$!
  for _ in $(seq 240); do
    answers && return
    kill -0 "$engine" 2>/dev/null || break
    sleep 0.25
  done
  return 1
}

# Containers and networks carry the process that owns them, as id-starttime-namespace; those whose owner is gone are leftovers.
gone() {
  local namespace
  namespace=$(readlink /proc/self/ns/pid | tr -dc 0-9) || return 1
  [ "${1##*-}" = "$namespace" ] && [ ! -d "/proc/${1%%-*}" ]
}
sweep() {
  local id owner
  for id in $(docker ps -aq --filter label=ballast.owner); do
    owner=$(docker inspect -f '{{index .Config.Labels "ballast.owner"}}' "$id" 2>/dev/null) || continue
    if gone "$owner"; then docker rm -fv "$id" >/dev/null; fi
  done
  for id in $(docker network ls -q --filter label=ballast.owner); do
    owner=$(docker network inspect -f '{{index .Labels "ballast.owner"}}' "$id" 2>/dev/null) || continue
    if gone "$owner"; then docker network rm "$id" >/dev/null; fi
  done
}

finish() {
  sweep || true
  if [ -n "$engine" ]; then
    kill "$engine" 2>/dev/null || true
    for _ in $(seq 120); do kill -0 "$engine" 2>/dev/null || break; sleep 0.25; done
  fi
}

command -v docker >/dev/null || { echo "docker is missing (Debian: docker.io; deploy/ci/prepare.sh installs it)" >&2; exit 1; }
if ! answers && ! start_engine; then
  # A kernel without nftables: the older variant of iptables is the other one that Docker can use.
  if [ -n "$engine" ] && grep -q iptables "$log" && command -v iptables-legacy >/dev/null; then
    echo "dockerd cannot use $(iptables --version); trying iptables-legacy" >&2
    update-alternatives --set iptables /usr/sbin/iptables-legacy >/dev/null
    start_engine || { tail -n 20 "$log" >&2; exit 1; }
  else
    [ -z "$engine" ] || tail -n 20 "$log" >&2
    exit 1
  fi
fi
trap finish EXIT
"$@"
