#!/bin/sh
# Compiles the .cu texts of this folder, and two kernels of our own templates, to the PTX that the tests run. Needs nvcc and, for the
# generated kernels, the built kernelwright; run after changing a kernel and commit the result.
#   tests/simulator/kernels/compile_fixtures.sh [KERNELWRIGHT]     (default: build/kernelwright)
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")"
root=../../..
kernelwright="${1:-$root/build/kernelwright}"
for source in *_kernels.cu *_sm90a.cu; do
  case "$source" in *_sm90a.cu) arch=sm_90a ;; *) arch=sm_80 ;; esac
  nvcc -std=c++17 -O3 -arch="$arch" -ptx -o "${source%.cu}.ptx" "$source"
done

# Three stages of cp.async each; one with the sums of two parts of k added by the CTA that comes last.
generated="$(mktemp -d)"
trap 'rm -rf "$generated"' EXIT
"$kernelwright" generate "$root/examples/matmul_bias_relu/matmul_bias_relu.op.toml" --device none --arch sm_80 \
  --set M=100,N=100,K=200 --db "$generated/kernels.db" --random 1 --limit 300 -o "$generated"
compile() { nvcc -std=c++17 -O3 -arch=sm_80 -ptx -o "$2.ptx" "$generated/gemm_sm80_mma__$1.cu"; }
compile m32_n64_k32_wm2_wn2_c1_s3_sk1_g8_va8_vb16_e0 gemm_sm80_plain
compile m16_n64_k32_wm1_wn4_c1_s3_sk2_g1_va8_vb16_e1 gemm_sm80_split_k
