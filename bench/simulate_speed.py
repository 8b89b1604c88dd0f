#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the PTX simulator is on one core with all checks on, and how much memory it takes.

Runs `kernelwright simulate` on a generated 256x256x256 GEMM (one schedule) and on an sm_90a GEMM with TMA, wgmma and clusters at 256x512x512
(three schedules), several times each, and prints the least time, warp instructions a second and the largest resident memory of the process.

usage: simulate_speed.py KERNELWRIGHT [--repeats 5] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/matmul_bias_relu/matmul_bias_relu.op.toml"
LAUNCH = ROOT / "bench/simulator/gemm_256x512x512.launch.toml"


def run(command):
    """The JSON that the command prints, and its resident memory at the most in MiB (of it and of its children, each alone)."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:  # a process of its own, so that the memory is that of this one run
        os.close(read_end)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        report = {"code": done.returncode, "out": done.stdout, "mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}
        with os.fdopen(write_end, "w") as pipe:
            json.dump(report, pipe)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        report = json.load(pipe)
    os.waitpid(child, 0)
    if report["code"] != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {report['code']}")
    return json.loads(report["out"]), report["mib"]


def launches_of(result):
    """Warp instructions and seconds of all launches in a result of `simulate --json`: of a spec (each case runs twice) or of a foreign kernel."""
    if "runs" in result:
        return sum(r["report"]["num_warp_instructions"] for r in result["runs"]), sum(r["seconds"] for r in result["runs"])
    cases = [case for problem in result["problems"] for case in problem["cases"]]
    return sum(c["warp_instructions"] for c in cases), sum(c["seconds"] for c in cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernelwright")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        cases = {
            "sm_80 GEMM 256x256x256, one schedule": [
                options.kernelwright, "simulate", EXAMPLE, "--arch", "sm_80", "--variants", "1", "--schedule", "eager", "--set", "M=256,N=256,K=256",
                "--cache", cache, "--json"],
            "sm_90a GEMM 256x512x512, three schedules": [options.kernelwright, "simulate", "--launch", LAUNCH, "--json"],
        }
        rows = []
        for name, command in cases.items():
            runs = [run(command) for _ in range(options.repeats)]
            instructions = launches_of(runs[0][0])[0]
            seconds = min(launches_of(result)[1] for result, _ in runs)
            rows.append({"case": name, "seconds": seconds, "warp_instructions": instructions, "per_second": instructions / seconds,
                         "mib": max(mib for _, mib in runs)})
            print(f"{name}: {seconds:.3f} s, {instructions / 1e6:.2f} M warp instructions, {instructions / seconds / 1e6:.2f} M a second, "
                  f"{rows[-1]['mib']:.0f} MiB")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
