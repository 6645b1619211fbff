#!/usr/bin/env bash
# Builds the images and runs docker-compose.yml's cluster as docs/clusters.md#a-cluster-of-containers tells it, and breaks it:
#
#     docker/prove.sh [FOLDER]      needs root, dockerd (Debian's docker.io), debootstrap, go, 8 GB
#
# It starts a Docker engine of its own: without a network of containers while images are built, and
# for the cluster in a network of its own, which reaches nothing outside; no port of this machine is
# taken. Without a registry Debian 12 with its own Python 3.11 stands in for python:3.11-slim-bookworm.
# Compose is built from its Go module where Docker has none; it and Debian are kept in FOLDER
# (build/docker), all else is removed at the end. Ends with 77 where something that it needs is missing.
set -euo pipefail

compose_version=v2.35.1
compose_module=github.com/docker/compose/v2
repository=$(cd "$(dirname "$0")/.." && pwd)
kept=$(realpath --canonicalize-missing "${1:-$repository/build/docker}")

missing() {
  echo "docker/prove.sh: $*" >&2
  exit 77
}
[[ $(id -u) = 0 ]] || missing "only root can start a Docker engine"
for program in dockerd debootstrap iptables ip unshare nsenter curl make; do
  command -v "$program" >/dev/null || missing "$program is not installed; Debian has it in its packages"
done

folder=$(mktemp --directory "${TMPDIR:-/tmp}/anonspark-docker.XXXX")
# Debian's client is of the engine's version; another on the PATH may be newer than its engine.
export PATH=/usr/bin:$PATH DOCKER_HOST=unix://$folder/docker.sock DOCKER_CONFIG=$folder/client
export COMPOSE_FILE=docker-compose.yml:$folder/proof.yml COMPOSE_PROGRESS=quiet BUILDKIT_PROGRESS=plain
engine=
builder=

