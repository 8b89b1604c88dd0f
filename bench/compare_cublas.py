#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a tuned kernel of the database against cuBLAS and cuBLASLt on the same work: protocol v1, A B A B, one process, one stream.

Each case is an op of the database that computes out = epilogue(A[M,K] x B[N,K]^T (+ bias[N])).  Our cubin is launched through the
driver API with the launch plan that `kernelwright query --json` evaluates; the peers are PyTorch's matmul (cuBLAS, no epilogue) and
addmm with a fused relu (cuBLASLt).  Outputs are checked against fp32 matmul on the same inputs before timing.

One JSON line per case: medians in us, ratio peer/ours per round with a 95 % bootstrap interval (above 1: we are faster).

usage: compare_cublas.py --kernelwright build/kernelwright --db F --case OP:M=1024,N=4096,K=4096[:f16] ... [--rounds 9] [--out FILE]
"""
import argparse
import ctypes
import json
import math
import random
import subprocess
import tempfile

import torch

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
ROUND_MS, WARMUP_MS, GRAPH_MS, L2_FACTOR = 50.0, 150.0, 2.0, 2.2
cuda = ctypes.CDLL("libcuda.so.1")


def check(code, what):
    if code != 0:
        raise RuntimeError(f"{what}: CUDA driver error {code}")


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute; only the cluster's shape is used (id 4)."""

    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("cluster", ctypes.c_uint * 3), ("rest", ctypes.c_ubyte * 52)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("smem_bytes", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(LaunchAttribute)), ("num_attributes", ctypes.c_uint)]


def encode_tensor_map(field, tensor):
    """The 128 bytes of a tensor map, in the plan's numbers: CUDA Driver API, cuTensorMapEncodeTiled."""
    spec = field["map"]
    rank = len(spec["extents"])
    room = ctypes.create_string_buffer(128 + 64)
    aligned = (ctypes.addressof(room) + 63) // 64 * 64
    extents = (ctypes.c_uint64 * rank)(*spec["extents"])
    strides = (ctypes.c_uint64 * max(1, rank - 1))(*spec["strides_bytes"])
    box = (ctypes.c_uint32 * rank)(*spec["box"])
    ones = (ctypes.c_uint32 * rank)(*[1] * rank)
    data_type = {"f16": 6, "f32": 7, "bf16": 9}[field["dtype"]]
    swizzle = {0: 0, 32: 1, 64: 2, 128: 3}[spec["swizzle_bytes"]]
    code = cuda.cuTensorMapEncodeTiled(ctypes.c_void_p(aligned), data_type, rank, ctypes.c_void_p(tensor.data_ptr()), extents, strides, box, ones, 0, swizzle, 2, 0)
    check(code, "cuTensorMapEncodeTiled")
    return ctypes.string_at(aligned, 128)


class Kernel:
    """A cubin with its evaluated launch plan, bound to tensors by name."""

    def __init__(self, cubin_path, plan):
        self.plan = plan
        module = ctypes.c_void_p()
        check(cuda.cuModuleLoad(ctypes.byref(module), cubin_path.encode()), "cuModuleLoad")
        self.workspaces = {w["name"]: torch.zeros(max(1, w["bytes"]), dtype=torch.uint8, device="cuda") for w in plan["workspaces"]}
        self.functions = []
        for launch in plan["launches"]:
            function = ctypes.c_void_p()
            check(cuda.cuModuleGetFunction(ctypes.byref(function), module, launch["kernel"].encode()), "cuModuleGetFunction")
            check(cuda.cuFuncSetAttribute(function, 8, launch["dynamic_smem_bytes"]), "cuFuncSetAttribute")  # 8: MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.functions.append(function)

    def arguments(self, launch, tensors):
        buffers = []
        for fields in launch["parameters"]:
            packed = b""
            for field in fields:
                kind = field["kind"]
                if kind == "tensor_map":
                    packed = encode_tensor_map(field, tensors[field["source"]])
                    continue
                if kind == "tensor":
                    value = ctypes.c_uint64(tensors[field["source"]].data_ptr())
                elif kind == "workspace":
                    value = ctypes.c_uint64(self.workspaces[field["source"]].data_ptr())
                elif kind == "int32":
                    value = ctypes.c_int32(field["value"])
                elif kind == "int64":
                    value = ctypes.c_int64(field["value"])
                else:
                    value = ctypes.c_double(1.0) if field["dtype"] == "f64" else ctypes.c_float(1.0)
                size = ctypes.sizeof(value)
                packed += b"\0" * (-len(packed) % size) + bytes(value)
            buffers.append(ctypes.create_string_buffer(packed, len(packed)))
        return buffers

    def bind(self, tensors):
        """A function that launches on the current stream."""
        bound = []
        for launch, function in zip(self.plan["launches"], self.functions):
            buffers = self.arguments(launch, tensors)
            pointers = (ctypes.c_void_p * len(buffers))(*[ctypes.addressof(b) for b in buffers])
            config = LaunchConfig(grid=(ctypes.c_uint * 3)(*launch["grid"]), block=(ctypes.c_uint * 3)(*launch["block"]), smem_bytes=launch["dynamic_smem_bytes"])
            if math.prod(launch["cluster"]) > 1:
                config.attributes = ctypes.pointer(LaunchAttribute(id=4, cluster=(ctypes.c_uint * 3)(*launch["cluster"])))
                config.num_attributes = 1
            bound.append((config, function, buffers, pointers))

        def run():
            for config, function, _, pointers in bound:
                config.stream = torch.cuda.current_stream().cuda_stream
                check(cuda.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None), "cuLaunchKernelEx")

        return run


