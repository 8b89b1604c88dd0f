#!/usr/bin/env python3
# Writes numpy_reference.json: small op specs with inputs and the outputs NumPy computes for them in float64, the independent check of the
# evaluator. Run it after adding a case: python3 tests/evaluator/numpy_reference.py (needs numpy; the test itself does not).
# SPDX-License-Identifier: Apache-2.0
import json
import math
import os

import numpy as np

np.seterr(all="ignore")
rng = np.random.default_rng(20240229)
cases = []


def normal(*shape):
    return rng.standard_normal(shape)


def positive(*shape):
    return rng.uniform(0.25, 3.0, shape)


def flat(array):
    array = np.asarray(array, dtype=np.float64).ravel()
    return ["nan" if math.isnan(v) else "inf" if v == math.inf else "-inf" if v == -math.inf else float(v) for v in array]


def toml_table(entries):
    parts = []
    for key, value in entries.items():
        text = json.dumps(value) if not isinstance(value, bool) else ("true" if value else "false")
        parts.append(f"{key} = {text}")
    return "{ " + ", ".join(parts) + " }"


def case(name, dims, inputs, outputs, body, scalars=None, given=None, index=None, accumulate=None):
    """inputs, outputs: name -> (dtype, shape, array[, extra fields]); an inout tensor stands in both, under its own fields in inputs."""
    lines = [f'name = "{name}"', "[dims]"] + [f"{key} = {value}" for key, value in dims.items()] + ["[tensors]"]
    for tensor, (dtype, shape, _, *extra) in inputs.items():
        lines.append(f"{tensor} = " + toml_table({"dtype": dtype, "shape": shape, **(extra[0] if extra else {})}))
    for tensor, (dtype, shape, _, *extra) in outputs.items():
        if tensor not in inputs:
            lines.append(f"{tensor} = " + toml_table({"dtype": dtype, "shape": shape, "role": "out", **(extra[0] if extra else {})}))
    if scalars:
        lines += ["[scalars]"] + [f"{key} = {json.dumps(value)}" for key, value in scalars.items()]
    if index:
        lines += ["[index]"] + [f"{key} = {toml_table(value)}" for key, value in index.items()]
    lines += ["[compute]"]
    if accumulate:
        lines.append(f'accumulate = "{accumulate}"')
    lines += ['body = """', body.strip(), '"""']
    cases.append({
        "name": name,
        "spec": "\n".join(lines) + "\n",
        "scalars": given or {},
        "inputs": {t: flat(v[2]) for t, v in inputs.items()},
        "outputs": {t: flat(v[2]) for t, v in outputs.items()},
    })


def unary(name, expression, function, x):
    case(name, {"M": len(x)}, {"x": ("f64", ["M"], x)}, {"y": ("f64", ["M"], function(x))}, f"y[m] = {expression}")


def binary(name, expression, function, x, y):
    case(name, {"M": len(x)}, {"x": ("f64", ["M"], x), "y": ("f64", ["M"], y)}, {"z": ("f64", ["M"], function(x, y))}, f"z[m] = {expression}")


