#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each technique gives: a gemm case tuned with one technique more at a time, all rungs and cuBLAS timed in one run (protocol v1, A B A B).

Each rung is the op with a [tune] block that pins the config, tuned by KERNELWRIGHT from one template into a database of its own; then the kernels
of all rungs are launched through libkernelwright.so in turn with the peers.  One JSON line for each rung: median us, and the ratio of the best peer's
time to ours with its 95 % interval.

usage: ladder.py --kernelwright build/kernelwright --lib build/libkernelwright.so [--spec F --case NAME] [--rounds 9] [--out FILE]
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

import compare
import kernelwright_library

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOPPER = "gemm_sm90_tma_wgmma"
BASE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "CONSUMERS": 1, "IS_PINGPONG": 0, "CLUSTER_M": 1, "CLUSTER_N": 1, "STAGES": 2, "SPLIT_K": 1,
        "SPLITS_ARE_CLUSTER": 0, "GROUP_M": 1, "SWIZZLE_BYTES": 128, "IS_STAGED": 0}
# Each rung changes what is named and keeps the rest of the rung before; None: every config of the template may win.
RUNGS = [("mma.sync and cp.async, best config", "gemm_sm80_mma", None),
         ("TMA ring of two stages, wgmma, 128 x 128, one consumer", HOPPER, BASE),
         ("four stages", HOPPER, {"STAGES": 4}),
         ("128 x 256, two consumers", HOPPER, {"BLOCK_N": 256, "CONSUMERS": 2}),
         ("grouped raster", HOPPER, {"GROUP_M": 8}),
         ("cluster 2 x 1, multicast of B", HOPPER, {"CLUSTER_M": 2}),
         ("staged epilogue", HOPPER, {"IS_STAGED": 1}),
         ("best config", HOPPER, None)]


def only_template(name, folder):
    """The templates of the source tree without the kernels of other templates."""
    shutil.copytree(ROOT / "templates", folder)
    for file in (folder / "gemm").glob("*.cuh"):
        if not file.name.startswith(name):
            file.unlink()
    return folder


def rungs():
    """(title, template, pinned config or None) of every rung."""
    config = {}
    for title, template, changes in RUNGS:
        config = config | (changes or {})
        yield title, template, config if changes else None


def pinned(spec, config):
    """The spec's text with the config as the only one to try."""
    text = pathlib.Path(spec).read_text()
    if "[tune]" in text:
        raise SystemExit(f"{spec}: has a [tune] block of its own")
    return text if config is None else text + "\n[tune]\n" + "".join(f"{name} = [{value}]\n" for name, value in config.items())


def tune(args, template, config, folder):
    """Tunes the op with the config pinned; the database."""
    folder.mkdir()
    spec, database = folder / "rung.op.toml", folder / "rung.db"
    spec.write_text(pinned(args.spec, config))
    done = subprocess.run([args.kernelwright, "tune", spec, "--db", database, "--templates", only_template(template, folder / "templates")],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"tune of {template} {config} ended with {done.returncode}: {done.stderr[-2000:]}")
    return database


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelwright", default="build/kernelwright")
    parser.add_argument("--lib", default="build/libkernelwright.so")
    parser.add_argument("--spec", default=str(ROOT / "examples/matmul_bias_relu/matmul_bias_relu.op.toml"))
    parser.add_argument("--op", default="matmul_bias_relu")
    parser.add_argument("--case", default="seed_1024x4096x4096", help="name of a gemm case of bench/shapes.json")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out")
    args = parser.parse_args()
    case = next(case for kind, case in compare.read_cases(ROOT / "bench/shapes.json", ["gemm"], f"^{args.case}$"))
    with tempfile.TemporaryDirectory() as scratch:
        databases = [tune(args, template, config, pathlib.Path(scratch) / str(number)) for number, (_, template, config) in enumerate(rungs())]
        import torch  # only here: tuning holds the device alone

        torch.zeros(1, device="cuda")
        problems = [compare.GemmCase(torch, kernelwright_library.Library(args.lib, str(database)), case, args.op) for database in databases]
        for problem in problems:
            problem.check()
        sides = {number: problem.ours() for number, problem in enumerate(problems)} | {name: problems[0].peer(name) for name in ("cublas", "cublaslt")}
        times = compare.Timer(torch).alternate(sides, args.rounds)
        median = {name: sorted(samples)[len(samples) // 2] for name, samples in times.items()}
        best = min(("cublas", "cublaslt"), key=median.get)
        lines = [{"device": torch.cuda.get_device_properties(0).name, "case": case["name"], "rounds": args.rounds, "protocol": "v1, cold L2, A B A B",
                  "peer": best, "peer_us": round(median[best], 3)}]
        for number, (title, _, _) in enumerate(RUNGS):
            ratio = compare.interval([peer / own for peer, own in zip(times[best], times[number])])
            lines.append({"rung": title, "variant": problems[number].kernel.variant, "us": round(median[number], 3),
                          "ratio_peer_over_ours": [round(value, 4) for value in ratio]})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        print(text, end="")
        if args.out:
            pathlib.Path(args.out).write_text(text)


if __name__ == "__main__":
    main()
