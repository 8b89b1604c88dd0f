#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles random legal variants with NVRTC: 200 for sm_80 and 50 each for sm_86, sm_89, sm_90, sm_100 and sm_120.

The specs are the example and odd matmuls of make_shape_specs.py, in turn. A variant may be refused by ptxas for registers (counted, less
than 2 %); those that compile but spill are counted apart. Anything else that does not compile is a failure and is printed.

usage: compile_random_variants.py KERNELWRIGHT [--seed S] [--jobs N] [--archs sm_80=200,sm_90=50]
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHS = "sm_80=200,sm_86=50,sm_89=50,sm_90=50,sm_100=50,sm_120=50"
VARIANTS_OF_A_SPEC = 10
REFUSED_SHARE_LIMIT = 0.02


def generate(args, spec, arch, count, seed, folder):
    """The manifest's entries of `count` random variants, compiled without a cache."""
    command = [args.executable, "generate", str(spec), "--arch", arch, "--random", str(seed), "--limit", str(count), "--compile", "--json",
               "--cache", "", "-o", str(folder / "out")] + (["--jobs", args.jobs] if args.jobs else [])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"FAIL: {' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["variants"]


def is_refused_for_registers(entry):
    error = entry["compile"]["error"]
    return entry["compile"]["status"] == "compile_failed" and "ptxas" in error and "register" in error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executable")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs")
    parser.add_argument("--archs", default=ARCHS)
    args = parser.parse_args()
    failures = []
    with tempfile.TemporaryDirectory(prefix="kernelwright-compile-") as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.executable, str(ROOT / "bench/make_shape_specs.py"), "--count", "60", "--seed", str(args.seed), "-o",
                        str(folder / "specs")], check=True, stdout=subprocess.DEVNULL)
        specs = [ROOT / "examples/matmul_bias_relu/matmul_bias_relu.op.toml", *sorted((folder / "specs").glob("*.op.toml"))]
        at = 0
        for item in args.archs.split(","):
            arch, _, wanted = item.partition("=")
            counts, templates, num_done, slowest_ms = collections.Counter(), collections.Counter(), 0, 0.0
            while num_done < int(wanted):
                entries = generate(args, specs[at % len(specs)], arch, min(VARIANTS_OF_A_SPEC, int(wanted) - num_done), args.seed + at, folder)
                at += 1
                num_done += len(entries)
                for entry in entries:
                    outcome = entry["compile"]
                    templates[entry["template"]] += 1
                    slowest_ms = max(slowest_ms, outcome["compile_ms"])
                    kind = "refused for registers" if is_refused_for_registers(entry) else outcome["status"]
                    counts[kind] += 1
                    if kind not in ("ok", "spills_refused", "refused for registers"):
                        failures.append(f"{arch} {specs[(at - 1) % len(specs)].name} {entry['file']}: {outcome['status']}: {outcome['error']}")
            refused_share = counts["refused for registers"] / num_done
            if refused_share >= REFUSED_SHARE_LIMIT:
                failures.append(f"{arch}: {refused_share:.1%} refused for registers")
            print(f"{arch}: {num_done} variants: {counts['ok']} compile, {counts['spills_refused']} compile with spills, "
                  f"{counts['refused for registers']} refused by ptxas for registers; slowest {slowest_ms:.0f} ms; "
                  f"{', '.join(f'{count} {template}' for template, count in sorted(templates.items()))}", flush=True)
    for failure in failures:
        print(failure)
    print("FAIL" if failures else "PASS: every variant compiles or is refused for registers within the limit")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
