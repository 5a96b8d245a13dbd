#!/bin/sh
# SPDX-License-Identifier: MIT
# All tests: an optimised build, one with sanitizers, and the checks that need no compiler.
set -eu
cd "$(dirname "$0")/.."
export CLICOLOR_FORCE=0
export KOPT_REQUIRE_DEVICE=opencl # tools/setup.sh has installed one
jobs=$(nproc)

step() { printf '\n== %s\n' "$*"; }

step "format and layers"
tools/lint.sh --quick

step "release: build"
cmake --preset release >/dev/null
cmake --build --preset release -- -j "$jobs" --quiet
step "release: test"
ctest --preset release -j "$jobs" --no-tests=error

step "sanitizers: build"
cmake --preset asan >/dev/null
cmake --build --preset asan -- -j "$jobs" --quiet
step "sanitizers: test"
ctest --preset asan -j "$jobs" --no-tests=error