edge = np.concatenate([normal(9) * 3, [0.0, -0.0, 1.0, -1.0, 40.0, -40.0, np.nan, np.inf, -np.inf]])
erf = np.vectorize(math.erf)
sigmoid = lambda x: np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))
gelu = lambda x: np.where(x == -np.inf, 0, 0.5 * x * np.vectorize(math.erfc)(-x / math.sqrt(2)))
gelu_tanh = lambda x: np.where(x == -np.inf, 0, 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
finite = edge[np.isfinite(edge)]

# Pointwise functions.
unary("abs", "abs(x[m])", np.abs, edge)
unary("negate", "-x[m]", np.negative, edge)
unary("exp", "exp(x[m])", np.exp, edge)
unary("log", "log(x[m])", np.log, edge)
unary("sqrt", "sqrt(x[m])", np.sqrt, edge)
unary("rsqrt", "rsqrt(x[m])", lambda x: 1 / np.sqrt(x), np.concatenate([positive(6), [0.0, -1.0, np.inf, np.nan]]))
unary("tanh", "tanh(x[m])", np.tanh, edge)
unary("sigmoid", "sigmoid(x[m])", sigmoid, edge)
unary("relu", "relu(x[m])", lambda x: np.maximum(x, 0), edge)
unary("gelu", "gelu(x[m])", gelu, edge)
unary("gelu_tanh", "gelu_tanh(x[m])", gelu_tanh, np.concatenate([normal(8), [0.0, 3.0, -3.0, np.inf, np.nan]]))
unary("silu", "silu(x[m])", lambda x: np.where(x == -np.inf, 0, x * sigmoid(x)), edge)
unary("erf", "erf(x[m])", erf, edge)
unary("sin", "sin(x[m])", np.sin, edge)
unary("cos", "cos(x[m])", np.cos, edge)
unary("floor", "floor(x[m])", np.floor, edge)
unary("isfinite", "where(isfinite(x[m]), 1, 0)", lambda x: np.isfinite(x) * 1.0, edge)
binary("arithmetic", "(x[m] + y[m]) * (x[m] - y[m]) / y[m]", lambda x, y: (x + y) * (x - y) / y, normal(12), np.append(normal(11), 0.0))
binary("power", "x[m] ^ y[m]", np.power, np.append(positive(10), [0.0, -2.0]), np.append(normal(10), [2.0, 3.0]))
binary("minimum_maximum", "min(x[m], y[m]) + 2 * max(x[m], y[m])", lambda x, y: np.minimum(x, y) + 2 * np.maximum(x, y), edge, edge[::-1].copy())
binary("comparisons", "where(x[m] < y[m], 1, 0) + where(x[m] <= y[m], 2, 0) + where(x[m] > y[m], 4, 0) + where(x[m] >= y[m], 8, 0) + where(x[m] == y[m], 16, 0) + where(x[m] != y[m], 32, 0)",
       lambda x, y: (x < y) * 1.0 + (x <= y) * 2 + (x > y) * 4 + (x >= y) * 8 + (x == y) * 16 + (x != y) * 32, edge, np.roll(edge, 1))
binary("logic", "where((x[m] > 0 and y[m] > 0) or not (x[m] > -1), 1, 0)", lambda x, y: (((x > 0) & (y > 0)) | ~(x > -1)) * 1.0, normal(16), normal(16))
x = normal(12) * 100
case("cast_f16", {"M": 12}, {"x": ("f64", ["M"], x)}, {"y": ("f64", ["M"], x.astype(np.float16).astype(np.float64))}, "y[m] = cast(x[m], f16)")
case("cast_f32", {"M": 12}, {"x": ("f64", ["M"], x)}, {"y": ("f64", ["M"], x.astype(np.float32).astype(np.float64))}, "y[m] = cast(x[m], f32)")
case("cast_i32", {"M": 12}, {"x": ("f64", ["M"], x)}, {"y": ("i32", ["M"], np.trunc(x))}, "y[m] = cast(x[m], i32)")

# Reductions.
a, b = normal(5, 7), normal(6, 7)
case("matmul_nt", {"M": 5, "N": 6, "K": 7}, {"A": ("f64", ["M", "K"], a), "B": ("f64", ["N", "K"], b)}, {"out": ("f64", ["M", "N"], a @ b.T)}, "out[m,n] = sum[k](A[m,k] * B[n,k])")
case("matmul_tn", {"M": 7, "N": 7, "K": 5}, {"A": ("f64", ["K", "M"], a), "B": ("f64", ["K", "N"], a + 1)}, {"out": ("f64", ["M", "N"], a.T @ (a + 1))}, "out[m,n] = sum[k](A[k,m] * B[k,n])")
bias = normal(6)
case("matmul_bias_relu", {"M": 5, "N": 6, "K": 7}, {"A": ("f64", ["M", "K"], a), "B": ("f64", ["N", "K"], b), "bias": ("f64", ["N"], bias)},
     {"out": ("f64", ["M", "N"], np.maximum(a @ b.T + bias, 0))}, "acc[m,n] = sum[k](A[m,k] * B[n,k])\nout[m,n] = relu(acc[m,n] + bias[n])")
ab, bb, res = normal(3, 4, 5), normal(3, 5, 6), normal(3, 4, 6)
case("batched_residual", {"B": 3, "M": 4, "N": 6, "K": 5}, {"x": ("f64", ["B", "M", "K"], ab), "w": ("f64", ["B", "K", "N"], bb), "r": ("f64", ["B", "M", "N"], res)},
     {"out": ("f64", ["B", "M", "N"], 0.5 * (ab @ bb) + res)}, "out[b,m,n] = alpha * sum[k](x[b,m,k] * w[b,k,n]) + r[b,m,n]", scalars={"alpha": "launch"}, given={"alpha": 0.5})
case("two_outputs", {"M": 5, "N": 6, "K": 7}, {"A": ("f64", ["M", "K"], a), "B": ("f64", ["N", "K"], b)},
     {"u": ("f64", ["M", "N"], np.tanh(a @ b.T)), "v": ("f64", ["N", "M"], (a @ b.T).T)}, "acc[m,n] = sum[k](A[m,k] * B[n,k])\nu[m,n] = tanh(acc[m,n])\nv[n,m] = acc[m,n]")
case("long_sum", {"M": 2, "K": 1000}, {"x": ("f64", ["M", "K"], (long := normal(2, 1000)))}, {"s": ("f64", ["M"], long.sum(1))}, "s[m] = sum[k](x[m,k])")
case("sum_of_squares_over_two", {"M": 3, "J": 4, "K": 5}, {"x": ("f64", ["M", "J", "K"], (cube := normal(3, 4, 5)))}, {"s": ("f64", ["M"], (cube**2).sum((1, 2)))}, "s[m] = sum[j,k](x[m,j,k] * x[m,j,k])")
for op, function in {"max": np.max, "min": np.min, "mean": np.mean, "prod": np.prod}.items():
    case(f"reduce_{op}", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], a)}, {"s": ("f64", ["M"], function(a, axis=1))}, f"s[m] = {op}[k](x[m,k])")
