#!/usr/bin/env bash
# Installs what the build and the tests need on Debian 12 and Ubuntu 24.04, and only what is missing: a second run asks no server.
# Runs as root, or through sudo. The list is scripts/packages.txt.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v apt-get >/dev/null; then
  echo "install_packages: this system has no apt-get; install by hand what scripts/packages.txt lists" >&2
  exit 3
fi

missing=()
while read -r package _; do
  case "$package" in "" | "#"*) continue ;; esac
  if ! dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii'; then
    missing+=("$package")
  fi
done <scripts/packages.txt

if [ "${#missing[@]}" -eq 0 ]; then
  echo "install_packages: all packages are there"
  exit 0
fi

echo "install_packages: installing ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages: neither root nor sudo; ask an administrator for: apt-get install ${missing[*]}" >&2
    exit 3
  fi
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