stop_engine() {
  [[ -n $engine ]] || return 0
  kill "$engine" 2>/dev/null || true
  wait "$engine" 2>/dev/null || true
  engine=
}
# shellcheck disable=SC2317 # the trap calls it
end() {
  local code=$?
  trap - EXIT
  [[ -z $builder ]] || kill "$builder" 2>/dev/null || true
  if [[ $code != 0 ]]; then
    tail --lines 30 "$folder"/*.log >&2 || true
  fi
  docker ps --quiet --no-trunc 2>/dev/null | xargs --no-run-if-empty docker kill >/dev/null 2>&1 || true
  stop_engine
  rm -rf --one-file-system "$folder"
  exit "$code"
}
trap end EXIT
trap 'exit 143' TERM INT

step() { printf '=== %s\n' "$*"; }
fail() {
  echo "docker/prove.sh: $*" >&2
  exit 1
}
start_engine() { # WRAPPER... -- ARGUMENTS...
  local wrapper=()
  while [[ $1 != -- ]]; do wrapper+=("$1") && shift; done
  shift
  "${wrapper[@]}" dockerd --data-root "$folder/data" --exec-root "$folder/exec" \
    --pidfile "$folder/engine.pid" --host "$DOCKER_HOST" "$@" >>"$folder/engine.log" 2>&1 &
  engine=$!
  for _ in {1..120}; do
    ! docker info >/dev/null 2>&1 || return 0
    kill -0 "$engine" 2>/dev/null || fail "the engine does not start"
    sleep 0.5
  done
  fail "the engine does not answer"
}

mkdir --parents "$kept" "$DOCKER_CONFIG/cli-plugins"
if [[ ! -x $kept/docker-compose-$compose_version ]]; then
  command -v go >/dev/null || missing "go is not installed, which builds Compose"
  (
    mkdir "$folder/compose"
    cd "$folder/compose"
    export GOFLAGS=-modcacherw
    go mod init proof
    go get "$compose_module/cmd@$compose_version"
    go build -trimpath -ldflags "-s -w -X $compose_module/internal.Version=$compose_version" \
      -o "$kept/docker-compose.part" "$compose_module/cmd"
    mv "$kept/docker-compose.part" "$kept/docker-compose-$compose_version"
  ) >"$folder/compose.log" 2>&1 &
  builder=$!
fi

step "base image"
if [[ ! -f $kept/base.tar ]]; then
  base=$folder/base
  debootstrap --variant=minbase --include=ca-certificates bookworm "$base" \
    http://deb.debian.org/debian >"$folder/debootstrap.log"
  # A machine behind a proxy that signs by itself needs its certificates here, too.
  find /usr/local/share/ca-certificates -name '*.crt' \
    -exec cp {} "$base/usr/local/share/ca-certificates/" \;
  chroot "$base" update-ca-certificates >/dev/null
  # As in Debian's slim images: no manual pages, and no folders for them.
  printf 'path-exclude /usr/share/man/*\npath-exclude /usr/share/doc/*\n' \
    >"$base/etc/dpkg/dpkg.cfg.d/docker"
  rm -rf "$base"/usr/share/man/*
  cp /etc/resolv.conf "$base/etc/resolv.conf"
  DEBIAN_FRONTEND=noninteractive chroot "$base" apt-get install -qq --yes --no-install-recommends \
    python3.11 python3.11-venv libpython3.11-dev python3-pip python-is-python3 >"$folder/python.log" 2>&1
  chroot "$base" apt-get clean
  rm "$base/usr/lib/python3.11/EXTERNALLY-MANAGED" "$base/etc/resolv.conf"
  tar --directory "$base" --create --file "$kept/base.part" .
  mv "$kept/base.part" "$kept/base.tar"
  rm -rf --one-file-system "$base"
fi
start_engine -- --bridge=none --iptables=false
docker import --change 'ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt' \
  --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
  "$kept/base.tar" python:3.11-slim-bookworm >/dev/null

step "images, from docker/Dockerfile"
mkdir "$folder/repository"
git -C "$repository" ls-files -z | tar --directory "$repository" --null --files-from - --create |
  tar --directory "$folder/repository" --extract
cd "$folder/repository"
{
  echo 'services:'
  for name in spark-master spark-worker spark-history-server submit namenode datanode; do
    # Builds have the machine's network. Half a minute until what is silent is lost, not two.
    printf '  %s:\n    build: {network: host}\n' $name
    [[ $name != spark-master ]] ||
      printf '    environment: {SPARK_MASTER_OPTS: -Dspark.worker.timeout=20}\n'
    [[ $name != submit ]] ||
      printf '    volumes: ["%s:/etc/spark/spark-defaults.conf:ro"]\n' "$folder/spark-defaults.conf"
  done
} >"$folder/proof.yml"
{
  cat docker/spark-defaults.conf
  printf 'spark.network.%s\n' 'timeout 30s' 'timeoutInterval 10s'
  echo 'spark.executor.heartbeatInterval 5s'
} >"$folder/spark-defaults.conf"
SECONDS=0
# The classic way to ask for it, which needs no plugin, while Compose is being built.
build() {
  DOCKER_BUILDKIT=1 docker build --network host --file docker/Dockerfile "$@" . >>"$folder/build.log" 2>&1
}
build --tag anonspark:dev
build --tag anonspark-hdfs:dev --target hdfs
echo "built in $SECONDS s"
if [[ -n $builder ]]; then
  wait "$builder" || fail "Compose cannot be built"
  builder=
fi
ln --symbolic "$kept/docker-compose-$compose_version" "$DOCKER_CONFIG/cli-plugins/docker-compose"
docker version --format 'Docker {{.Client.Version}} (client), {{.Server.Version}} (engine)'
docker compose version
for image in anonspark anonspark-hdfs; do
  docker image inspect --format "$image: {{.Size}} bytes" $image:dev
done
stop_engine

step "make up, in a network of its own"
# shellcheck disable=SC2016 # the inner shell expands it
start_engine unshare --net bash -c 'ip link set lo up; exec "$@"' - --
outer() { nsenter --net="/proc/$engine/ns/net" curl --silent --fail --max-time 10 "$@"; }
quiet() { "$@" >"$folder/last.log" 2>&1; }
fingerprint() { sed -n 's/^ *"output": "\([0-9a-f]\{64\}\)".*/\1/p'; }
workers_become() {
  for _ in {1..180}; do
    alive=$(outer http://127.0.0.1:8080/json/ | sed -n 's/.*"aliveworkers" : \([0-9]*\).*/\1/p')
    [[ $alive != "$1" ]] || return 0
    sleep 1
  done
  fail "$alive workers are alive where $1 are expected"
}
SECONDS=0
quiet make up
workers_become 2
echo "master, history server and 2 workers are healthy after $SECONDS s"

step "what a container may do"
# shellcheck disable=SC2016 # the container's shell expands it
quiet docker compose exec -T spark-worker bash -euc '
  test "$(id -u):$(id -g)" = 185:185
  grep -q "^CapEff:[[:space:]]*0*$" /proc/self/status
  grep -q "^NoNewPrivs:[[:space:]]*1$" /proc/self/status
  for program in gcc cc make; do ! command -v $program || exit 1; done
  test "$(stat --format=%a /srv/anonspark/out)" = 700
  for place in /srv/anonspark /srv/anonspark/conf /home/spark /opt/anonspark /etc/spark; do
    if touch $place/written 2>/dev/null; then echo "$place can be written"; exit 1; fi
  done
  touch /srv/anonspark/out/written /var/lib/anonspark/scratch/written && rm /srv/anonspark/out/written'
began=$(date +%s%N)
quiet docker compose run --rm --entrypoint anonspark submit --version
echo "a container that prints its version takes $((($(date +%s%N) - began) / 1000000)) ms"
quiet docker compose run --rm --workdir /tmp --entrypoint anonspark submit doctor

step "make submit, make releases"
SECONDS=0
quiet make submit
echo "submit took $SECONDS s"
quiet make releases
expected=$(fingerprint <out/people/manifest.json)
[[ -n $expected ]] || fail "the release has no fingerprint"
quiet docker compose run --rm --entrypoint anonspark submit verify out/people
outer http://127.0.0.1:18080/api/v1/applications | grep -q '"completed" : true' ||
  fail "the history server does not know the run"
require_release() {
  rm -rf out
  quiet make releases
  [[ $(fingerprint <out/people/manifest.json) = "$expected" ]] || fail "it is another release"
}

step "make submit-hdfs"
SECONDS=0
quiet make submit-hdfs
echo "HDFS and submit took $SECONDS s"
found=$(docker compose --profile hdfs exec -T namenode hdfs dfs -cat /releases/people/manifest.json \
  2>/dev/null | fingerprint)
[[ $found = "$expected" ]] || fail "it is another release"
quiet docker compose --profile hdfs stop namenode datanode

step "make up WORKERS=3"
quiet make up WORKERS=3
workers_become 3

interrupt() { # COMMAND...: runs it when the first round begins, and waits for the run
  SECONDS=0
  make submit >"$folder/last.log" 2>&1 &
  local run=$!
  until grep -q 'round 1 of' "$folder/last.log"; do
    kill -0 "$run" 2>/dev/null || fail "the run ended before its first round"
    sleep 0.2
  done
  "$@" >/dev/null
  wait "$run" || fail "the run did not survive"
  echo "the run took $SECONDS s"
}
worker() { # its container, by its number
  docker compose ps --quiet spark-worker | head -n "$1" | tail -n 1
}

step "a worker's container is killed during a run"
killed=$(worker 1)
interrupt docker kill "$killed"
require_release
docker start "$killed" >/dev/null
workers_become 3

step "a worker is cut off the network during a run"
cut=$(worker 2)
interrupt docker network disconnect anonspark_default "$cut"
require_release
workers_become 2
docker network connect anonspark_default "$cut"
workers_become 3

step "make down"
quiet make down
[[ -z $(docker ps --all --quiet) ]] || fail "containers are left"
[[ $(docker volume ls --quiet | sort | tr '\n' ' ') = "anonspark_events anonspark_releases " ]] ||
  fail "volumes without a name are left: $(docker volume ls --quiet)"
step "proved"