nan_row = a.copy()
nan_row[1, 3] = np.nan
nan_row[2, 0] = np.inf
case("max_with_nan", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], nan_row)}, {"s": ("f64", ["M"], nan_row.max(1)), "t": ("f64", ["M"], nan_row.sum(1))}, "s[m] = max[k](x[m,k])\nt[m] = sum[k](x[m,k])")
case("any_all_count", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], a)}, {"s": ("f64", ["M"], (a > 1).any(1) + 2 * (a > -1.5).all(1)), "c": ("i32", ["M"], (a > 0).sum(1))},
     "s[m] = where(any[k](x[m,k] > 1), 1, 0) + where(all[k](x[m,k] > -1.5), 2, 0)\nc[m] = count[k](x[m,k] > 0)")
ties = np.array([[1.0, 3, 3, 2], [0, -1, 0, -5], [2, np.nan, 9, np.nan], [-np.inf] * 4])
case("argmax", {"M": 4, "K": 4}, {"x": ("f64", ["M", "K"], ties)}, {"s": ("i64", ["M"], ties.argmax(1))}, "s[m] = argmax[k](x[m,k])")
ordered = np.argsort(-a, axis=1, kind="stable")
case("topk", {"M": 5, "K": 7, "R": 3}, {"x": ("f64", ["M", "K"], a)}, {"v": ("f64", ["M", "R"], np.take_along_axis(a, ordered, 1)[:, :3]), "p": ("i32", ["M", "R"], ordered[:, :3])},
     "v[m,r] = topk[k](x[m,k], r)\np[m,r] = topk_index[k](x[m,k], r)")
masked = a.copy()
masked[2, :] = -np.inf
masked[3, 2:] = -np.inf
top = masked.max(1, keepdims=True)
safe = np.where(np.isinf(top), 0, top)
weight = np.exp(masked - safe)
total = weight.sum(1, keepdims=True)
case("softmax", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], masked)}, {"p": ("f64", ["M", "K"], np.where(total > 0, weight / np.where(total > 0, total, 1), 0))}, "p[m,k] = softmax[k](x[m,k])")
case("logsumexp", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], masked)}, {"s": ("f64", ["M"], (np.log(total) + safe)[:, 0])}, "s[m] = logsumexp[k](x[m,k])")
sink = normal(5)
case("softmax_sink", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], a), "s": ("f64", ["M"], sink)}, {"p": ("f64", ["M", "K"], np.exp(a) / (np.exp(a).sum(1, keepdims=True) + np.exp(sink)[:, None]))},
     "p[m,k] = softmax[k](x[m,k], sink = s[m])")
