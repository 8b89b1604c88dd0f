#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the kernels of a tuning database against what a user would take instead: protocol v1, A B A B, one process, one stream.

Our kernels are found and launched by libkernelwright.so.  Cases come from a shapes file (bench/shapes.json): lists "gemm", "attn", "decode"
and "rows" of objects with a name and dims.  A case whose op the database does not hold is reported as not served.

Peers of a gemm case, out[M,N] = x[M,K] x w[N,K]^T, with bias and relu where our op has a bias:
  cublas     torch.matmul: cuBLAS, without an epilogue
  cublaslt   cuBLASLt: with the fused epilogue where there is one, else torch.matmul through cuBLASLt
  inductor_max  torch.compile, mode max-autotune-no-cudagraphs
Peers of a rows case (norms, softmax, activations over M rows of N elements):
  eager      the functions of torch.nn.functional
  inductor   torch.compile
  inductor_max  torch.compile, mode max-autotune-no-cudagraphs
--inductor-cache keeps what torch.compile made.

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
KINDS = ("gemm", "attn", "decode", "rows", "plans")
# The op of each kind and type in the database; --op changes it. Those of rows are called like the case's op: rmsnorm_bf16 (bench/ops).
OPS = {"gemm/f16": "matmul_bias_relu", "gemm/bf16": "matmul_bf16"}
PEERS = {"gemm": ("cublas", "cublaslt", "inductor_max"), "rows": ("eager", "inductor", "inductor_max"),
         "plans": ("eager", "inductor", "inductor_max")}
DEFAULT_PEERS = {"gemm": ("cublas", "cublaslt"), "rows": ("eager", "inductor"), "plans": ("eager", "inductor")}
# All tensors of the ops that are plans of several kernels (examples/), outputs too.
PLAN_SHAPES = {
    "swiglu_mlp": lambda case: {"x": (case["M"], case["D"]), "gate": (case["F"], case["D"]), "up": (case["F"], case["D"]),
                                "down": (case["D"], case["F"]), "out": (case["M"], case["D"])},
    "linear_residual_rmsnorm": lambda case: {"x": (case["M"], case["K"]), "w": (case["D"], case["K"]), "residual": (case["M"], case["D"]),
                                             "scale": (case["D"],), "stream": (case["M"], case["D"]), "out": (case["M"], case["D"])}}
# Tensors of M x N elements that a rows op reads and writes.
ROW_PASSES = {"rmsnorm": 2, "layernorm": 2, "softmax": 2, "add_rmsnorm": 4, "swiglu": 3, "bias_gelu": 2}


