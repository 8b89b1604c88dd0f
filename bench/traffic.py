#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes that plans move between DRAM and the L2, measured by Nsight Compute, beside the model's (`kernelwright explain`).

Each case is a tuned op of bench/ops/plans at some dims. A child process launches its stored plan over rotating input sets (together at least
L2_FACTOR times the L2), first unprofiled, then LAUNCHES times under ncu with caches left as they are: what an earlier launch left dirty is
written during a later one, so that whole launches add up. Large cases, whose intermediates exceed four times the L2, are compared with the
model without a cache; small ones with the model that knows the L2.

usage: traffic.py --kernelwright KW --db DB --lib LIB [--case REGEX] [--out FILE]
"""
import argparse
import csv
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
L2_FACTOR = 2.2
LAUNCHES = 6
METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
# op, dims of the large case, dims of the small one
CASES = (("projection_norm_bf16", {"M": 131072, "D": 1024, "K": 1024}, {"M": 8192, "D": 1024, "K": 1024}),
         ("norm_projection_bf16", {"M": 131072, "D": 1024, "K": 1024}, {"M": 8192, "D": 1024, "K": 1024}),
         ("softmax_projection_bf16", {"M": 131072, "D": 1024, "K": 1024}, {"M": 8192, "D": 1024, "K": 1024}),
         ("gated_mlp_bf16", {"M": 65536, "D": 1024, "F": 2816}, {"M": 4096, "D": 1024, "F": 2816}),
         ("two_layers_bf16", {"M": 131072, "D": 1024, "F": 1024}, {"M": 8192, "D": 1024, "F": 1024}),
         ("attention_in_steps_bf16", {"S": 16384, "D": 128}, {"S": 2048, "D": 128}))


def spec_path(op):
    return ROOT / "bench" / "ops" / "plans" / f"{op}.op.toml"


def dims_text(dims):
    return ",".join(f"{name}={value}" for name, value in dims.items())


def shapes_of(spec, dims):
    """name -> (shape, is_output) of the spec's tensors."""
    return {name: ([dims[extent] if isinstance(extent, str) else extent for extent in tensor["shape"]], tensor.get("role", "in") != "in")
            for name, tensor in spec["tensors"].items()}


def bytes_of_kernels(text):
    """Of the profiled kernels of a report (ncu --csv --page raw --print-units base), in their order: (bytes read, bytes written)."""
    lines = text.splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise ValueError("no table in ncu's output: " + text[-2000:])
    table = [line for line in lines[first:] if line.startswith("\"")]  # the program prints too
    rows = list(csv.DictReader(io.StringIO("\n".join(table))))
    rows = [row for row in rows if row["ID"]]  # the row of units has none
    return [tuple(float(row[metric].replace(",", "")) for metric in METRICS) for row in rows]


def by_position(kernels, num_launches):
    """Means over the launches: what each kernel of the plan reads and writes, in MB."""
    if not kernels or len(kernels) % num_launches != 0:
        raise ValueError(f"{len(kernels)} kernels were profiled in {num_launches} launches")
    length = len(kernels) // num_launches
    return [[sum(one[side] for one in kernels[at::length]) / num_launches / 1e6 for side in (0, 1)] for at in range(length)]


def cut_of(config):
    """The number of the cut in a plan's config, "0.BLOCK_K=64,...,CUT=2"; 0 of a single kernel."""
    found = re.search(r"(?:^|,)CUT=(\d+)", config)
    return int(found.group(1)) if found else 0


def child(args):
    import torch

    import kernelwright_library

    torch.zeros(1, device="cuda")
    dims = dict((name, int(value)) for name, value in (item.split("=") for item in args.dims.split(",")))
    kernel = kernelwright_library.Library(args.lib, args.db).find(args.child, dims)
    shapes = shapes_of(tomllib.loads(spec_path(args.child).read_text()), dims)
    input_bytes = sum(2 * math.prod(shape) for shape, is_output in shapes.values() if not is_output)
    num_sets = max(1, math.ceil(L2_FACTOR * torch.cuda.get_device_properties(0).L2_cache_size / input_bytes))
    new = lambda shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    outputs = {name: new(shape) for name, (shape, is_output) in shapes.items() if is_output}
    workspaces = [torch.zeros(max(1, size), device="cuda", dtype=torch.uint8) for size in (kernel.workspace_bytes, kernel.zeroed_workspace_bytes)]
    launches = []
    for _ in range(num_sets):
        inputs = {name: new(shape) for name, (shape, is_output) in shapes.items() if not is_output}
        outputs[f"inputs {len(launches)}"] = inputs  # kept alive
        pointers = {name: tensor.data_ptr() for name, tensor in (inputs | {n: t for n, t in outputs.items() if not isinstance(t, dict)}).items()}
        launches.append(kernel.bind(pointers, *[workspace.data_ptr() for workspace in workspaces]))
    stream = torch.cuda.current_stream().cuda_stream
    for launch in launches * 2:
        launch(stream)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for index in range(LAUNCHES):
        launches[index % num_sets](stream)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
    print("child " + json.dumps({"variant": kernel.variant, "config": kernel.config, "match": kernel.match, "input_sets": num_sets}))


def measure(args, op, dims, is_large):
    command = ["ncu", "--target-processes", "all", "--profile-from-start", "off", "--cache-control", "none", "--clock-control", "none", "--csv", "--page",
               "raw", "--print-units", "base", "--metrics", ",".join(METRICS), sys.executable, __file__, "--child", op, "--dims", dims_text(dims),
               "--db", args.db, "--lib", args.lib]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    told = next((json.loads(line[6:]) for line in run.stdout.splitlines() if line.startswith("child ")), None)
    if run.returncode != 0 or told is None:
        raise RuntimeError(f"{op}: {run.stdout[-1500:]} {run.stderr[-1500:]}")
    kernels = by_position(bytes_of_kernels(run.stdout), LAUNCHES)
    explained = json.loads(subprocess.run([args.kernelwright, "explain", str(spec_path(op)), "--set", dims_text(dims), "--arch", "sm_90a", "--json"],
                                          capture_output=True, text=True, check=True).stdout)[0]
    plan = next(plan for plan in explained["plans"] if plan["number"] == cut_of(told["config"]))
    model_mb = (plan["bytes"] if is_large else plan["l2_aware_bytes"]) / 1e6
    measured_mb = sum(read + written for read, written in kernels)
    return {"op": op, "dims": dims_text(dims), "is_large": is_large, "cut": plan["cut"], **told,
            "kernels": [{"read_mb": read, "written_mb": written, "model_mb": model["bytes"] / 1e6} for (read, written), model in zip(kernels, plan["kernels"])],
            "measured_mb": measured_mb, "model_mb": model_mb, "workspace_mb": plan["workspace_bytes"] / 1e6, "measured_over_model": measured_mb / model_mb}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelwright")
    parser.add_argument("--db", required=True)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--case", default="", help="regular expression on the names of ops")
    parser.add_argument("--out")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--dims", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args)
    if not args.kernelwright:
        parser.error("--kernelwright is needed: its explain tells what the model says")
    rows = []
    for op, large, small in CASES:
        if not re.search(args.case, op):
            continue
        for dims in (large, small):
            try:
                rows.append(measure(args, op, dims, dims is large))
            except (RuntimeError, ValueError, LookupError, StopIteration, OSError, subprocess.SubprocessError) as error:
                rows.append({"op": op, "dims": dims_text(dims), "error": f"{type(error).__name__}: {error}"})
            print(json.dumps(rows[-1]), flush=True)
            if args.out:
                pathlib.Path(args.out).write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
