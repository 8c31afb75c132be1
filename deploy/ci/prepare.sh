#!/usr/bin/env bash
# Installs what the tests need and this Debian machine lacks: a Docker engine, Maven, a JDK, a C compiler for the race detector.
# Does nothing where all is there. Go is not installed: go.mod says which version is needed.
set -euo pipefail

command -v go >/dev/null || { echo "Go is missing; go.mod names the version" >&2; exit 1; }
packages=()
need() { command -v "$1" >/dev/null || packages+=("${@:2}"); }
need dockerd docker.io
need iptables iptables
need mvn maven
need javac default-jdk-headless # the image and the client in Java are compiled
need gcc gcc libc6-dev
need make make
need git git
need flock util-linux
[ ${#packages[@]} -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing here: ${packages[*]} (packages of Debian; they are installed on a Debian machine for root)" >&2
  exit 1
fi
echo "installing ${packages[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
apt-get update -qq
install "${packages[@]}"
command -v docker >/dev/null || install docker-cli # a package of its own since Debian 13
