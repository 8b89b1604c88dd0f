#!/usr/bin/env bash
# Configures and builds. Usage: scripts/build.sh [--target NAME]... [cmake option]...
#   BUILD_DIR   build folder (default build)
#   JOBS        parallel compiles (default: one a core, fewer where memory is short: a file that reads LLVM's headers needs 1.3 GB)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build="${BUILD_DIR:-build}"
targets=()
options=()
while [ "$#" -gt 0 ]; do
  case "$1" in
    --target) targets+=(--target "${2:?--target needs a name}") && shift 2 ;;
    *) options+=("$1") && shift ;;
  esac
done

cores="$(nproc)"
memory_gb="$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)"
by_memory=$((memory_gb * 2 / 3))
jobs="${JOBS:-$((by_memory < 1 ? 1 : by_memory < cores ? by_memory : cores))}"

if command -v ccache >/dev/null; then
  options=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache "${options[@]}")
  # The same files in another build folder are hits too.
  export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
fi
cmake -S . -B "$build" -G Ninja --log-level=WARNING "${options[@]}"
cmake --build "$build" -j "$jobs" "${targets[@]}"
