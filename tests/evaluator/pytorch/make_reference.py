#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes programs with what PyTorch computes for them in float64: the cases of tests/evaluator/pytorch_reference_test.cpp.

32 programs are written by hand, so that every pointwise function, reduction and form of subscript that PyTorch has occurs; the others are random
(bench/make_random_specs.py). Inputs are a function of the tensor's position in the spec and of the element (input_element here and in the test),
exact in every dtype. Needs PyTorch: scripts/evaluator_against_pytorch.py makes the environment and calls this.

usage: make_reference.py --count 60 --seed 1 [--elements 20] -o FILE
"""
import argparse
import json
import math
import pathlib
import sys

import torch

import notation

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
import make_random_specs  # noqa: E402

MASK = (1 << 64) - 1
LAUNCH_SCALAR = 0.75  # every launch-time scalar; the test has the same


def mixed(word):
    """SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators)."""
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def input_element(position, element, dtype, low, high):
    """Element (row-major) of the tensor at `position` of the spec: reals are multiples of 1/64 in [-2, 2), integers are in the range or [-8, 8]."""
    word = mixed((position << 40) + element) >> 16
    if dtype == "bool":
        return word % 2
    if dtype.startswith("i"):
        low, high = (-8, 8) if low is None else (low, high)
        return low + word % (high - low + 1)
    return (word % 256 - 128) / 64


def input_tensor(position, dtype, extents, low, high):
    values = [input_element(position, element, dtype, low, high) for element in range(math.prod(extents))]
    kind = notation.BOOL if dtype == "bool" else notation.INTEGER if dtype.startswith("i") else notation.REAL
    return torch.tensor(values, dtype=kind).reshape(extents)


def spec(name, dims, tensors, body, scalars=(), index=()):
    """tensors: "x f32 M,N" reads, "> y f32 M" is written, "<> z f32 M" both; what follows the shape is kept: "ids i32 M range = [0, 4]"."""
    lines = [f'name = "{name}"', "[dims]", *(f"{dim} = {extent}" for dim, extent in dims.items()), "[tensors]"]
    for tensor in tensors:
        words = tensor.split()
        role = {">": ', role = "out"', "<>": ', role = "inout"'}.get(words[0], "")
        own, dtype, shape, *extra = words[1:] if role else words
        shape = ", ".join(f'"{extent}"' for extent in shape.split(",") if extent != "-")
        lines.append(f'{own} = {{ dtype = "{dtype}", shape = [{shape}]{role}{", " + " ".join(extra) if extra else ""} }}')
    lines += ["[scalars]", *scalars] if scalars else []
    lines += ["[index]", *index] if index else []
    return name, "\n".join([*lines, "[compute]", 'accumulate = "f64"', 'body = """', *body, '"""', ""])


def written_by_hand():
    one = {"M": 19}
    rows = {"M": 5, "N": 17}
    cube = {"B": 3, "M": 4, "N": 7}
    return [
        spec("exponentials", one, ["x f64 M", "> a f64 M", "> b f64 M", "> c f64 M", "> d f64 M"],
             ["a[m] = exp(x[m])", "b[m] = log(abs(x[m]) + 0.25)", "c[m] = sigmoid(2 * x[m])", "d[m] = tanh(x[m])"]),
        spec("roots_and_powers", one, ["x f32 M", "y f16 M", "> a f64 M", "> b f64 M", "> c f64 M", "> d f64 M"],
             ["a[m] = sqrt(abs(x[m]))", "b[m] = rsqrt(abs(x[m]) + 0.5)", "c[m] = (abs(x[m]) + 0.5) ^ y[m]", "d[m] = -x[m] ^ 2 + 2 ^ -x[m] ^ 2"]),
        spec("activations", one, ["x bf16 M", "> a f64 M", "> b f64 M", "> c f64 M", "> d f64 M", "> e f64 M"],
             ["a[m] = relu(x[m])", "b[m] = gelu(x[m])", "c[m] = gelu_tanh(x[m])", "d[m] = silu(x[m])", "e[m] = erf(x[m])"]),
        spec("circular", one, ["x f64 M", "> a f64 M", "> b f64 M"], ["a[m] = sin(40 * x[m])", "b[m] = cos(40 * x[m])"]),
        spec("floor_abs_negate", one, ["x f64 M", "> a f64 M", "> b f64 M", "> c f64 M"], ["a[m] = floor(4 * x[m])", "b[m] = abs(x[m])", "c[m] = -x[m]"]),
        spec("four_operations", one, ["x f64 M", "y f64 M", "> a f64 M", "> b f64 M"],
             ["a[m] = x[m] + y[m] * x[m] - y[m]", "b[m] = x[m] / (y[m] * y[m] + 1) / 3"]),
        spec("extremes_of_two", one, ["x f64 M", "y f64 M", "> a f64 M", "> b f64 M"], ["a[m] = min(x[m], y[m])", "b[m] = max(x[m], max(y[m], 0.5))"]),
        spec("special_values", one, ["x f64 M", "> a f64 M", "> b f64 M", "> c bool M", "> d f64 M", "> e f64 M"],
             ["t[m] = where(x[m] > 1, inf, where(x[m] < -1, nan, x[m]))", "a[m] = relu(t[m])", "b[m] = max(t[m], 0.25) + min(t[m], 0.5)",
              "c[m] = isfinite(t[m])", "d[m] = exp(-t[m])", "e[m] = 1 / max(x[m], 0)"]),
        spec("comparisons", {"M": 60}, ["x f64 M", "c i32 M", "> a bool M", "> b bool M", "> d bool M", "> e bool M", "> f bool M", "> g bool M"],
             ["a[m] = c[m] < 2", "b[m] = c[m] <= -1", "d[m] = x[m] > 0.5", "e[m] = x[m] >= 0.5", "f[m] = c[m] == 3", "g[m] = c[m] != 3"]),
        spec("logic", {"M": 40}, ["x f64 M", "p bool M", "> a bool M", "> b bool M", "> c f64 M"],
             ["a[m] = p[m] and x[m] > 0 or not (x[m] < 1)", "b[m] = not p[m] and true", "c[m] = where(p[m] or x[m] > 1, x[m], -1)"]),
        spec("integers", {"M": 50}, ["c i32 M", "d i64 M", "> a i64 M", "> b i64 M", "> e i64 M", "> f i32 M", "> g f64 M"],
             ["a[m] = c[m] // 3 + d[m] % 3", "b[m] = (c[m] - 9) // 4 * d[m] - m", "e[m] = max(c[m], d[m]) - min(c[m], 2) % 5", "f[m] = abs(c[m]) * -d[m]",
              "g[m] = c[m] / 4 + d[m] * 0.5"], index=['m = { extent = "M" }']),
        spec("casts", {"M": 40}, ["x f64 M", "y f32 M", "> a f64 M", "> b f64 M", "> c f64 M", "> d i32 M", "> e i64 M"],
             ["a[m] = cast(x[m] * 0.3125 + y[m] * y[m] * y[m], f16)", "b[m] = cast(x[m] * y[m] * 1.125, bf16)", "c[m] = cast(x[m] / 3, f32)",
              "d[m] = cast(3 * x[m], i32)", "e[m] = cast(-2.5 * x[m], i64)"]),
        spec("sums", rows, ["x f64 M,N", "> a f64 M", "> b f64 N", "> c f64 -"], ["a[m] = sum[n](x[m,n])", "b[n] = sum[m](x[m,n] * x[m,n])", "c[] = sum[m,n](x[m,n])"]),
        spec("products", {"M": 5, "N": 6}, ["x f64 M,N", "> a f64 M", "> b f64 -"], ["a[m] = prod[n](x[m,n])", "b[] = prod[m,n](1 + 0.125 * x[m,n])"]),
        spec("extremes", rows, ["x f64 M,N", "> a f64 M", "> b f64 N", "> c f64 -"], ["a[m] = max[n](x[m,n])", "b[n] = min[m](x[m,n])", "c[] = max[m,n](-x[m,n])"]),
        spec("means", rows, ["x f64 M,N", "> a f64 M", "> b f64 -"], ["a[m] = mean[n](x[m,n])", "b[] = mean[m,n](abs(x[m,n]))"]),
        spec("any_all_count", rows, ["x f64 M,N", "p bool M,N", "> a bool M", "> b bool N", "> c i32 M", "> d i64 -"],
             ["a[m] = any[n](x[m,n] > 1.75)", "b[n] = all[m](p[m,n] or x[m,n] > -1)", "c[m] = count[n](p[m,n])", "d[] = count[m,n](x[m,n] > 0)"]),
        spec("positions", {"M": 6, "N": 300}, ["x f64 M,N", "> a i64 M", "> b i32 N", "> c i64 M"],
             ["a[m] = argmax[n](x[m,n])", "b[n] = argmax[m](floor(x[m,n]))", "c[m] = argmax[n](-floor(x[m,n]))"]),
        spec("largest_by_rank", {"M": 6, "N": 40, "R": 5}, ["x f64 M,N", "> a f64 M,R", "> b i32 M,R", "> c f64 N"],
             ["a[m,r] = topk[n](x[m,n], r)", "b[m,r] = topk_index[n](floor(x[m,n]), r)", "c[n] = topk[m](x[m,n], 1)"]),
        spec("logsumexps", rows, ["x f64 M,N", "> a f64 M", "> b f64 -"], ["a[m] = logsumexp[n](30 * x[m,n])", "b[] = logsumexp[m,n](x[m,n])"]),
        spec("softmaxes", rows, ["x f64 M,N", "s f64 M", "> a f64 M,N", "> b f64 M,N", "> c f64 M,N"],
             ["a[m,n] = softmax[n](20 * x[m,n])", "b[m,n] = softmax[m](x[m,n])", "c[m,n] = softmax[n](x[m,n], sink = s[m])"]),
        spec("masked_softmax", {"M": 9, "N": 9}, ["x f64 M,N", "> a f64 M,N", "> b f64 M"],
             ["a[m,n] = softmax[n](where(n <= m, x[m,n], -inf))", "b[m] = logsumexp[n](where(n <= m, x[m,n], -inf))"]),
        spec("running_sums", rows, ["x f64 M,N", "c i32 M,N", "> a f64 M,N", "> b f64 M,N", "> d i64 M,N"],
             ["a[m,n] = cumsum[n](x[m,n])", "b[m,n] = cumsum[m](x[m,n] * x[m,n])", "d[m,n] = cast(cumsum[n](c[m,n]), i64)"]),
        spec("batched_product", {"B": 3, "M": 4, "N": 5, "K": 33}, ["x f64 B,M,K", "w f64 B,N,K", "r f64 N", "> y f64 B,M,N", "> z f64 N,B,M"],
             ["acc[b,m,n] = sum[k](x[b,m,k] * w[b,n,k])", "y[b,m,n] = silu(acc[b,m,n] + r[n])", "z[n,b,m] = alpha * acc[b,m,n]"], scalars=['alpha = "launch"']),
        spec("broadcasts", cube, ["x f64 B,M,N", "u f64 N", "v f64 B,M", "w f64 M", "s f64 -", "> y f64 B,M,N", "> z f64 M,N"],
             ["y[b,m,n] = x[b,m,n] * u[n] + v[b,m] * w[m] - s", "z[m,n] = w[m] * u[n] + s[]"]),
        spec("transposed_and_diagonal", {"M": 7}, ["x f64 M,M", "> y f64 M,M", "> d f64 M", "> t f64 -"],
             ["y[i,j] = x[j,i] - x[i,j]", "d[i] = x[i,i]", "t[] = sum[i](x[i,i])"]),
        spec("gathers", {"M": 11, "N": 6, "V": 5}, ["table f64 V,N", "ids i32 M range = [0, 4]", "cols i64 M,N range = [0, 5]", "> y f64 M,N", "> z f64 M,N", "> w f64 M"],
             ["y[m,n] = table[ids[m],n]", "z[m,n] = table[ids[m],cols[m,n]] * 2", "w[m] = sum[n](table[(ids[m] + n) % V,n])"]),
        spec("computed_subscripts", {"M": 4, "N": 6, "G": 2}, ["x f64 2*M,N+1", "h f64 M//G,N", "> y f64 M,N", "> z f64 M,N"],
             ["y[m,n] = x[2*m + 1,n + 1] - x[m,n]", "z[m,n] = h[m // G,(n * 5) % N] + h[(M - 1 - m) // 2,N - 1 - n]"], index=['m = { extent = "M" }', 'n = { extent = "N" }']),
        spec("written_in_parts", {"M": 3, "D": 8}, ["x f64 M,D", "c f64 D//2", "> y f64 M,D"],
             ["y[m,d] = x[m,d] * c[d] - x[m,d + D//2]", "y[m,d + D//2] = x[m,d + D//2] * c[d] + x[m,d]"], index=['d = { extent = "D//2" }']),
        spec("updated_in_place", rows, ["x f64 M,N", "<> y f32 M,N", "> z f16 M,N", "> w f64 M"],
             ["y[m,n] = 0.5 * y[m,n] + x[m,n]", "z[m,n] = x[m,n] * 1.03125 + 0.0625", "w[m] = sum[n](z[m,n] * z[m,n])"]),
        spec("lazy_reads", {"M": 9, "N": 4}, ["x f64 M", "> y f64 M,N"], ["y[m,n] = where(m >= n, x[m - n], 0)"], index=['m = { extent = "M" }', 'n = { extent = "N" }']),
        spec("normalised_rows", {"M": 5, "N": 100}, ["x f16 M,N", "g f32 N", "> y f64 M,N", "> z f64 M,N"],
             ["mu[m] = mean[n](x[m,n])", "var[m] = mean[n]((x[m,n] - mu[m]) ^ 2)", "y[m,n] = (x[m,n] - mu[m]) * rsqrt(var[m] + eps) * g[n]",
              "z[m,n] = x[m,n] * rsqrt(mean[j](x[m,j] * x[m,j]) + eps)"], scalars=["eps = 0.0009765625"], index=['j = { extent = "N" }']),
    ]


def number(value):
    return "nan" if math.isnan(value) else "inf" if value == math.inf else "-inf" if value == -math.inf else value


def case(name, text, most_elements):
    """The spec, and of each output at most so many elements, drawn by number."""
    results = notation.Program(text, input_tensor, lambda position: LAUNCH_SCALAR).outputs()
    outputs = {}
    for tensor, values in results.items():
        flat = values.reshape(-1).tolist()
        elements = list(range(len(flat))) if len(flat) <= most_elements else sorted({mixed(draw) % len(flat) for draw in range(most_elements)})
        outputs[tensor] = {"elements": elements, "values": [number(flat[element]) for element in elements]}
    return {"name": name, "spec": text, "outputs": outputs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--elements", type=int, default=20, help="of each output, at most; 0: all")
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    programs = written_by_hand()
    # Free ones: they hold every kind of statement. In f64 the evaluator's bounds are those of PyTorch's arithmetic.
    for name, text in make_random_specs.random_specs(max(args.count - len(programs), 0), args.seed, ["free", "row", "contraction"]):
        programs.append((name, text.replace('accumulate = "f32"', 'accumulate = "f64"')))
    cases = [case(name, text, args.elements or sys.maxsize) for name, text in programs[: args.count]]
    with open(args.output, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n")
    print(f"{len(cases)} programs, {sum(len(output['values']) for one in cases for output in one['outputs'].values())} values by PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
