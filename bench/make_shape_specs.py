#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes op specs of matmuls at odd shapes, to check generated kernels with `kernelwright verify`.

M, N and K are drawn from {1, 7, 16, 63, 100, 129, 1000, 1023, 2048, 4097}; all four transpositions, batch 1 and 3, f16, bf16 and f32,
six epilogues. The draw is a function of --seed alone.

usage: make_shape_specs.py --count 60 --seed 1 -o DIR
"""
import argparse
import itertools
import pathlib
import random

EXTENTS = [1, 7, 16, 63, 100, 129, 1000, 1023, 2048, 4097]
EPILOGUES = {
    "plain": ("", "acc[{b}m,n]"),
    "bias_relu": ('bias = {{ dtype = "{t}", shape = ["N"] }}\n', "relu(acc[{b}m,n] + bias[n])"),
    "row_scale_gelu": ('scale = {{ dtype = "f32", shape = ["M"] }}\n', "gelu(acc[{b}m,n] * scale[m])"),
    "residual_silu": ('residual = {{ dtype = "{t}", shape = [{B}"M", "N"] }}\n', "silu(acc[{b}m,n]) + residual[{b}m,n]"),
    "alpha_tanh": ("", "tanh(alpha * acc[{b}m,n])"),
    "two_outputs": ('raw = {{ dtype = "f32", shape = [{B}"M", "N"], role = "out" }}\n', "sigmoid(acc[{b}m,n])"),
}


def spec_text(name, dtype, batch, transpose_a, transpose_b, epilogue, m, n, k):
    b, quoted = ("b,", '"B", ') if batch > 1 else ("", "")
    shape_a = '"K", "M"' if transpose_a else '"M", "K"'
    shape_b = '"N", "K"' if transpose_b else '"K", "N"'
    read_a = f"A[{b}{'k,m' if transpose_a else 'm,k'}]"
    read_b = f"B[{b}{'n,k' if transpose_b else 'k,n'}]"
    tensors, expression = EPILOGUES[epilogue]
    lines = [f'name = "{name}"', "[dims]"]
    if batch > 1:
        lines.append(f"B = {batch}")
    lines += [f"M = {m}", f"N = {n}", f"K = {k}", "[tensors]"]
    lines.append(f'A = {{ dtype = "{dtype}", shape = [{quoted}{shape_a}] }}')
    lines.append(f'B_ = {{ dtype = "{dtype}", shape = [{quoted}{shape_b}] }}')
    if tensors:
        lines.append(tensors.format(t=dtype, B=quoted).rstrip())
    lines.append(f'out = {{ dtype = "{dtype}", shape = [{quoted}"M", "N"], role = "out" }}')
    if epilogue == "alpha_tanh":
        lines += ["[scalars]", "alpha = 0.125"]
    lines += ["[compute]", 'accumulate = "f32"', 'body = """', f"acc[{b}m,n] = sum[k]({read_a} * {read_b.replace('B[', 'B_[')})"]
    if epilogue == "two_outputs":
        lines.append(f"raw[{b}m,n] = acc[{b}m,n]")
    lines += [f"out[{b}m,n] = {expression.format(b=b)}", '"""', ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    kinds = list(itertools.product(["f16", "bf16", "f32"], [1, 3], [False, True], [False, True], EPILOGUES))
    rng.shuffle(kinds)
    folder = pathlib.Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(args.count):
        dtype, batch, transpose_a, transpose_b, epilogue = kinds[i % len(kinds)]
        m, n, k = (rng.choice(EXTENTS) for _ in range(3))
        name = f"shape{i:03d}_{dtype}_{'t' if transpose_a else 'n'}{'t' if transpose_b else 'n'}_b{batch}_{epilogue}"
        (folder / f"{name}.op.toml").write_text(spec_text(name, dtype, batch, transpose_a, transpose_b, epilogue, m, n, k))
    print(f"{args.count} specs in {folder}")


if __name__ == "__main__":
    main()