case("cumsum", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], a)}, {"c": ("f64", ["M", "K"], a.cumsum(1))}, "c[m,k] = cumsum[k](x[m,k])")
case("empty_reductions", {"M": 3, "K": 0}, {"x": ("f64", ["M", "K"], np.zeros((3, 0)))}, {"s": ("f64", ["M"], np.zeros(3)), "p": ("f64", ["M"], np.ones(3)), "t": ("f64", ["M"], np.full(3, -np.inf)), "l": ("f64", ["M"], np.full(3, -np.inf))},
     "s[m] = sum[k](x[m,k])\np[m] = prod[k](x[m,k])\nt[m] = max[k](x[m,k])\nl[m] = logsumexp[k](x[m,k])")
mean = a.mean(1, keepdims=True)
case("layernorm", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], a)}, {"y": ("f64", ["M", "K"], (a - mean) / np.sqrt(((a - mean) ** 2).mean(1, keepdims=True) + 1e-5))},
     "mu[m] = mean[k](x[m,k])\nvar[m] = mean[j]((x[m,j] - mu[m]) * (x[m,j] - mu[m]))\ny[m,k] = (x[m,k] - mu[m]) * rsqrt(var[m] + eps)", scalars={"eps": 1e-5})

# Attention with grouped heads and a causal mask.
q, k, v = normal(2, 3, 4, 5), normal(2, 6, 2, 5), normal(2, 6, 2, 5)
kg, vg = np.repeat(k, 2, axis=2), np.repeat(v, 2, axis=2)
scores = np.einsum("bihd,bjhd->bhij", q, kg) / math.sqrt(5)
scores = np.where(np.arange(6)[None, :] <= np.arange(3)[:, None] + 3, scores, -np.inf)
probability = np.exp(scores - scores.max(-1, keepdims=True))
probability /= probability.sum(-1, keepdims=True)
case("attention_gqa", {"B": 2, "Sq": 3, "Skv": 6, "Hq": 4, "Hkv": 2, "D": 5, "G": '"Hq // Hkv"'},
     {"Q": ("f64", ["B", "Sq", "Hq", "D"], q), "K": ("f64", ["B", "Skv", "Hkv", "D"], k), "V": ("f64", ["B", "Skv", "Hkv", "D"], v)},
     {"O": ("f64", ["B", "Sq", "Hq", "D"], np.einsum("bhij,bjhd->bihd", probability, vg))},
     "s[b,h,i,j] = scale * sum[d](Q[b,i,h,d] * K[b,j,h//G,d])\np[b,h,i,j] = softmax[j](where(j <= i + (Skv - Sq), s[b,h,i,j], -inf))\nO[b,i,h,d] = sum[j](p[b,h,i,j] * V[b,j,h//G,d])",
     scalars={"scale": "1/sqrt(D)"})