def interval(ratios):
    """Median and 95 % bootstrap interval of the median."""
    rng = random.Random(1)
    medians = sorted(sorted(rng.choices(ratios, k=len(ratios)))[len(ratios) // 2] for _ in range(2000))
    return sorted(ratios)[len(ratios) // 2], medians[50], medians[1949]


def headroom(ratio, peer_us, bound_us):
    """Share of what the peer leaves to the bound that we took: 1 at the bound, 0 at the peer. None where the peer is at the bound."""
    return math.log(ratio) / math.log(peer_us / bound_us) if bound_us and peer_us > 1.001 * bound_us else None


def bytes_of(kind, case):
    """Compulsory traffic: each large tensor once."""
    if kind == "rows":
        return ROW_PASSES[case["op"]] * case["M"] * case["N"] * ITEM_BYTES[case["dtype"]]
    if kind == "plans":
        return sum(math.prod(shape) for shape in PLAN_SHAPES[case["op"]](case).values()) * ITEM_BYTES[case["dtype"]]
    m, n, k = case["M"], case["N"], case["K"]
    return (m * k + n * k + m * n) * ITEM_BYTES[case["dtype"]]


def flops_of(kind, case):
    """Of the matrix products; rows have none."""
    if kind == "plans":
        return 2 * case["M"] * case["D"] * (3 * case["F"] if case["op"] == "swiglu_mlp" else case["K"])
    return 2 * case["M"] * case["N"] * case["K"] if kind == "gemm" else 0


def bound_us(kind, case, args):
    if not args.peak_tflops or not args.peak_gbs:
        return None
    return max(1e-6 * flops_of(kind, case) / args.peak_tflops, 1e-3 * bytes_of(kind, case) / args.peak_gbs)


def op_of(kind, case, args):
    """The name of the case's op in the database; None when none is known."""
    if kind == "rows":
        return args.ops.get(f"rows/{case['op']}/{case['dtype']}", f"{case['op']}_{case['dtype']}")
    if kind == "plans":
        return args.ops.get(f"plans/{case['op']}", case["op"])
    return args.ops.get(f"{kind}/{case['dtype']}")


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

    def replays_ms(self, graph, replays):
        """Of one replay, of several in a row: only the first shows what launching a graph costs."""
        self.start.record()
        for _ in range(replays):
            graph.replay()
        self.stop.record()
        self.stop.synchronize()
        return self.start.elapsed_time(self.stop) / replays

    def round_us(self, graph, launches, milliseconds):
        replays = max(1, math.ceil(milliseconds / max(self.replays_ms(graph, 1), 1e-3)))
        return self.replays_ms(graph, replays) / launches * 1e3

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


class Case:
    """Inputs, our launches and the peers of one case. A derived class makes `inputs` (sets of tensors by name), `outputs` (by name), the
    reference and the peers' functions."""

    def __init__(self, torch, library, kind, case, op, dims):
        self.torch, self.case = torch, case
        self.dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[case["dtype"]]
        self.kernel = library.find(op, dims)
        self.num_sets = max(1, math.ceil(L2_FACTOR * torch.cuda.get_device_properties(0).L2_cache_size / bytes_of(kind, case)) + 1)
        self.workspaces = [torch.zeros(max(1, size), device="cuda", dtype=torch.uint8)
                           for size in (self.kernel.workspace_bytes, self.kernel.zeroed_workspace_bytes)]

    def normal(self, *shape):
        return self.torch.randn(*shape, device="cuda", dtype=self.dtype)

    def poisoned(self, *shape):
        return self.torch.full(shape, float("nan"), device="cuda", dtype=self.dtype)

    def ours(self):
        functions = []
        for tensors in self.inputs:
            pointers = {name: tensor.data_ptr() for name, tensor in (tensors | self.outputs).items() if name in self.kernel.tensor_names}
            launch = self.kernel.bind(pointers, *[workspace.data_ptr() for workspace in self.workspaces])
            functions.append(lambda launch=launch: launch(self.torch.cuda.current_stream().cuda_stream))
        return functions

    def check(self):
        """Relative norm of the largest error of an output; raises beyond error_bound()."""
        self.ours()[0]()
        reference = self.reference(self.inputs[0])
        error = max(((self.outputs[name].double() - reference[name]).norm() / reference[name].norm()).item() for name in self.outputs)
        if not error <= self.error_bound():
            raise RuntimeError(f"wrong result: relative error {error:.3g}, must be at most {self.error_bound():.3g}")
        return error

    def peer(self, name):
        """One function for each input set."""
        call = self.peer_call(name)
        return [lambda one=one: call(one) for one in self.inputs]


class GemmCase(Case):
    """out[M,N] = x[M,K] x w[N,K]^T, with bias and relu where our op has a bias."""

    def __init__(self, torch, library, case, op):
        m, n, k = case["M"], case["N"], case["K"]
        super().__init__(torch, library, "gemm", case, op, {"M": m, "N": n, "K": k})
        self.has_bias = "bias" in self.kernel.tensor_names
        self.inputs = [{"A": self.normal(m, k), "B": self.normal(n, k), "bias": self.normal(n)} for _ in range(self.num_sets)]
        self.outputs = {"out": self.poisoned(m, n)}
        self.peer_out = torch.empty_like(self.outputs["out"])

    def reference(self, tensors):
        product = (tensors["A"].float() @ tensors["B"].float().t()).double()
        return {"out": self.torch.relu(product + tensors["bias"].double()) if self.has_bias else product}

    def error_bound(self):
        """Of rounding the result and summing K products."""
        return UNIT_ROUNDOFF[self.case["dtype"]] + 8 * math.sqrt(self.case["K"]) * 2.0**-24

    def peer_call(self, name):
        torch = self.torch

        def matmul(blas):
            def call(one):
                torch.backends.cuda.preferred_blas_library(blas)
                torch.matmul(one["A"], one["B"].t(), out=self.peer_out)
            return call

        if name == "cublas":
            return matmul("cublas")
        if name == "cublaslt":
            if not self.has_bias:
                return matmul("cublaslt")
            return lambda one: torch._addmm_activation(one["bias"], one["A"], one["B"].t(), out=self.peer_out)
        formula = (lambda a, b, bias: torch.relu(a @ b.t() + bias)) if self.has_bias else (lambda a, b, bias: a @ b.t())
        compiled = torch.compile(formula, mode="max-autotune-no-cudagraphs", dynamic=False)
        return lambda one: compiled(one["A"], one["B"], one["bias"])


class RowCase(Case):
    """Norms, softmax and activations over M rows of N elements."""

    def __init__(self, torch, library, case, op):
        m, n, name = case["M"], case["N"], case["op"]
        super().__init__(torch, library, "rows", case, op, {"M": m, "N": n})
        shapes = {"x": (m, 2 * n) if name == "swiglu" else (m, n)}
        if name == "add_rmsnorm":
            shapes["residual"] = (m, n)
        if name in ("rmsnorm", "layernorm", "add_rmsnorm"):
            shapes["w"] = (n,)
        if name in ("layernorm", "bias_gelu"):
            shapes["bias"] = (n,)
        self.inputs = [{tensor: self.normal(*shape) for tensor, shape in shapes.items()} for _ in range(self.num_sets)]
        self.outputs = {tensor: self.poisoned(m, n) for tensor in (("total", "out") if name == "add_rmsnorm" else ("out",))}

    def formula(self):
        """The op in PyTorch's words: tensors in the order of the inputs -> the outputs in the order of ours."""
        functional, n, name = self.torch.nn.functional, self.case["N"], self.case["op"]
        if name == "rmsnorm":
            return lambda x, w: functional.rms_norm(x, (n,), w, 1e-6)
        if name == "layernorm":
            return lambda x, w, bias: functional.layer_norm(x, (n,), w, bias)
        if name == "softmax":
            return lambda x: self.torch.softmax(x, -1)
        if name == "swiglu":
            return lambda x: functional.silu(x[:, :n]) * x[:, n:]
        if name == "bias_gelu":
            return lambda x, bias: functional.gelu(x + bias, approximate="tanh")

        def add_rmsnorm(x, residual, w):
            total = x + residual
            return total, functional.rms_norm(total, (n,), w, 1e-6)
        return add_rmsnorm

    def reference(self, tensors):
        doubles = {name: tensor.double() for name, tensor in tensors.items()}
        if self.case["op"] == "add_rmsnorm":  # the norm is of the rounded sum
            total = doubles["x"] + doubles["residual"]
            rounded = total.to(self.dtype).double()
            return {"total": total, "out": self.torch.nn.functional.rms_norm(rounded, (self.case["N"],), doubles["w"], 1e-6)}
        return {"out": self.formula()(*doubles.values())}

    def error_bound(self):
        """Of rounding the result; the sums' errors are far smaller."""
        return 1.5 * UNIT_ROUNDOFF[self.case["dtype"]] + 1e-6

    def peer_call(self, name):
        formula = self.formula()
        if name != "eager":
            mode = "max-autotune-no-cudagraphs" if name == "inductor_max" else None
            formula = self.torch.compile(formula, mode=mode, dynamic=False)
        return lambda one: formula(*one.values())


class PlanCase(Case):
    """Ops of several kernels; peers are captured into one graph as ours are."""

    def __init__(self, torch, library, case, op):
        dims = {name: case[name] for name in ("M", "D", "F", "K") if name in case}
        super().__init__(torch, library, "plans", case, op, dims)
        shapes = PLAN_SHAPES[case["op"]](case)
        self.inputs = [{name: self.normal(*shape) for name, shape in shapes.items() if name not in ("stream", "out")}
                       for _ in range(self.num_sets)]
        self.outputs = {name: self.poisoned(*shapes[name]) for name in ("stream", "out") if name in shapes}

    def formula(self):
        """The op in PyTorch's words: tensors in the order of the inputs -> the outputs in the order of ours."""
        functional = self.torch.nn.functional
        if self.case["op"] == "swiglu_mlp":
            return lambda x, gate, up, down: (functional.silu(x @ gate.t()) * (x @ up.t())) @ down.t()

        def linear_residual_rmsnorm(x, w, residual, scale):
            stream = x @ w.t() + residual
            return stream, functional.rms_norm(stream, (self.case["D"],), scale, 1e-6)
        return linear_residual_rmsnorm

    def reference(self, tensors):
        doubles = {name: tensor.double() for name, tensor in tensors.items()}
        if self.case["op"] == "swiglu_mlp":
            return {"out": self.formula()(*doubles.values())}
        stream = doubles["x"] @ doubles["w"].t() + doubles["residual"]
        return {"stream": stream, "out": self.torch.nn.functional.rms_norm(stream, (self.case["D"],), doubles["scale"], 1e-6)}

    def error_bound(self):
        """Of rounding the result and one intermediate to 16 bits; sums of products in f32."""
        return 2 * UNIT_ROUNDOFF[self.case["dtype"]]

    def peer_call(self, name):
        formula = self.formula()
        if name != "eager":
            formula = self.torch.compile(formula, mode="max-autotune-no-cudagraphs" if name == "inductor_max" else None, dynamic=False)
        return lambda one: formula(*one.values())


CASES = {"gemm": GemmCase, "rows": RowCase, "plans": PlanCase}


def compare_case(torch, timer, library, kind, case, args):
    problem = CASES[kind](torch, library, case, op_of(kind, case, args))
    row = {"case": case["name"], "variant": problem.kernel.variant, "match": problem.kernel.match, "input_sets": len(problem.inputs),
           "relative_error": problem.check()}
    peers = [name for name in args.peers or DEFAULT_PEERS[kind] if name in PEERS[kind]]
    times = timer.alternate({"ours": problem.ours()} | {name: problem.peer(name) for name in peers}, args.rounds)
    row["median_us"] = {name: round(sorted(samples)[len(samples) // 2], 3) for name, samples in times.items()}
    if flops_of(kind, case):
        row["tflops"] = {name: round(1e-6 * flops_of(kind, case) / us, 1) for name, us in row["median_us"].items()}
    row["gb_per_s"] = {name: round(1e-3 * bytes_of(kind, case) / us, 1) for name, us in row["median_us"].items()}
    row["ratio_peer_over_ours"] = {name: [round(value, 4) for value in interval([peer / own for peer, own in zip(samples, times["ours"])])]
                                   for name, samples in times.items() if name != "ours"}
    bound, best = bound_us(kind, case, args), best_peer(row)
    if best and bound:
        row["bound_us"] = round(bound, 3)
        row["headroom"] = headroom(best[1][0], row["median_us"][best[0]], bound)
    return row


def compare(torch, timer, library, kind, case, args):
    if kind not in CASES:
        return {"case": case["name"], "not_served": f"no peers are known for {kind}"}
    if op_of(kind, case, args) is None:
        return {"case": case["name"], "not_served": f"no op is known for {kind} in {case['dtype']}: see --op"}
    try:
        return compare_case(torch, timer, library, kind, case, args)
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
    parser.add_argument("--peers", default="", help="of each kind (default: cublas,cublaslt,eager,inductor)")
    parser.add_argument("--op", action="append", default=[], metavar="KIND/DTYPE=NAME or rows/OP/DTYPE=NAME")
    parser.add_argument("--inductor-cache", help="folder of what torch.compile made: a later run compiles nothing")
    parser.add_argument("--peak-tflops", type=float)
    parser.add_argument("--peak-gbs", type=float)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each side (protocol v1: at least 5)")
    parser.add_argument("--out")
    args = parser.parse_args(words)
    args.ops = OPS | dict(item.split("=", 1) for item in args.op)
    args.peers = [name for name in args.peers.split(",") if name]
    unknown = [name for name in args.peers if not any(name in known for known in PEERS.values())]
    if unknown:
        raise SystemExit(f"--peers: {', '.join(unknown)}: must be of {', '.join(sorted(set(sum(PEERS.values(), ()))))}")
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
        torch._dynamo.reset()
        torch.cuda.empty_cache()
    lines.append({"summary": summary(lines[1:])})
    print(json.dumps(lines[-1]), flush=True)
    if args.out:
        pathlib.Path(args.out).write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