def capture(functions, target_ms):
    """One CUDA graph of many launches that rotates over `functions`; returns (graph, launches)."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for function in functions:
            function()
    stream.synchronize()
    start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
    start.record(stream)
    with torch.cuda.stream(stream):
        for function in functions:
            function()
    stop.record(stream)
    stop.synchronize()
    one_ms = max(start.elapsed_time(stop) / len(functions), 1e-3)
    launches = len(functions) * max(1, math.ceil(target_ms / one_ms / len(functions)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for i in range(launches):
            functions[i % len(functions)]()
    return graph, launches


def round_us(graph, launches, milliseconds):
    start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
    total, replays = 0.0, 0
    while total < milliseconds:
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        total += start.elapsed_time(stop)
        replays += 1
    return total / (replays * launches) * 1e3


def interval(ratios):
    """Median and 95 % bootstrap interval of the median."""
    rng = random.Random(1)
    medians = sorted(sorted(rng.choices(ratios, k=len(ratios)))[len(ratios) // 2] for _ in range(2000))
    return sorted(ratios)[len(ratios) // 2], medians[50], medians[1949]


def compare(args, case):
    op, shape, *rest = case.split(":")
    dtype = DTYPES[rest[0] if rest else "f16"]
    dims = {k: int(v) for k, v in (item.split("=") for item in shape.split(","))}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        text = subprocess.run([args.kernelwright, "query", op, "--db", args.db, "--set", shape, "--json", "--cubin", cubin.name], check=True, capture_output=True, text=True).stdout
        answer = json.loads(text)
        kernel = Kernel(cubin.name, answer["plan"])
    m, n, k = dims["M"], dims["N"], dims["K"]
    set_bytes = (m * k + n * k) * dtype.itemsize
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    num_sets = max(1, math.ceil(L2_FACTOR * l2_bytes / set_bytes) + 1)
    inputs = [(torch.randn(m, k, device="cuda", dtype=dtype), torch.randn(n, k, device="cuda", dtype=dtype), torch.randn(n, device="cuda", dtype=dtype)) for _ in range(num_sets)]
    out = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
    has_epilogue = any(f.get("source") == "bias" for p in answer["plan"]["launches"][0]["parameters"] for f in p)
    ours = [kernel.bind({"A": a, "B": b, "bias": bias, "out": out}) for a, b, bias in inputs]
    ours[0]()
    torch.cuda.synchronize()
    a, b, bias = inputs[0]
    reference = a.float() @ b.float().t()
    if has_epilogue:
        reference = torch.relu(reference + bias.float())
    error = ((out.float() - reference).norm() / reference.norm()).item()
    if not error < 5e-3:
        raise RuntimeError(f"{case}: wrong result, relative error {error}")
    peer_out = torch.empty_like(out)
    sides = {"ours": ours, "cublas": [lambda a=a, b=b: torch.matmul(a, b.t(), out=peer_out) for a, b, _ in inputs]}
    if has_epilogue:
        sides["cublaslt_bias_relu"] = [lambda a=a, b=b, bias=bias: torch._addmm_activation(bias, a, b.t(), out=peer_out) for a, b, bias in inputs]
    graphs = {name: capture(functions, GRAPH_MS) for name, functions in sides.items()}
    for graph, launches in graphs.values():
        round_us(graph, launches, WARMUP_MS)
    times = {name: [] for name in graphs}
    for _ in range(args.rounds + 1):
        for name, (graph, launches) in graphs.items():
            times[name].append(round_us(graph, launches, ROUND_MS))
    times = {name: samples[1:] for name, samples in times.items()}
    row = {"case": case, "variant": answer["variant"], "match": answer["match"], "relative_error": error, "input_sets": num_sets,
           "median_us": {name: round(sorted(s)[len(s) // 2], 3) for name, s in times.items()}}
    row["tflops"] = {name: round(2.0 * m * n * k / us * 1e-6, 1) for name, us in row["median_us"].items()}
    for peer in times:
        if peer != "ours":
            middle, low, high = interval([p / o for p, o in zip(times[peer], times["ours"])])
            row[f"ratio_{peer}_over_ours"] = [round(middle, 4), round(low, 4), round(high, 4)]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelwright", default="build/kernelwright")
    parser.add_argument("--db", required=True)
    parser.add_argument("--case", action="append", required=True)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each side (protocol v1: at least 9)")
    parser.add_argument("--out")
    args = parser.parse_args()
    torch.zeros(1, device="cuda")  # makes the context current: our cubin is loaded into it
    properties = torch.cuda.get_device_properties(0)
    header = {"device": properties.name, "torch": torch.__version__, "cuda": torch.version.cuda, "protocol": "v1, cold L2, A B A B", "rounds": args.rounds, "round_ms": ROUND_MS}
    lines = [json.dumps(header)]
    print(lines[0], flush=True)
    for case in args.case:
        try:
            row = compare(args, case)
        except Exception as error:  # one case must not cost the others
            row = {"case": case, "error": f"{type(error).__name__}: {error}"}
        lines.append(json.dumps(row))
        print(lines[-1], flush=True)
    if args.out:
        with open(args.out, "w") as stream:
            stream.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