# Forms of subscripts.
case("reversed_and_shifted", {"M": 5, "N": 4}, {"x": ("f64", ["M"], (vec := normal(5)))}, {"y": ("f64", ["M"], vec[::-1]), "z": ("f64", ["N"], vec[1:] - vec[:-1])}, "y[m] = x[M-1-m]\nz[n] = x[n+1] - x[n]", index={"n": {"extent": "N"}})
case("strided_read", {"M": 10, "N": 5}, {"x": ("f64", ["M"], (ten := normal(10)))}, {"y": ("f64", ["N"], ten[::2] * ten[1::2])}, "y[n] = x[2*n] * x[2*n+1]")
case("strided_sum", {"M": 10, "N": 5}, {"x": ("f64", ["M"], ten), "w": ("f64", ["N"], normal(5) * 0 + 0.5)}, {"y": ("f64", [], ten[::2].sum() * 0.5)}, "y[] = sum[n](x[2*n] * w[n])")
case("diagonal", {"M": 5}, {"x": ("f64", ["M", "M"], (square := normal(5, 5)))}, {"y": ("f64", ["M"], np.diag(square)), "t": ("f64", [], np.trace(square))}, "y[m] = x[m,m]\nt[] = sum[m](x[m,m])")
case("floor_and_remainder", {"M": 12, "P": 4, "R": 3}, {"x": ("f64", ["R", "P"], (pages := normal(3, 4)))}, {"y": ("f64", ["M"], pages.ravel())}, "y[m] = x[m//P, m%P]", index={"m": {"extent": "M"}})
picks = np.array([3, 0, 4, 4])
case("gather", {"M": 5, "K": 7, "N": 4}, {"x": ("f64", ["M", "K"], a), "i": ("i32", ["N"], picks)}, {"y": ("f64", ["N", "K"], a[picks])}, "y[n,k] = x[i[n], k]")
labels = np.array([6, 0, 3, 1, 2])
case("gather_column", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], a), "label": ("i64", ["M"], labels)}, {"loss": ("f64", ["M"], np.log(np.exp(a).sum(1)) - a[np.arange(5), labels])}, "loss[m] = logsumexp[k](x[m,k]) - x[m, label[m]]")
table = np.array([[2, 0, 3], [1, 3, 2]])
lengths = np.array([5, 3])
cache = normal(4, 2, 3)
paged = np.stack([cache[table[r]].reshape(6, 3) for r in range(2)])
case("paged_below", {"B": 2, "T": 3, "P": 2, "N": 4, "D": 3}, {"K": ("f64", ["N", "P", "D"], cache), "table": ("i32", ["B", "T"], table), "len": ("i32", ["B"], lengths)},
     {"s": ("f64", ["B", "D"], np.stack([paged[r, :lengths[r]].sum(0) for r in range(2)]))}, "s[b,d] = sum[j](K[table[b, j//P], j%P, d])", index={"j": {"extent": "P*T", "below": "len[b]"}})
case("lazy_where_padding", {"N": 6, "W": 3}, {"x": ("f64", ["N"], (line := normal(6))), "w": ("f64", ["W"], (taps := normal(3)))}, {"y": ("f64", ["N"], np.convolve(line, taps[::-1], "same"))},
     "y[n] = sum[t](where(n + t - 1 >= 0 and n + t - 1 < N, x[n + t - 1], 0) * w[t])", index={"n": {"extent": "N"}})
offsets = np.array([0, 2, 2, 5])
experts = normal(3, 7, 4)
group = np.array([0, 0, 2, 2, 2])
case("ragged_matmul", {"M": 5, "K": 7, "N": 4, "G": 3}, {"x": ("f64", ["M", "K"], a), "w": ("f64", ["G", "K", "N"], experts), "offsets": ("i32", ["G+1"], offsets)},
     {"y": ("f64", ["M", "N"], np.einsum("mk,mkn->mn", a, experts[group]))}, "y[m,n] = sum[k](x[m,k] * w[g,k,n])", index={"m": {"ragged": "offsets[g]"}})
case("ragged_sum", {"M": 5, "K": 7, "G": 3}, {"x": ("f64", ["M", "K"], a), "offsets": ("i32", ["G+1"], offsets)},
     {"y": ("f64", ["G", "K"], np.stack([a[offsets[g]:offsets[g + 1]].sum(0) for g in range(3)]))}, "y[g,k] = sum[m](x[m,k])", index={"m": {"ragged": "offsets[g]"}})
