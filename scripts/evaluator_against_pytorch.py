#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fp64 evaluator against PyTorch: makes an environment with PyTorch for the CPU (540 MB of download, once), computes programs with it, every
element of every output, and compares them with the evaluator's. `test_evaluator` must be built.

ctest compares the evaluator with a sample of elements that is in the repository (tests/evaluator/pytorch_reference.json), without PyTorch;
--update writes that sample anew.

usage: evaluator_against_pytorch.py [--build build] [--count 60] [--seed 1] [--environment FOLDER] [--update]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTORCH = ROOT / "tests" / "evaluator" / "pytorch"
SAMPLE = ROOT / "tests" / "evaluator" / "pytorch_reference.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--environment", type=pathlib.Path, help="default: pytorch in the build folder")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    environment = subprocess.run([sys.executable, str(PYTORCH / "environment.py"), str(args.environment or args.build / "pytorch")], stdout=subprocess.PIPE,
                                 text=True, check=True)
    python = environment.stdout.strip()
    with tempfile.TemporaryDirectory(prefix="kernelwright-pytorch-") as scratch:
        reference = SAMPLE if args.update else pathlib.Path(scratch) / "reference.json"
        subprocess.run([python, str(PYTORCH / "make_reference.py"), "--count", str(args.count), "--seed", str(args.seed),
                        *([] if args.update else ["--elements", "0"]), "-o", str(reference)], check=True)
        test = subprocess.run([str(args.build / "tests" / "evaluator" / "test_evaluator"), "*PyTorch*"],
                              env={**os.environ, "KW_PYTORCH_REFERENCE": str(reference)}, check=False)
    return test.returncode


if __name__ == "__main__":
    sys.exit(main())
