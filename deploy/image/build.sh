#!/usr/bin/env bash
# Builds the image ballast/pulsar:VERSION for the integration tests from packages of Debian and Maven Central, for where no
# image registry is reached. It has the commands of the official image that the tests use (bin/pulsar,
# bin/apply-config-from-env.py with PULSAR_PREFIX_...). Does nothing when the image was made from the same files before.
#
#   build.sh [--force] [VERSION]    VERSION: 4.2.4 (default), 4.0.7, 3.0.7, 5.0.1
#
# Needs a Docker engine, apt-get, Maven and a JDK. Pulsar 5 runs on a JDK of 21 or newer: Debian's package is used where there
# is one, else the newest JDK in JAVA_HOME, in the PATH or below /usr/lib/jvm. Exit code 3: there is none.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
force=
[ "${1:-}" != --force ] || { force=1; shift; }
version=${1:-4.2.4}
tag=ballast/pulsar:$version
case $version in
  3.*) pom=pom-4.xml needs=17 packages="17 21" ;;
  4.*) pom=pom-4.xml needs=17 packages="17 21 25" ;;
  5.*) pom=pom-5.xml needs=21 packages="25 21" ;;
  *) echo "no recipe for Pulsar $version: the ones for 3.x, 4.x and 5.x exist" >&2; exit 2 ;;
esac

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ballast
mkdir -p "$cache"
exec 9>"$cache/image.lock"
flock 9 # two runs of the tests build one after the other
# What this version is made from: a recipe for another one is none of it.
recipe=$(cd "$here" && find build.sh "$pom" Dockerfile bin conf -type f | LC_ALL=C sort | xargs sha256sum | cat - <(echo "$version") | sha256sum | cut -c1-16)
former=$(docker image inspect -f '{{index .Config.Labels "ballast.recipe"}}' "$tag" 2>/dev/null || true)
if [ -z "$force" ] && [ "$former" = "$recipe" ]; then exit 0; fi

work=$(mktemp -d "$cache/image.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/context/root pulsar=$work/context/pulsar
logged() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }; }
say() { printf '%4ds %s\n' "$SECONDS" "$*" >&2; }

java_major() { "$1/bin/java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1; }
# The newest JDK of this machine that is new enough and has jlink, as a path; nothing if there is none.
newest_jdk() {
  local home major best='' best_major=$((needs - 1)) path
  path=$(command -v java || true)
  [ -z "$path" ] || path=$(dirname "$(dirname "$(readlink -f "$path")")")
  for home in "${JAVA_HOME:-}" "$path" /usr/lib/jvm/*; do
    [ -x "$home/bin/java" ] && [ -x "$home/bin/jlink" ] || continue
    major=$(java_major "$home")
    if [ "${major:-0}" -gt "$best_major" ]; then best=$home best_major=$major; fi
  done
  echo "$best"
}
candidate() { [ -n "$(apt-cache policy "$1" 2>/dev/null | sed -n 's/.*Candidate: \([^(]\)/\1/p')" ]; }
download() { (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root "$@"); }

say "building $tag"
debs=(libc6 libgcc-s1 libstdc++6 zlib1g busybox-static)
candidate libc6 || apt-get update -qq
jre=
for n in $packages; do
  if candidate "openjdk-$n-jre-headless"; then jre=openjdk-$n-jre-headless; break; fi
done
jdk=
[ -n "$jre" ] || jdk=$(newest_jdk)
if [ -z "$jre$jdk" ]; then
  echo "Pulsar $version runs on a JDK of $needs or newer: this Debian has no package of one, and none is in JAVA_HOME, in the PATH or below /usr/lib/jvm" >&2
  exit 3
fi

# The root file system: unpacked packages, with /bin, /lib... as links into /usr whatever the release.
mkdir -p "$root"/{usr/{bin,sbin,lib,lib64},etc,tmp,root,proc,sys,dev,var/tmp} "$pulsar"
for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done
# shellcheck disable=SC2086 # no package or one
download "${debs[@]}" $jre || { apt-get update -qq && download "${debs[@]}" $jre; }
for deb in "$work"/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$root"; done
rm -rf "$root"/usr/share/{doc,man,locale,lintian,bug,info} "$root"/usr/lib/jvm/*/man
if [ -n "$jdk" ]; then
  mkdir -p "$root/usr/lib/jvm"
  logged "$jdk/bin/jlink" --strip-debug --generate-cds-archive --no-header-files --no-man-pages --output "$root/usr/lib/jvm/jre" \
    --add-modules java.se,jdk.crypto.ec,jdk.jfr,jdk.management,jdk.naming.dns,jdk.net,jdk.sctp,jdk.security.auth,jdk.unsupported,jdk.zipfs
fi
java=("$root"/usr/lib/jvm/*/bin/java)
ln -sf "${java[0]#"$root"}" "$root/usr/bin/java"
for applet in $("$root/bin/busybox" --list); do [ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/usr/bin/$applet"; done
chmod 1777 "$root/tmp" "$root/var/tmp"
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
say "root file system with ${jre:-a run-time image of $jdk}: $(du -sm "$root" | cut -f1) MiB"

logged mvn -q -B -f "$here/$pom" -Dpulsar.version="$version" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$pulsar/lib"
(cd "$pulsar" && printf '/pulsar/%s\n' lib/*.jar | LC_ALL=C sort | paste -sd: >classpath)
cp -r "$here/bin" "$here/conf" "$pulsar/"
say "$(find "$pulsar/lib" -name '*.jar' | wc -l) jars: $(du -sm "$pulsar/lib" | cut -f1) MiB"

cp "$here/Dockerfile" "$work/context/"
export DOCKER_BUILDKIT=0
logged docker build --no-cache --network none --force-rm --label "ballast.recipe=$recipe" --label "ballast.pulsar=$version" -t "$tag" "$work/context"
docker image prune -f --filter label=ballast.pulsar >/dev/null # the image that this one replaces
docker run --rm --network none "$tag" test -s cds/classes.jsa ||
  { tail -n 30 "$work/log" >&2; say "warning: no archive of classes could be made, so brokers start slowly"; }
say "$tag: $(($(docker image inspect -f '{{.Size}}' "$tag") / 1048576)) MiB"
