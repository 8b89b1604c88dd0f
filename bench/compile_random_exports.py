#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports kernels of random ops and compiles each export, with its test, by nvcc alone and with warnings as errors.

The specs are those of make_shape_specs.py: odd extents, all transpositions, batches, three types, six epilogues. No GPU is needed: the
kernels are the model's choice.

usage: compile_random_exports.py KERNELWRIGHT [--count 20] [--seed S] [--arch sm_80] [--nvcc nvcc]
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    return done.returncode, done.stdout + done.stderr


def check(args, spec, folder):
    """None, or what went wrong with the export of `spec`."""
    database, out = folder / f"{spec.stem}.db", folder / spec.stem
    op = spec.name.removesuffix(".op.toml")
    # A short budget: some compiled kernel is wanted, not the model's best.
    steps = [
        [args.executable, "tune", spec, "--db", database, "--device", "none", "--arch", args.arch, "--budget", "4s"],
        [args.executable, "export", op, "--db", database, "--device", "none", "--arch", args.arch, "-o", out],
    ]
    for file in (f"{op}.cu", f"test_{op}.cu"):
        steps.append([args.nvcc, "-std=c++20", "-Xcompiler=-Wall,-Wextra", "-Werror", "all-warnings", "-gencode",
                      f"arch={args.arch.replace('sm', 'compute')},code={args.arch}", "-c", out / file, "-o", folder / "object.o"])  # -arch=sm_90a adds compute_90
    for step in steps:
        code, text = run(step)
        if code != 0:
            return f"{' '.join(str(word) for word in step)} ended with {code}:\n{text}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executable")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    args = parser.parse_args()
    if not os.access(args.nvcc, os.X_OK):
        sys.exit(f"{args.nvcc}: no nvcc here; name one with --nvcc")
    num_failed = 0
    with tempfile.TemporaryDirectory(prefix="kernelwright-exports-") as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.executable, ROOT / "bench/make_shape_specs.py", "--count", str(args.count), "--seed", str(args.seed), "-o",
                        folder / "specs"], check=True, stdout=subprocess.DEVNULL)
        for spec in sorted((folder / "specs").glob("*.op.toml")):
            fault = check(args, spec, folder)
            num_failed += fault is not None
            print(f"{spec.name}: {fault or 'ok'}", flush=True)
    print(f"{'FAIL' if num_failed else 'PASS'}: {args.count - num_failed} of {args.count} exports and their tests compile without a warning")
    sys.exit(1 if num_failed else 0)


if __name__ == "__main__":
    main()
