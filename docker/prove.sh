#!/usr/bin/env bash
# Builds the image and runs docker-compose.yml's services in it on a machine without Docker:
#
#     docker/prove.sh [FOLDER]      needs root, debootstrap, unshare and ip; a Debian, a network, 6 GB
#
# Buildah, in a Debian of its own below FOLDER (/tmp), builds docker/Dockerfile. The base image cannot be
# fetched without a registry: Debian 12 with its own Python 3.11 stands in for python:3.11-slim, cut
# down in the same way. All of it is removed at the end.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp --directory "${1:-/tmp}/anonspark-image.XXXX")
builder=$folder/builder
base=$folder/base
trap 'rm -rf --one-file-system "$folder"' EXIT

# Mounts and, on request, the network are private: nothing is left behind, and no port is taken.
inside() { # [--no-network] COMMAND...
  local network=()
  if [[ $1 == --no-network ]]; then
    network=(--net)
    shift
  fi
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare --mount --propagation private "${network[@]}" bash -euc '
    root=$1
    shift
    ip link set lo up
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    exec chroot "$root" "$@"' - "$builder" "$@"
}
step() { printf '\n=== %s\n' "$*"; }

step "Debian"
debootstrap --variant=minbase --include=ca-certificates bookworm "$base" http://deb.debian.org/debian >"$folder/debootstrap.log"
cp /etc/resolv.conf "$base/etc/resolv.conf"
# A machine behind a proxy that signs by itself needs its certificates here, too.
find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$base/usr/local/share/ca-certificates/" \;
chroot "$base" update-ca-certificates >/dev/null
cp --archive "$base" "$builder"
export DEBIAN_FRONTEND=noninteractive
inside apt-get install -qq --yes --no-install-recommends buildah crun >"$folder/buildah.log" 2>&1

step "base image"
# As in Debian's slim images: no manual pages, and no folders for them.
printf 'path-exclude /usr/share/man/*\npath-exclude /usr/share/doc/*\n' >"$base/etc/dpkg/dpkg.cfg.d/docker"
rm -rf "$base"/usr/share/man/*
chroot "$base" apt-get install -qq --yes --no-install-recommends \
  python3.11 python3.11-venv python3-pip python-is-python3 >"$folder/python.log" 2>&1
rm "$base/usr/lib/python3.11/EXTERNALLY-MANAGED"
tar --directory "$base" --one-file-system --create --file "$builder/root/base.tar" .
container=$(inside buildah from scratch)
inside buildah add --quiet "$container" /root/base.tar /
inside buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  --env PIP_CERT=/etc/ssl/certs/ca-certificates.crt "$container"
inside buildah commit --quiet --rm "$container" localhost/base

step "image, from docker/Dockerfile"
mkdir "$builder/root/repository"
git -C "$repository" ls-files -z | tar --directory "$repository" --null --files-from - --create |
  tar --directory "$builder/root/repository" --extract
inside buildah bud --isolation chroot --build-arg BASE=localhost/base --tag anonspark \
  --file /root/repository/docker/Dockerfile /root/repository

step "in the image, as its user, without a network"
container=$(inside buildah from --add-host spark-master:127.0.0.1 localhost/anonspark)
repository=/root/repository
run() {
  inside --no-network buildah run --isolation chroot --hostname spark-master \
    --volume $repository/conf:/srv/anonspark/conf:ro \
    --volume $repository/data:/srv/anonspark/data:ro \
    --volume $repository/docker:/srv/docker:ro \
    --volume $repository/docker-compose.yml:/srv/docker-compose.yml:ro \
    --volume $repository/docker/spark-defaults.conf:/etc/spark/spark-defaults.conf:ro \
    "$container" -- "$@"
}
run bash -euc '
  id
  test "$(id -u)" = 185
  for program in gcc cc make; do
    if command -v $program; then echo "$program is in the image"; exit 1; fi
  done
  test "$(stat --format=%a /var/lib/anonspark/events)" = 700
  touch /srv/anonspark/out/writable && rm /srv/anonspark/out/writable
  if touch /srv/anonspark/conf/writable; then exit 1; fi
  du --summarize --human-readable /opt/anonspark'
run anonspark doctor
run python /srv/docker/try_cluster.py /srv/docker-compose.yml
step "proved"
