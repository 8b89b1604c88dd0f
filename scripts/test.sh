#!/usr/bin/env bash
# Packages, NVRTC, build, then every test that needs no GPU. Options go to ctest: scripts/test.sh -R export
#   LABELS   which tests (default "host|nvrtc"; "host" needs no NVRTC)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install_packages.sh
scripts/fetch_nvrtc.sh
scripts/build.sh
# ctest's closing lines end the output.
ctest --test-dir "${BUILD_DIR:-build}" -L "${LABELS:-host|nvrtc}" --output-on-failure --no-label-summary --no-tests=error -j "$(nproc)" "$@"