half = normal(4, 3)
case("output_in_parts", {"M": 4, "H": 3}, {"x": ("f64", ["M", "H"], half)}, {"y": ("f64", ["M", "2*H"], np.concatenate([np.sin(half), np.cos(half)], 1))}, "y[m,h] = sin(x[m,h])\ny[m,h+H] = cos(x[m,h])", index={"h": {"extent": "H"}})
case("interleaved_output", {"M": 4, "H": 3}, {"x": ("f64", ["M", "H"], half)}, {"y": ("f64", ["M", "2*H"], np.stack([half, -half], 2).reshape(4, 6))}, "y[m,2*h] = x[m,h]\ny[m,2*h+1] = -x[m,h]")
case("intermediate_transposed", {"M": 5}, {"x": ("f64", ["M", "M"], square)}, {"y": ("f64", ["M", "M"], np.exp(square) - np.exp(square).T)}, "e[i,j] = exp(x[i,j])\ny[i,j] = e[i,j] - e[j,i]")
case("intermediate_in_a_sum", {"M": 5, "N": 6, "K": 7}, {"A": ("f64", ["M", "K"], a), "B": ("f64", ["N", "K"], b)}, {"out": ("f64", ["M", "N"], np.maximum(a, 0) @ np.tanh(b).T)},
     "x[m,k] = relu(A[m,k])\ny[n,k] = tanh(B[n,k])\nout[m,n] = sum[k](x[m,k] * y[n,k])")
case("two_matmuls", {"M": 5, "N": 6, "K": 7}, {"A": ("f64", ["M", "K"], a), "B": ("f64", ["N", "K"], b)}, {"out": ("f64", ["M", "K"], (a @ b.T) @ b)}, "t[m,n] = sum[k](A[m,k] * B[n,k])\nout[m,j] = sum[n](t[m,n] * B[n,j])")
parts = normal(3, 4)
case("list_of_tensors", {"L": 3, "M": 4}, {"x": ("f64", ["M"], parts, {"list": "L"})}, {"y": ("f64", ["M"], parts.sum(0))}, "y[m] = sum[l](x[l,m])")
case("inout_update", {"M": 5}, {"x": ("f64", ["M"], vec, {"role": "inout"}), "g": ("f64", ["M"], ten[:5])}, {"x": ("f64", ["M"], vec - 0.5 * ten[:5]), "n": ("f64", [], ((vec - 0.5 * ten[:5]) ** 2).sum())},
     "x[m] = x[m] - 0.5 * g[m]\nn[] = sum[m](new(x)[m] * new(x)[m])")
case("index_values", {"M": 4, "N": 3}, {"x": ("f64", ["M", "N"], (grid := normal(4, 3)))}, {"y": ("f64", ["M", "N"], grid + np.arange(4)[:, None] / 3 - np.arange(3))}, "y[m,n] = x[m,n] + m / N - n")
case("device_scalar", {"M": 5}, {"x": ("f64", ["M"], vec), "alpha": ("f64", [], np.array(1.75))}, {"y": ("f64", ["M"], 1.75 * vec)}, "y[m] = alpha * x[m]")
i8a, i8b = rng.integers(-128, 128, (4, 9)), rng.integers(-128, 128, (3, 9))
case("integer_matmul", {"M": 4, "N": 3, "K": 9}, {"A": ("i8", ["M", "K"], i8a), "B": ("i8", ["N", "K"], i8b)}, {"out": ("i32", ["M", "N"], i8a @ i8b.T)}, "out[m,n] = sum[k](A[m,k] * B[n,k])", accumulate="i32")
case("dequantised", {"M": 4, "N": 3, "K": 9}, {"A": ("i8", ["M", "K"], i8a), "B": ("i8", ["N", "K"], i8b), "scale": ("f64", ["N"], (sc := positive(3)))}, {"out": ("f64", ["M", "N"], (i8a @ i8b.T) * sc)}, "out[m,n] = sum[k](A[m,k] * B[n,k]) * scale[n]")
flags = rng.integers(0, 2, (5, 7))
case("bool_mask", {"M": 5, "K": 7}, {"x": ("f64", ["M", "K"], a), "mask": ("bool", ["M", "K"], flags)}, {"y": ("f64", ["M"], (a * flags).sum(1))}, "y[m] = sum[k](where(mask[m,k], x[m,k], 0))")
f16 = normal(4, 33).astype(np.float16).astype(np.float64)
case("half_inputs", {"M": 4, "K": 33}, {"x": ("f16", ["M", "K"], f16)}, {"y": ("f32", ["M"], (f16 * f16).sum(1))}, "y[m] = sum[k](x[m,k] * x[m,k])")

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numpy_reference.json")
with open(path, "w", encoding="utf-8") as out:
    out.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
print(f"{len(cases)} cases, numpy {np.__version__}")
