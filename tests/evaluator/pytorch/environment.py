#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a virtual environment with PyTorch for the CPU and prints its Python.

PyTorch's wheel on PyPI is the one for CUDA: importing it loads a dozen NVIDIA libraries (3 GB of further wheels). On the CPU none of their functions
is used, so each library is replaced by a stub: a shared object of that name whose functions return cudaErrorNoDevice. The stubs stand in
PyTorch's own folder, which it searches first; needs gcc, nm and readelf. Downloads 540 MB, takes 1.2 GB of disk; a second run does nothing.

usage: environment.py FOLDER
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")
FOREIGN = re.compile(r"^lib(cu|nccl|nvrtc|nvshmem|nvJitLink|nvjitlink|nvToolsExt)")
NO_DEVICE = 100  # cudaErrorNoDevice, CUDA Runtime API


def lines_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def wanted_by(libraries):
    """Names of NVIDIA libraries that PyTorch's own need, and the undefined symbols: {version or "": names}."""
    names, symbols = set(), collections.defaultdict(set)
    for library in libraries:
        for line in lines_of("readelf", "-d", str(library)):
            match = re.search(r"NEEDED.*\[(.*)\]", line)
            if match and FOREIGN.match(match[1]):
                names.add(match[1])
        for line in lines_of("nm", "-D", "--undefined-only", str(library)):
            name, _, version = line.split()[-1].partition("@")
            if FOREIGN.match(version) or version == "NVSHMEM" or (not version and re.match(r"(__)?(cu[A-Z_a-z]|nccl|nvrtc|nvshmem)", name)):
                symbols[version.strip("@")].add(name)
    return names, symbols


def make_stub(folder, name, symbols):
    """A library with every symbol: those of its own version under it, those without a version in every stub; NVSHMEM names its version alone."""
    own = {"": symbols[""]}
    version = "NVSHMEM" if "nvshmem" in name else name
    if version in symbols:
        own[version] = symbols[version]
    with tempfile.TemporaryDirectory() as scratch:
        source, script = pathlib.Path(scratch, "stub.c"), pathlib.Path(scratch, "stub.map")
        every = sorted(set().union(*own.values()))
        source.write_text("".join(f"long {symbol}(void) {{ return {NO_DEVICE}; }}\n" for symbol in every))
        versioned = sorted(own.get(version, set()))
        script.write_text(f"{version} {{ global: {'; '.join(versioned)}; }};\n" if versioned else "")
        options = [f"-Wl,--version-script={script}"] if versioned else []
        # The symbols stand for others of their names, some of them built in.
        subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", "-O1", f"-Wl,-soname,{name}", *options, "-o", str(folder / name), str(source)], check=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve()
    python = folder / "bin" / "python"
    done = folder / "is_complete"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        print("environment: downloading PyTorch (540 MB)", file=sys.stderr, flush=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--only-binary=:all:", "--require-hashes",
                        "-r", str(REQUIREMENTS)], check=True)
        libraries = next(folder.glob("lib/python3*/site-packages/torch/lib"))
        own = sorted(libraries.glob("*.so*"))
        names, symbols = wanted_by(own)
        for name in sorted(names - {library.name for library in own}):
            make_stub(libraries, name, symbols)
        subprocess.run([str(python), "-c", "import torch; assert not torch.cuda.is_available()"], check=True)
        done.write_text("")
    print(python)


if __name__ == "__main__":
    main()
