#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the kernels of a tuning database against what a user would take instead: protocol v1, A B A B, one process, one stream.

Our kernels are found and launched by libkernelwright.so.  Cases come from a shapes file (bench/shapes.json): lists "gemm", "attn", "decode"
and "rows" of objects with a name and dims.  A case whose op the database does not hold is reported as not served.

Peers of a gemm case, out[M,N] = x[M,K] x w[N,K]^T, with bias and relu where our op has a bias:
  cublas     torch.matmul: cuBLAS, without an epilogue
  cublaslt   cuBLASLt: with the fused epilogue where there is one, else torch.matmul through cuBLASLt
  inductor   torch.compile, mode max-autotune-no-cudagraphs; --inductor-cache keeps what it compiled

One JSON line per case: medians in us, TFLOP/s, GB/s of the compulsory traffic, and for each peer the median ratio peer/ours of the rounds with
its 95 % bootstrap interval (above 1: we are faster).  Headroom is ln(ratio) / ln(peer's time / bound), the bound by --peak-tflops and --peak-gbs
(measured rates of this device; without them it is left out).  Then the geometric mean over the cases of the ratio to the best peer, the smallest, and the losers:
cases whose interval lies below 1.

usage: compare.py --shapes bench/shapes.json --db F --lib build/libkernelwright.so [--only gemm,attn] [--case REGEX] [--peers cublas,cublaslt]
                  [--op gemm/bf16=matmul_bf16 ...] [--rounds 9] [--out FILE]
"""
import argparse
import json
import math
import os
import pathlib
import random
import re

import kernelwright_library

ROUND_MS, WARMUP_MS, GRAPH_MS, L2_FACTOR = 50.0, 150.0, 2.0, 2.2
UNIT_ROUNDOFF = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}
ITEM_BYTES = {"f16": 2, "bf16": 2, "f32": 4}
KINDS = ("gemm", "attn", "decode", "rows")
# The op of each kind and type in the database; --op changes it.
OPS = {"gemm/f16": "matmul_bias_relu", "gemm/bf16": "matmul_bf16"}


def interval(ratios):
    """Median and 95 % bootstrap interval of the median."""
    rng = random.Random(1)
    medians = sorted(sorted(rng.choices(ratios, k=len(ratios)))[len(ratios) // 2] for _ in range(2000))
    return sorted(ratios)[len(ratios) // 2], medians[50], medians[1949]


def headroom(ratio, peer_us, bound_us):
    """Share of what the peer leaves to the bound that we took: 1 at the bound, 0 at the peer. None where the peer is at the bound."""
    return math.log(ratio) / math.log(peer_us / bound_us) if bound_us and peer_us > 1.001 * bound_us else None


def gemm_bound_us(case, args):
    if not args.peak_tflops or not args.peak_gbs:
        return None
    return max(2e-6 * case["M"] * case["N"] * case["K"] / args.peak_tflops, 1e-3 * gemm_bytes(case) / args.peak_gbs)


def gemm_bytes(case):
    m, n, k = case["M"], case["N"], case["K"]
    return (m * k + n * k + m * n) * ITEM_BYTES[case["dtype"]]


def best_peer(row):
    """(name, [ratio, low, high]) of the fastest peer; None when there is none."""
    ratios = row.get("ratio_peer_over_ours", {})
    return min(ratios.items(), key=lambda item: item[1][0]) if ratios else None


def summary(rows):
    """Over the cases with a peer: number, geometric mean and minimum of the ratio to the best peer, losers, what failed or is not served."""
    best = {row["case"]: best_peer(row) for row in rows if best_peer(row)}
    ratios = [ratio[0] for _, ratio in best.values()]
    return {"cases": len(ratios),
            "geometric_mean": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 4) if ratios else None,
            "minimum": min(ratios) if ratios else None,
            "losers": sorted(case for case, (_, (_, _, high)) in best.items() if high < 1),
            "failed": sorted(row["case"] for row in rows if "error" in row),
            "not_served": sorted(row["case"] for row in rows if "not_served" in row)}


def read_cases(path, only, pattern):
    """(kind, case) of the shapes file, each case with its dtype."""
    shapes = json.loads(pathlib.Path(path).read_text())
    unknown = set(only) - set(KINDS)
    if unknown:
        raise SystemExit(f"--only: {', '.join(sorted(unknown))}: must be of {', '.join(KINDS)}")
    return [(kind, {"dtype": "bf16"} | case) for kind in only for case in shapes.get(kind, []) if re.search(pattern, case["name"])]


class Timer:
    """CUDA graphs of many launches that rotate over input sets, and rounds of replays."""

    def __init__(self, torch):
        self.torch = torch
        self.start, self.stop = torch.cuda.Event(True), torch.cuda.Event(True)

    def once_ms(self, functions, stream):
        with self.torch.cuda.stream(stream):
            self.start.record()
            for function in functions:
                function()
            self.stop.record()
        self.stop.synchronize()
        return max(self.start.elapsed_time(self.stop) / len(functions), 1e-3)

    def capture(self, functions):
        """(graph, launches): at least GRAPH_MS long, whole turns over the sets."""
        stream = self.torch.cuda.Stream()
        self.once_ms(functions, stream)
        launches = len(functions) * max(1, math.ceil(GRAPH_MS / self.once_ms(functions, stream) / len(functions)))
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, stream=stream):
            for index in range(launches):
                functions[index % len(functions)]()
        return graph, launches

    def round_us(self, graph, launches, milliseconds):
        total_ms, replays = 0.0, 0
        while total_ms < milliseconds:
            self.start.record()
            graph.replay()
            self.stop.record()
            self.stop.synchronize()
            total_ms += self.start.elapsed_time(self.stop)
            replays += 1
        return total_ms / (replays * launches) * 1e3

    def alternate(self, sides, rounds):
        """name -> times of the rounds in us, the first dropped: every side in turn in every round."""
        graphs = {name: self.capture(functions) for name, functions in sides.items()}
        for graph, launches in graphs.values():
            self.round_us(graph, launches, WARMUP_MS)
        times = {name: [] for name in graphs}
        for _ in range(rounds + 1):
            for name, (graph, launches) in graphs.items():
                times[name].append(self.round_us(graph, launches, ROUND_MS))
        return {name: samples[1:] for name, samples in times.items()}


class GemmCase:
    """Inputs, our launches and the peers of one gemm case."""

    def __init__(self, torch, library, case, op):
        self.torch, self.case = torch, case
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[case["dtype"]]
        m, n, k = case["M"], case["N"], case["K"]
        self.kernel = library.find(op, {"M": m, "N": n, "K": k})
        self.has_bias = "bias" in self.kernel.tensor_names
        set_bytes = gemm_bytes(case)
        num_sets = max(1, math.ceil(L2_FACTOR * torch.cuda.get_device_properties(0).L2_cache_size / set_bytes) + 1)
        normal = lambda *shape: torch.randn(*shape, device="cuda", dtype=dtype)
        self.inputs = [(normal(m, k), normal(n, k), normal(n)) for _ in range(num_sets)]
        self.out = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
        self.peer_out = torch.empty_like(self.out)
        self.workspaces = [torch.zeros(max(1, size), device="cuda", dtype=torch.uint8)
                           for size in (self.kernel.workspace_bytes, self.kernel.zeroed_workspace_bytes)]

    def ours(self):
        functions = []
        for a, b, bias in self.inputs:
            launch = self.kernel.bind({"A": a.data_ptr(), "B": b.data_ptr(), "bias": bias.data_ptr(), "out": self.out.data_ptr()},
                                      *[workspace.data_ptr() for workspace in self.workspaces])
            functions.append(lambda launch=launch: launch(self.torch.cuda.current_stream().cuda_stream))
        return functions

    def check(self):
        """Relative norm of the error against an fp32 product; raises beyond the bound of rounding the result and summing K products."""
        self.ours()[0]()
        a, b, bias = self.inputs[0]
        reference = a.float() @ b.float().t()
        if self.has_bias:
            reference = self.torch.relu(reference + bias.float())
        error = ((self.out.float() - reference).norm() / reference.norm()).item()
        bound = UNIT_ROUNDOFF[self.case["dtype"]] + 8 * math.sqrt(self.case["K"]) * 2.0**-24
        if not error <= bound:
            raise RuntimeError(f"wrong result: relative error {error:.3g}, must be at most {bound:.3g}")
        return error

    def peer(self, name):
        """One function for each input set."""
        torch = self.torch

        def matmul(blas):
            def call(a, b, _):
                torch.backends.cuda.preferred_blas_library(blas)
                torch.matmul(a, b.t(), out=self.peer_out)
            return call

        if name == "cublas":
            call = matmul("cublas")
        elif name == "cublaslt" and self.has_bias:
            call = lambda a, b, bias: torch._addmm_activation(bias, a, b.t(), out=self.peer_out)
        elif name == "cublaslt":
            call = matmul("cublaslt")
        elif name == "inductor":
            formula = (lambda a, b, bias: torch.relu(a @ b.t() + bias)) if self.has_bias else (lambda a, b, bias: a @ b.t())
            call = torch.compile(formula, mode="max-autotune-no-cudagraphs", dynamic=False)
        else:
            raise SystemExit(f"--peers: {name}: must be of cublas, cublaslt, inductor")
        return [lambda one=one: call(*one) for one in self.inputs]


def compare_gemm(torch, timer, library, case, args):
    problem = GemmCase(torch, library, case, args.ops[f"gemm/{case['dtype']}"])
    row = {"case": case["name"], "variant": problem.kernel.variant, "match": problem.kernel.match, "input_sets": len(problem.inputs),
           "relative_error": problem.check()}
    times = timer.alternate({"ours": problem.ours()} | {name: problem.peer(name) for name in args.peers}, args.rounds)
    row["median_us"] = {name: round(sorted(samples)[len(samples) // 2], 3) for name, samples in times.items()}
    row["tflops"] = {name: round(2e-6 * case["M"] * case["N"] * case["K"] / us, 1) for name, us in row["median_us"].items()}
    row["gb_per_s"] = {name: round(1e-3 * gemm_bytes(case) / us, 1) for name, us in row["median_us"].items()}
    row["ratio_peer_over_ours"] = {name: [round(value, 4) for value in interval([peer / own for peer, own in zip(samples, times["ours"])])]
                                   for name, samples in times.items() if name != "ours"}
    bound_us = gemm_bound_us(case, args)
    best = best_peer(row)
    if best and bound_us:
        row["bound_us"] = round(bound_us, 3)
        row["headroom"] = headroom(best[1][0], row["median_us"][best[0]], bound_us)
    return row


def compare(torch, timer, library, kind, case, args):
    if f"{kind}/{case['dtype']}" not in args.ops:
        return {"case": case["name"], "not_served": f"no op is known for {kind} in {case['dtype']}: see --op"}
    if kind != "gemm":
        return {"case": case["name"], "not_served": f"no peers are known for {kind}"}
    try:
        return compare_gemm(torch, timer, library, case, args)
    except kernelwright_library.LibraryError as error:
        return {"case": case["name"], "not_served": str(error)}
    except Exception as error:  # one case must not cost the others
        return {"case": case["name"], "error": f"{type(error).__name__}: {error}"}


def read_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=str(pathlib.Path(__file__).parent / "shapes.json"))
    parser.add_argument("--db", required=True)
    parser.add_argument("--lib", default="build/libkernelwright.so")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--case", default="", help="regular expression on the names of cases")
    parser.add_argument("--peers", default="cublas,cublaslt")
    parser.add_argument("--op", action="append", default=[], metavar="KIND/DTYPE=NAME")
    parser.add_argument("--inductor-cache", help="folder of what torch.compile made: a later run compiles nothing")
    parser.add_argument("--peak-tflops", type=float)
    parser.add_argument("--peak-gbs", type=float)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each side (protocol v1: at least 5)")
    parser.add_argument("--out")
    args = parser.parse_args(words)
    args.ops = OPS | dict(item.split("=", 1) for item in args.op)
    args.peers = [name for name in args.peers.split(",") if name]
    return args


def main():
    args = read_arguments()
    cases = read_cases(args.shapes, args.only.split(","), args.case)
    if args.inductor_cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = args.inductor_cache
    import torch  # only here: the arithmetic above is tested without it

    torch.zeros(1, device="cuda")  # makes the context current: the library takes it
    properties = torch.cuda.get_device_properties(0)
    lines = [{"device": properties.name, "torch": torch.__version__, "cuda": torch.version.cuda, "protocol": "v1, cold L2, A B A B", "rounds": args.rounds,
              "round_ms": ROUND_MS}]
    print(json.dumps(lines[0]), flush=True)
    library, timer = kernelwright_library.Library(args.lib, args.db), Timer(torch)
    for kind, case in cases:
        lines.append(compare(torch, timer, library, kind, case, args))
        print(json.dumps(lines[-1]), flush=True)
        torch.cuda.empty_cache()
    lines.append({"summary": summary(lines[1:])})
    print(json.dumps(lines[-1]), flush=True)
    if args.out:
        pathlib.Path(args.out).write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
