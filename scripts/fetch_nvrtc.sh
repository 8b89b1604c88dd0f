#!/usr/bin/env bash
# Makes sure that an NVRTC library is there: that of an installed CUDA toolkit, else the pinned wheel from PyPI (checked by hash),
# unpacked into a private folder. Nothing is installed into the system or into a Python environment. A second run does nothing.
#   KERNELWRIGHT_HIDE_TOOLKIT=1   does as if no toolkit were installed
#   XDG_DATA_HOME                 moves the private folder (default ~/.local/share)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version="$(sed -n 's/^nvidia-cuda-nvrtc-cu12==\([0-9.]*\).*/\1/p' scripts/nvrtc-requirements.txt)"
folder="${XDG_DATA_HOME:-${HOME:?set HOME or XDG_DATA_HOME}/.local/share}/kernelwright/nvrtc"
library="$folder/$version/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"

toolkit_nvrtc() {
  [ "${KERNELWRIGHT_HIDE_TOOLKIT:-0}" != 1 ] || return 1
  local found
  for found in "${CUDA_HOME:-/usr/local/cuda}"/lib64/libnvrtc.so* "${CUDA_HOME:-/usr/local/cuda}"/targets/*/lib/libnvrtc.so* \
    /usr/local/cuda*/lib64/libnvrtc.so*; do
    if [ -e "$found" ]; then echo "$found" && return 0; fi
  done
  # The cache of ld.so; grep reads to the end, so that ldconfig is not cut off.
  found="$( (ldconfig -p || /sbin/ldconfig -p) 2>/dev/null | sed -n 's/^.*libnvrtc\.so\.1[0-9].* => //p' | sed -n 1p)"
  [ -n "$found" ] && echo "$found"
}

if [ -n "${KERNELWRIGHT_NVRTC:-}" ]; then
  echo "fetch_nvrtc: KERNELWRIGHT_NVRTC names $KERNELWRIGHT_NVRTC"
  exit 0
fi
if found="$(toolkit_nvrtc)"; then
  echo "fetch_nvrtc: the CUDA toolkit has $found"
  exit 0
fi
if [ -e "$library" ]; then
  echo "fetch_nvrtc: the wheel is there: $library"
  exit 0
fi

mkdir -p "$folder"
work="$(mktemp -d "$folder/.fetch.XXXXXX")"
trap 'rm -rf "$work"' EXIT

pip=(python3 -m pip)
if ! python3 -m pip --version >/dev/null 2>&1; then
  python3 -m venv "$work/venv"
  pip=("$work/venv/bin/python" -m pip)
fi
echo "fetch_nvrtc: downloading nvidia-cuda-nvrtc-cu12 $version (90 MB)"
"${pip[@]}" download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
  -r scripts/nvrtc-requirements.txt -d "$work/wheel"
python3 -m zipfile -e "$work"/wheel/*.whl "$work/unpacked"
# Complete or absent: the folder appears under its name in one step; who comes second keeps the first one's.
if ! mv -T "$work/unpacked" "$folder/$version" 2>/dev/null && [ ! -e "$library" ]; then
  echo "fetch_nvrtc: cannot move the library to $folder/$version" >&2
  exit 3
fi
echo "fetch_nvrtc: $library"
