# SPDX-License-Identifier: MIT
# Two commands for a fresh Debian 12 machine: `make demo` and `make check`. The build itself is CMake.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.PHONY: all demo check check-all asan tsan fuzz lint format install clean

all:
	tools/setup.sh build
	cmake -S . -B build/kopt -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DBUILD_TESTING=OFF
	cmake --build build/kopt -j $(JOBS)

# Tunes a real matrix multiplication on the CPU through PoCL.
demo:
	tools/setup.sh demo
	tools/demo.sh

# Every test: optimised and with sanitizers, and the lint.
check:
	tools/setup.sh check
	tools/check.sh

asan tsan fuzz:
	tools/setup.sh check
	cmake --workflow --preset $@

# What `make check` leaves out because it takes longer: threads and fuzzing.
check-all: check tsan fuzz

lint:
	tools/setup.sh lint
	tools/lint.sh

format:
	tools/lint.sh --fix

install: all
	cmake --install build/kopt

clean:
	rm -rf build
