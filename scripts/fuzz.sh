#!/usr/bin/env bash
# Runs one of the libFuzzer targets on the texts of this tree.   usage: scripts/fuzz.sh spec_fuzz|ptx_fuzz [libFuzzer options, e.g. -runs=1000000]
#   BUILD_DIR=build-sanitize   a build folder configured with KERNELWRIGHT_FUZZ=ON (tests/fuzz/CMakeLists.txt)
#   what crashes the target is kept beside it as crash-* or timeout-*
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$#" -ge 1 ] || { echo "usage: scripts/fuzz.sh spec_fuzz|ptx_fuzz [libFuzzer options]" >&2 && exit 2; }
target="$1" && shift
fuzzer="${BUILD_DIR:-build-sanitize}/tests/fuzz/$target"
[ -x "$fuzzer" ] || { echo "scripts/fuzz.sh: $fuzzer is not there: build it with KERNELWRIGHT_FUZZ=ON" >&2 && exit 2; }
corpus="$(mktemp -d)"
trap 'rm -rf "$corpus"' EXIT
case "$target" in
  spec_fuzz)
    find examples tests/errors -name '*.op.toml' -exec cp --backup=numbered {} "$corpus" \;
    dictionary=tests/fuzz/spec.dict
    ;;
  ptx_fuzz)
    find tests/simulator tests/fuzz/ptx_seeds -name '*.ptx' -size -5k -exec cp --backup=numbered {} "$corpus" \;
    dictionary=tests/fuzz/ptx.dict
    ;;
  *) echo "scripts/fuzz.sh: unknown target '$target'" >&2 && exit 2 ;;
esac
# LLVM's own archives are not instrumented: container-overflow checks and the poisoning of LLVM's allocators across that border are off.
ASAN_OPTIONS=detect_container_overflow=0:allow_user_poisoning=0 "$fuzzer" -max_len=4096 "-dict=$dictionary" -timeout=10 -rss_limit_mb=4096 \
  -artifact_prefix="$(dirname "$fuzzer")/" -print_final_stats=1 "$@" "$corpus" 2>&1 | tail -n 25
