#!/usr/bin/env bash
# From a fresh machine to a tuned kernel: packages, NVRTC, build, then the main job on the example. Options go to `kernelwright tune`,
# for example: scripts/quickstart.sh --budget 20s. Without a GPU the kernels are compiled and ranked, and said to be predicted.
#   BUDGET       time for tuning (default 60s)
#   EXPORT_DIR   folder of the exported kernel (default exported/matmul_bias_relu)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build="${BUILD_DIR:-build}"
example=examples/matmul_bias_relu/matmul_bias_relu.op.toml
op=matmul_bias_relu
shape=M=1024,N=4096,K=4096
export_folder="${EXPORT_DIR:-exported/$op}"

step() { printf '\n== %s\n' "$*"; }
show() { printf '$ %s\n' "$*" && "$@"; }

step "1/6 packages"
scripts/install_packages.sh
step "2/6 NVRTC"
scripts/fetch_nvrtc.sh
step "3/6 build"
scripts/build.sh --target kernelwright
step "4/6 tune the example"
case " $* " in
  *" --budget"*) ;;
  *) set -- --budget "${BUDGET:-60s}" "$@" ;;
esac
show "$build/kernelwright" tune "$example" --set "$shape" "$@"
step "5/6 ask for the kernel"
show "$build/kernelwright" query "$op" --set "$shape"
step "6/6 export it"
show "$build/kernelwright" export "$op" --set "$shape" -o "$export_folder"
ls -l "$export_folder"
