#!/usr/bin/env bash
# Builds the images, starts the agents, ships once and takes everything down again, with the compose command that is
# here, and checks what docker-compose.yml promises.
#
#     scripts/compose-check.sh              # wants a Docker engine and a compose command
#     INSTALL=1 scripts/compose-check.sh    # as root on Debian: installs what is missing (so does CI=true)
#
# Without an engine that answers, root gets a private one for the length of the check. Where no registry answers, the
# base images are stood in for by Debian and the Rust of this machine. Both are kept for the next run: the private
# engine's images under $XDG_CACHE_HOME (or ~/.cache) in a2a-compose-check, which may be deleted at any time.
set -euo pipefail
cd "$(dirname "$0")/.."

agents=(test-runner:41241 code-reviewer:41242 deployer:41243)
rust=rust:1-slim-bookworm debian=debian:bookworm-slim release=bookworm # as in the Dockerfile
build_limit=${BUILD_LIMIT:-2400}                                        # seconds for all four images
token=dpl_test_7c1e4b

work=$(mktemp -d) cache=${XDG_CACHE_HOME:-$HOME/.cache}/a2a-compose-check engine='' compose=()
step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
fail() { printf 'compose-check: %s\n' "$*" >&2; exit 1; }

clean() {
  local status=$?
  trap - EXIT
  set +e
  if ((${#compose[@]})); then
    ((status == 0)) || "${compose[@]}" logs --tail=20
    "${compose[@]}" down --volumes >/dev/null 2>&1
  fi
  if [[ $engine ]]; then
    docker image prune --force --filter until=24h >/dev/null 2>&1 # what older builds left
    docker builder prune --force --filter until=24h >/dev/null 2>&1
    kill "$engine" && wait "$engine" 2>/dev/null
    umount "$work"/exec/netns/* 2>/dev/null # which it leaves mounted
    ((forwarding)) || { echo 0 >/proc/sys/net/ipv4/ip_forward && iptables --policy FORWARD ACCEPT; } # as it was
  fi
  rm -rf --one-file-system "$work"
  exit "$status"
}
trap clean EXIT
trap 'exit 130' INT TERM

# need COMMAND PACKAGE...: installs the packages when the command is missing, if that was asked for.
need() {
  ! command -v "$1" >/dev/null || return 0
  if [[ $EUID == 0 && (${CI:-} == true || ${INSTALL:-} == 1) ]]; then
    export DEBIAN_FRONTEND=noninteractive
    if ! { apt-get update -q && apt-get install -qy --no-install-recommends "${@:2}"; } >"$work/apt" 2>&1; then
      cat "$work/apt"
      fail "cannot install ${*:2}"
    fi
  else
    fail "$1 is missing: apt-get install ${*:2}   (or INSTALL=1 $0, as root)"
  fi
}

# answers: waits for the engine just started.
answers() {
  for ((i = 0; i < 60; i++)); do
    ! docker info >/dev/null 2>&1 || return 0
    kill -0 "$engine" 2>/dev/null || return 1
    sleep 0.5
  done
  return 1
}

step 'an engine'
docker info >/dev/null 2>&1 || need dockerd docker.io
if ! docker info >/dev/null 2>&1; then
  [[ $EUID == 0 ]] || fail 'no Docker engine answers, and starting one takes root'
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9 # one engine at a time on these images
  export DOCKER_HOST=unix://$work/docker.sock
  forwarding=$(</proc/sys/net/ipv4/ip_forward)
  # Names between containers take a packet filter that works: the one that is set up, else the older kind.
  for filter in '' iptables-legacy; do
    if [[ $filter ]]; then
      filter=$(command -v "$filter") || break
      mkdir "$work/bin"
      ln -s "$filter" "$work/bin/iptables"
      ln -s "${filter/iptables/ip6tables}" "$work/bin/ip6tables"
    fi
    PATH=$work/bin:$PATH dockerd --host "$DOCKER_HOST" --data-root "$cache/docker" --exec-root "$work/exec" \
      --pidfile "$work/pid" >"$work/dockerd.log" 2>&1 9>&- &
    engine=$!
    ! answers || break
    kill "$engine" 2>/dev/null || true
    wait "$engine" || true
    engine=''
  done
  [[ $engine ]] || { tail -n 20 "$work/dockerd.log"; fail 'dockerd does not start'; }
  echo "a private one, from $cache${filter:+, with $filter}"
fi
docker version --format 'Docker {{.Server.Version}}'

step 'a compose command'
if docker compose version >/dev/null 2>&1; then
  compose=(docker compose)
else
  need docker-compose docker-compose
  compose=(docker-compose)
fi
"${compose[@]}" version | sed -n 1p
compose+=(--project-name a2a-compose-check --file docker-compose.yml)

# stand_in IMAGE PACKAGES: makes a base image from this machine's Debian mirror; one for Rust gets its toolchain, too.
stand_in() {
  local root=$work/root mirror=''
  echo "no registry has $1 for us; standing in for it"
  need debootstrap debootstrap
  [[ $1 != "$rust" ]] || command -v rustc >/dev/null || fail 'no Rust on this machine to stand in with'
  # shellcheck disable=SC2016 # apt's variable
  for try in 1 2; do
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 'Component: main' | sed -n 1p)
    [[ -z $mirror && $try == 1 ]] || break
    apt-get update -q >/dev/null
  done
  [[ $mirror ]] || fail 'the sources of apt name no mirror of Debian'
  debootstrap --variant=minbase ${2:+"--include=$2"} "$release" "$root" "$mirror" >"$work/debootstrap" 2>&1 ||
    { tail -n 20 "$work/debootstrap"; fail 'debootstrap failed'; }
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  if [[ $1 == "$rust" ]]; then
    cp -a "$(rustc --print sysroot)"/{bin,lib} "$root/usr/local/"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # crates are fetched over TLS
    mkdir -p "$root/usr/local/cargo"
    [[ ! -e $cargo_home/config.toml ]] || cp "$cargo_home/config.toml" "$root/usr/local/cargo/"
  fi
  tar -C "$root" -c . |
    docker import --change 'ENV CARGO_HOME=/usr/local/cargo' --change "LABEL stand-in=\"$machine\"" - "$1" >/dev/null
  rm -rf --one-file-system "$root"
}

# made IMAGE: with what of a machine this stand-in was made; nothing for the real one.
made() { docker image inspect --format '{{with .Config.Labels}}{{index . "stand-in"}}{{end}}' "$1" 2>/dev/null; }

step 'the base images'
cargo_home=${CARGO_HOME:-$HOME/.cargo}
machine="$(rustc --version 2>/dev/null || echo 'no Rust'), certificates $(cksum /etc/ssl/certs/ca-certificates.crt | cut -d ' ' -f 1)"
for image in "$debian" "$rust"; do
  if of=$(made "$image"); then
    [[ -z $of || $of == "$machine" ]] || docker rmi "$image" >/dev/null # the machine has changed
  fi
  docker image inspect "$image" >/dev/null 2>&1 || timeout 300 docker pull --quiet "$image" || {
    if [[ $image == "$rust" ]]; then stand_in "$image" gcc,libc6-dev,ca-certificates; else stand_in "$image" ''; fi
  }
  of=$(made "$image")
  echo "$image${of:+, stood in for with $of}"
done
if [[ $(made "$rust") ]]; then
  # The build reaches the crates the way this machine does.
  {
    printf 'services:\n'
    for service in planner "${agents[@]%:*}"; do
      printf '  %s: {build: {network: host, args: {' "$service"
      for name in HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
        [[ -z ${!name:-} ]] || printf '%s: "%s", ' "$name" "${!name}"
      done
      printf '}}}\n'
    done
  } >"$work/network.yml"
  compose+=(--file "$work/network.yml")
fi

step 'build'
timeout "$build_limit" "${compose[@]}" --profile ship build </dev/null >"$work/build" 2>&1 ||
  { tail -n 60 "$work/build"; fail 'the build failed'; }

step 'up'
"${compose[@]}" down --volumes >/dev/null 2>&1 || true # what an interrupted run left
timeout 120 "${compose[@]}" up -d </dev/null >"$work/up" 2>&1 || { tail -n 60 "$work/up"; fail 'up failed'; }

step 'healthy, and not as root'
for agent in "${agents[@]%:*}"; do
  id=$("${compose[@]}" ps -q "$agent")
  for ((i = 0; i < 60; i++)); do
    health=$(docker inspect --format '{{.State.Health.Status}}' "$id")
    [[ $health == starting ]] || break
    sleep 1
  done
  user=$(docker exec "$id" id -u)
  echo "$agent: $health, user $user"
  [[ $health == healthy && $user != 0 ]] || fail "$agent is $health, as user $user"
done

# run ARGUMENTS: one container of the planner.
run() { "${compose[@]}" run --rm -T "$@" </dev/null; }

step 'the planner ships once'
run planner >"$work/ship" 2>&1 || { cat "$work/ship"; fail "the planner's exit code was not 0"; }
cat "$work/ship"
[[ $(grep . "$work/ship" | tail -n 1) == *'deploy: TASK_STATE_COMPLETED'* ]] || fail 'the log does not end with a deploy'
user=$(run --entrypoint id planner -u 2>/dev/null)
[[ $user == [1-9]* ]] || fail "the planner runs as user $user"

# ask HOST PORT METHOD PATH BODY: one HTTP request, with bash alone.
ask() {
  exec 3<>"/dev/tcp/$1/$2"
  printf '%s %s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\nA2A-Version: 1.0\r\nAuthorization: Bearer %s\r\n' \
    "$3" "$4" "$1" "$2" "$token" >&3
  printf 'Content-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' "${#5}" "$5" >&3
  timeout 10 cat <&3
  exec 3>&-
}
# urls HOST:PORT: whether the card read there names this very place, and an agent answers at the URL that it names.
urls() {
  local card answer base=http://$1 path
  card=$(ask "${1%:*}" "${1#*:}" GET /.well-known/agent-card.json '')
  [[ $card =~ \"url\":\ ?\"$base(/[^\"]*)\" ]] || { printf 'no URL of %s in the card:\n%s\n' "$base" "$card"; return 1; }
  path=${BASH_REMATCH[1]}
  answer=$(ask "${1%:*}" "${1#*:}" POST "$path" '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none"}}')
  [[ $answer == *-32001* ]] || { printf '%s%s did not say that it has no such task:\n%s\n' "$base" "$path" "$answer"; return 1; }
  echo "$base$path"
}

step 'the URLs in the cards, from the host'
for agent in "${agents[@]}"; do
  urls "localhost:${agent#*:}" || fail "$agent, from the host"
done

step "the same from the planner's container"
run --entrypoint bash planner -c "token=$token; $(declare -f ask urls); for agent; do urls \"\$agent\" || exit 1; done" \
  urls "${agents[@]}" 2>"$work/run" || { cat "$work/run"; fail 'from the container'; }
run planner card "http://${agents[0]}" --json >"$work/card" 2>/dev/null || fail "\`planner card\` failed"
grep -qF "http://${agents[0]}/" "$work/card" || { cat "$work/card"; fail "\`planner card\` names another host"; }

step 'down'
before=$SECONDS
ids=$("${compose[@]}" ps -q)
"${compose[@]}" stop >/dev/null 2>&1
for id in $ids; do
  docker inspect --format '{{.Name}} ended with {{.State.ExitCode}}' "$id" | tee -a "$work/ends"
done
! grep -qv ' with 0$' "$work/ends" || fail 'an agent did not end well'
"${compose[@]}" down --volumes >/dev/null 2>&1
((SECONDS - before <= 10)) || fail "down took $((SECONDS - before)) s"

step 'all as promised'
