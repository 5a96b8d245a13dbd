#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the Debian packages that are missing for: build, demo, check or lint. Asks for root only
# when something is missing; prints what it would run when it cannot become root.
set -eu
what=${1:-build}

packages="gcc libc6-dev cmake ninja-build pkg-config libjansson-dev libsqlite3-dev libssl-dev libxxhash-dev opencl-c-headers zlib1g-dev"
runtime="ocl-icd-libopencl1 pocl-opencl-icd binutils libopenblas0-pthread"
tests="g++ libcmocka-dev python3 python3-jsonschema clang libclang-rt-14-dev git zsh groff-base"
case $what in
    build) ;;
    demo) packages="$packages $runtime" ;;
    check) packages="$packages $runtime $tests clang-format" ;;
    lint) packages="$packages clang-format clang-tidy codespell shellcheck python3" ;;
    *) echo "usage: tools/setup.sh build|demo|check|lint" >&2; exit 2 ;;
esac

missing=
for p in $packages; do
    if ! dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed'; then
        missing="$missing $p"
    fi
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    root=
elif command -v sudo >/dev/null 2>&1; then
    root=sudo
else
    echo "kopt: these packages are missing:$missing" >&2
    echo "kopt: run as root: apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
echo "kopt: installing$missing"
$root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# shellcheck disable=SC2086
$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
