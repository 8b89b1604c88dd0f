#!/bin/sh
# Compiles the .cu texts of this folder to the PTX that the tests run. Needs nvcc; run after changing a kernel and commit the result.
#   tests/simulator/kernels/compile_fixtures.sh
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")"
for source in *_kernels.cu *_sm90a.cu; do
  case "$source" in *_sm90a.cu) arch=sm_90a ;; *) arch=sm_80 ;; esac
  nvcc -std=c++17 -O3 -arch="$arch" -ptx -o "${source%.cu}.ptx" "$source"
done
