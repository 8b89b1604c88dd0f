#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random op specs: legal programs of up to 12 statements over odd extents, conditioned so that rounding stays small.

Values are kept below 64 by powers of two, logarithms, roots and quotients get positive arguments, and floor, casts to integers and most
comparisons look at inputs, where rounding decides nothing. The draw is a function of --seed and of the switches alone.

Styles, the shapes of programs that templates know and others:
  pointwise     outputs over the same indices, no reduction
  row           reductions along one index; outputs with and without it
  contraction   one sum of products with statements behind it
  free          reductions over any indices of any statement, outputs of any shape

Features, all drawn unless left out:
  reductions axes order scan gathers casts integers bools transposes offsets parts squares scalars index_values inout f64 outputs
  (axes: several indices a reduction; order: argmax, topk, topk_index; scan: cumsum; parts: an output written in two statements; squares: an
  extent that two indices share; outputs: more than one)

usage: make_random_specs.py --count 300 --seed 1 [--styles row,pointwise] [--without scan,order] -o DIR
"""
import argparse
import dataclasses
import math
import pathlib
import random
import re

STYLES = {"pointwise": 2, "row": 5, "contraction": 1, "free": 3}  # with how often each is drawn
FEATURES = ("reductions axes order scan gathers casts integers bools transposes offsets parts squares scalars index_values inout f64 outputs").split()
EXTENTS = [1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 100, 129, 257]
MAX_ELEMENTS = 3_000     # of the space of all indices
MAX_STATEMENTS = 12
MAX_MAGNITUDE = 64.0
MAX_PRODUCT = 17         # terms of prod: each is at most 1.125
NORMAL_MAGNITUDE = 4.0   # of random inputs, nearly always
REAL_DTYPES = ["f16", "bf16", "f32", "f32"]
ROUNDED_DTYPES = ["f16", "bf16", "f32"]


@dataclasses.dataclass
class Axis:
    index: str
    dim: str
    extent: int


@dataclasses.dataclass
class Expr:
    """Text in the notation, a bound of its magnitude, its free indices; exact: rounding made no part of it."""
    text: str
    magnitude: float = 1.0
    indices: frozenset = frozenset()
    is_exact: bool = False


@dataclasses.dataclass
class Value:
    """What statements may read: an input, an output or an intermediate."""
    name: str
    dims: list
    kind: str  # real, int, bool
    magnitude: float
    is_exact: bool = False
    is_input: bool = False
    is_read: bool = False
    offsets: tuple = ()  # elements that each axis is longer than its dim


class Program:
    """One random program of a style."""

    def __init__(self, name, style, seed, features, max_statements):
        self.name, self.style, self.features = name, style, features
        self.rng = random.Random(f"{seed}/{name}/{style}")
        self.max_statements = max_statements
        self.tensors, self.scalars, self.lines = {}, {}, []
        self.dims, self.axes, self.values = {}, [], []
        self.stated = set()  # indices whose extent use may not tell
        self.accumulate = "f64" if self.has("f64", 0.12) else "f32"
        self.free_axes, self.reduced_axes = [], []
        self.draw_axes()
        self.every_axis = list(self.axes)
        {"contraction": self.draw_contraction}.get(style, lambda: None)()
        self.draw_statements()

    # Choices.

    def has(self, feature, probability):
        return self.rng.random() < probability and feature in self.features

    def number(self, low=-2.0, high=2.0):
        value = self.rng.randrange(int(low * 8), int(high * 8) + 1) / 8
        return str(value) if value >= 0 else f"({value})"

    def some(self, items, least=0):
        count = self.rng.randint(min(least, len(items)), len(items))
        return self.rng.sample(items, count)

    def draw_axes(self):
        """Dims and the index of each; with `squares` a dim may have a second index."""
        rank = self.rng.choice([1, 2, 2, 2, 3, 3, 4])
        if self.style == "contraction":
            rank = self.rng.choice([3, 3, 3, 4])
        left = MAX_ELEMENTS
        for dim in self.rng.sample(["B", "M", "N", "K"], rank):
            extent = self.rng.choice([extent for extent in EXTENTS if extent <= left])
            left //= extent
            self.dims[dim] = extent
            self.axes.append(Axis(dim.lower(), dim, extent))
        if self.style != "contraction" and self.has("squares", 0.15):
            first = self.rng.choice(self.axes)
            if first.extent <= left:
                self.axes.append(Axis(first.index + "2", first.dim, first.extent))
        if self.style == "row":
            self.reduced_axes = [self.axes[-1]]
            self.free_axes = self.axes[:-1]

    # Declarations.

    def declare(self, prefix, dims, dtype, role="in", offsets=(), extra=""):
        name = f"{prefix}{sum(other.startswith(prefix) for other in self.tensors)}"
        shape = [dim if not offset else f"{dim} + {offset}" for dim, offset in zip(dims, offsets or [0] * len(dims))]
        quoted = ", ".join(f'"{extent}"' for extent in shape)
        text = f'dtype = "{dtype}", shape = [{quoted}]'
        text += f', role = "{role}"' if role != "in" else ""
        self.tensors[name] = f"{name} = {{ {text}{extra} }}"
        return name

    def new_input(self, kind, axes):
        dims = [axis.dim for axis in axes]
        offsets = tuple(self.rng.choice([1, 2, 5]) if self.has("offsets", 0.05) else 0 for _ in dims)
        if kind == "real":
            dtype = self.rng.choice(REAL_DTYPES if self.accumulate == "f32" else REAL_DTYPES + ["f64", "f64"])
            name, magnitude = self.declare("x", dims, dtype, offsets=offsets), NORMAL_MAGNITUDE
        elif kind == "int":
            low = self.rng.choice([0, -3, -8])
            high = low + self.rng.choice([1, 5, 11])
            name = self.declare("c", dims, self.rng.choice(["i32", "i32", "i64", "i8"]), offsets=offsets, extra=f", range = [{low}, {high}]")
            magnitude = max(abs(low), abs(high))
        else:
            name, magnitude = self.declare("b", dims, "bool", offsets=offsets), 1
        value = Value(name, dims, kind, magnitude, is_exact=True, is_input=True, offsets=offsets)
        self.values.append(value)
        return value

    # Reads.

    def bindings(self, value, axes):
        """An index for each axis of the value, or None."""
        chosen = []
        for dim in value.dims:
            fitting = [axis for axis in axes if axis.dim == dim]
            if not fitting:
                return None
            chosen.append(self.rng.choice(fitting))
        return chosen

    def read_of(self, value, bindings):
        value.is_read = True
        offsets = value.offsets or [0] * len(bindings)
        subscripts = []
        for axis, offset in zip(bindings, offsets):
            by = self.rng.randint(0, offset)
            subscripts.append(f"{axis.index} + {by}" if by else axis.index)
        self.stated |= {axis.index for axis, offset in zip(bindings, offsets) if offset}
        return Expr(f"{value.name}[{','.join(subscripts)}]", value.magnitude, frozenset(axis.index for axis in bindings), value.is_exact)

    def read(self, kind, axes, needed=()):
        """A read over some of `axes`, all of `needed` among them: of what is there, or of a new input."""
        found = []
        for value in self.values:
            bindings = self.bindings(value, axes) if value.kind == kind else None
            if bindings is not None and all(axis in bindings for axis in needed):
                found += [(value, bindings)] * (1 if value.is_input else 2 if value.is_read else 6)
        num_inputs = sum(value.is_input for value in self.values)
        if found and self.rng.random() < (0.5 if num_inputs < 4 else 0.9):
            return self.read_of(*self.rng.choice(found))
        chosen = list(needed) + self.some([axis for axis in axes if axis not in needed])
        if not chosen and axes:
            chosen = [self.rng.choice(axes)]
        chosen = [axis for axis in axes if axis in chosen]
        if "transposes" in self.features and self.rng.random() < 0.3:
            self.rng.shuffle(chosen)
        return self.read_of(self.new_input(kind, chosen), chosen)

    def gather(self, axes):
        """table[ids[m], n]: ids hold positions of the table's first axis."""
        extent = self.rng.choice([2, 5, 17, 50])
        dim = self.rng.choice([f"V{extent}"])
        self.dims[dim] = extent
        ids_axes = self.some(axes, 1)[:2]
        rest = self.some([axis for axis in axes if axis not in ids_axes])
        ids = self.declare("ids", [axis.dim for axis in ids_axes], self.rng.choice(["i32", "i64"]), extra=f", range = [0, {extent - 1}]")
        table = self.declare("table", [dim] + [axis.dim for axis in rest], self.rng.choice(REAL_DTYPES))
        position = f"{ids}[{','.join(axis.index for axis in ids_axes)}]"
        indices = frozenset(axis.index for axis in ids_axes + rest)
        return Expr(f"{table}[{','.join([position] + [axis.index for axis in rest])}]", NORMAL_MAGNITUDE, indices, True)

    # Real expressions.

    def limited(self, expr, most=MAX_MAGNITUDE):
        """The expression times a power of two that keeps it below `most`."""
        if expr.magnitude <= most:
            return expr
        exponent = math.ceil(math.log2(expr.magnitude / most))
        return Expr(f"{2.0 ** -exponent:.12f}".rstrip("0") + f" * ({expr.text})", expr.magnitude / 2.0**exponent, expr.indices, expr.is_exact)

    def leaf(self, axes):
        draw = self.rng.random()
        if draw < 0.1 and self.has("scalars", 0.6):
            return self.scalar()
        if draw < 0.14:
            return Expr(self.number(), 2.0, frozenset(), True)
        if draw < 0.2 and axes and self.has("gathers", 1.0):
            return self.gather(axes)
        if draw < 0.24 and axes and self.has("index_values", 1.0):
            return self.limited(self.index_value(axes), 4.0)
        if draw < 0.3 and self.has("integers", 1.0):
            return self.limited(self.integer(axes, 1))
        return self.read("real", axes)

    def index_value(self, axes):
        axis = self.rng.choice(axes)
        self.stated.add(axis.index)
        return Expr(axis.index, axis.extent, frozenset([axis.index]), True)

    def scalar(self):
        name = f"alpha{len(self.scalars)}"
        self.scalars[name] = self.rng.choice(['"launch"', "0.125", "1.5", "-0.75", '{ dtype = "f32", value = 0.25 }'])
        return Expr(name, NORMAL_MAGNITUDE, frozenset(), True)

    def real(self, axes, depth):
        if depth <= 0:
            return self.leaf(axes)
        draw = self.rng.random()
        if draw < 0.34:
            return self.arithmetic(axes, depth)
        if draw < 0.66:
            return self.unary(axes, depth)
        if draw < 0.74:
            condition, a, b = self.boolean(axes, 1), self.real(axes, depth - 1), self.real(axes, depth - 2)
            return Expr(f"where({condition.text}, {a.text}, {b.text})", max(a.magnitude, b.magnitude), condition.indices | a.indices | b.indices)
        if draw < 0.8 and self.has("casts", 1.0):
            a = self.real(axes, depth - 1)
            return Expr(f"cast({a.text}, {self.rng.choice(ROUNDED_DTYPES)})", a.magnitude * 1.01, a.indices)
        if draw < 0.92 and "reductions" in self.features:
            return self.reduction(axes, depth) or self.leaf(axes)
        return self.leaf(axes)

    def arithmetic(self, axes, depth):
        a, b = self.real(axes, depth - 1), self.real(axes, depth - 1 if self.rng.random() < 0.5 else 0)
        indices = a.indices | b.indices
        draw = self.rng.randrange(8)
        if draw < 2:
            return self.limited(Expr(f"({a.text} + {b.text})", a.magnitude + b.magnitude, indices))
        if draw == 2:
            return self.limited(Expr(f"({a.text} - {b.text})", a.magnitude + b.magnitude, indices))
        if draw < 5:
            return self.limited(Expr(f"({a.text} * {b.text})", a.magnitude * b.magnitude, indices))
        if draw == 5:
            return self.limited(Expr(f"({a.text} / (abs({b.text}) + 0.5))", a.magnitude * 2, indices))
        if draw == 6:
            return Expr(f"{self.rng.choice(['min', 'max'])}({a.text}, {b.text})", max(a.magnitude, b.magnitude), indices)
        base = self.limited(a, 4.0)
        exponent = self.rng.choice(["2", "3", "0.5", "1.5", "(-1)", "(-0.5)"])
        return self.limited(Expr(f"(abs({base.text}) + 0.5) ^ {exponent}", 4.5**3, a.indices))

    def unary(self, axes, depth):
        function = self.rng.choice("abs neg exp log sqrt rsqrt tanh sigmoid relu gelu gelu_tanh silu erf sin cos floor isfinite".split())
        if function in ("floor", "isfinite"):
            a = self.read("real", axes)
            if function == "floor" and a.is_exact:
                return Expr(f"floor({self.rng.choice(['', '2 * ', '0.5 * '])}{a.text})", 2 * a.magnitude + 1, a.indices)
            return Expr(f"where(isfinite({a.text}), {a.text}, 0.5)", a.magnitude, a.indices)
        a = self.real(axes, depth - 1)
        if function == "neg":
            return Expr(f"(-{a.text})", a.magnitude, a.indices)
        if function == "exp":
            a = self.limited(a, 3.0)
            return Expr(f"exp({a.text})", math.exp(a.magnitude), a.indices)
        if function == "log":
            return Expr(f"log(abs({a.text}) + 0.5)", max(0.7, math.log(a.magnitude + 0.5)), a.indices)
        if function == "sqrt":
            return Expr(f"sqrt(abs({a.text}) + 0.25)", math.sqrt(a.magnitude + 0.25), a.indices)
        if function == "rsqrt":
            return Expr(f"rsqrt(abs({a.text}) + 0.5)", 1.5, a.indices)
        if function in ("tanh", "sigmoid", "erf", "sin", "cos"):
            return Expr(f"{function}({a.text})", 1.0, a.indices)
        return Expr(f"{function}({a.text})", a.magnitude, a.indices)

    # Reductions.

    def axes_to_reduce(self, axes):
        left = [axis for axis in (self.reduced_axes if self.style == "row" else self.axes) if axis not in axes]
        if self.style in ("pointwise", "contraction") or not left:
            return []
        self.rng.shuffle(left)
        return left if self.has("axes", 0.25) else left[:1]

    def over(self, axes, needed, depth):
        """An operand that depends on every index of `needed`."""
        a = self.real(axes, depth)
        missing = [axis for axis in needed if axis.index not in a.indices]
        if not missing:
            return a
        b = self.read("real", axes, missing)
        return self.limited(Expr(f"({b.text} {self.rng.choice('+-*')} {a.text})", max(a.magnitude + b.magnitude, a.magnitude * b.magnitude), a.indices | b.indices))

    def reduction(self, axes, depth):
        """A reduction over indices that are not in `axes`, or one that keeps its index; None where none fits."""
        keeping = [axis for axis in (self.reduced_axes if self.style == "row" else self.axes) if axis in axes]
        if keeping and self.style in ("row", "free") and self.rng.random() < 0.5:
            return self.keeping_reduction(axes, self.rng.choice(keeping), depth)
        reduced = self.axes_to_reduce(axes)
        if not reduced:
            return None
        names = ",".join(axis.index for axis in reduced)
        terms = math.prod(axis.extent for axis in reduced)
        ops = ["sum", "sum", "max", "min", "mean", "logsumexp"] * 2
        ops += ["prod"] * 2 if terms <= MAX_PRODUCT else []
        ops += ["any", "all", "count"] if "bools" in self.features else []
        ops += ["argmax", "topk"] if "order" in self.features and len(reduced) == 1 else []
        op = self.rng.choice(ops)
        inner = axes + reduced
        reduced_names = {axis.index for axis in reduced}
        if op in ("any", "all", "count"):
            a = self.boolean(inner, 1, reduced)
            text = f"{op}[{names}]({a.text})"
            if op == "count":
                return self.limited(Expr(text, terms, a.indices - reduced_names))
            return Expr(f"where({text}, {self.number()}, {self.number()})", 2.0, a.indices - reduced_names)
        a = self.over(inner, reduced, depth - 1)
        indices = a.indices - reduced_names
        if op == "argmax":
            a = self.read("real", inner, reduced)
            return self.limited(Expr(f"argmax[{names}]({a.text})", terms, a.indices - reduced_names))
        if op == "topk":
            return Expr(f"topk[{names}]({a.text}, {self.rng.randrange(min(3, terms))})", a.magnitude, indices)
        if op == "prod":
            return Expr(f"prod[{names}](1 + 0.125 * sin({a.text}))", 1.125**terms, indices)
        if op == "sum":
            return self.limited(Expr(f"sum[{names}]({a.text})", a.magnitude * math.sqrt(terms) * 2, indices))
        if op == "logsumexp":
            a = self.limited(a, 16.0)
            return Expr(f"logsumexp[{names}]({a.text})", a.magnitude + math.log(terms), indices)
        return Expr(f"{op}[{names}]({a.text})", a.magnitude, indices)

    def keeping_reduction(self, axes, axis, depth):
        a = self.limited(self.over(axes, [axis], depth - 1), 16.0)
        if self.has("scan", 0.1):
            return self.limited(Expr(f"cumsum[{axis.index}]({a.text})", a.magnitude * math.sqrt(axis.extent) * 2, a.indices))
        others = [other for other in axes if other != axis]
        if self.rng.random() < 0.2:
            sink = self.limited(self.leaf(others), 16.0)  # the index has a value: nothing there may reduce over it
            return Expr(f"softmax[{axis.index}]({a.text}, sink = {sink.text})", 1.0, a.indices | sink.indices)
        return Expr(f"softmax[{axis.index}]({a.text})", 1.0, a.indices)

    # Integers and bools.

    def integer(self, axes, depth):
        draw = self.rng.random()
        if depth <= 0 or draw < 0.3:
            if draw < 0.06 and axes and "index_values" in self.features:
                return self.index_value(axes)
            return self.read("int", axes)
        if draw < 0.42 and "casts" in self.features:
            a = self.read("real", axes)
            if a.is_exact:
                return Expr(f"cast({self.rng.choice(['', '4 * '])}{a.text}, {self.rng.choice(['i32', 'i64'])})", 4 * a.magnitude, a.indices, True)
            return self.read("int", axes)
        a, b = self.integer(axes, depth - 1), self.integer(axes, depth - 1)
        indices = a.indices | b.indices
        divisor = self.rng.choice([2, 3, 7])
        choices = {"+": (f"({a.text} + {b.text})", a.magnitude + b.magnitude), "-": (f"({a.text} - {b.text})", a.magnitude + b.magnitude),
                   "*": (f"({a.text} * {b.text})", a.magnitude * b.magnitude), "//": (f"({a.text} // {divisor})", a.magnitude / divisor + 1),
                   "%": (f"({a.text} % {divisor})", divisor), "min": (f"min({a.text}, {b.text})", max(a.magnitude, b.magnitude)),
                   "max": (f"max({a.text}, {b.text})", max(a.magnitude, b.magnitude)), "abs": (f"abs({a.text})", a.magnitude),
                   "neg": (f"(-{a.text})", a.magnitude)}
        text, magnitude = choices[self.rng.choice(sorted(choices))]
        if magnitude > 1e6:
            return a
        return Expr(text, magnitude, indices if b.text in text else a.indices, a.is_exact and b.is_exact)

    def boolean(self, axes, depth, needed=()):
        """A condition that depends on every index of `needed`."""
        draw = self.rng.random()
        if needed:
            a = self.read("real", axes, needed)
            return Expr(f"{a.text} {self.rng.choice(['<', '<=', '>', '>='])} {self.number()}", 1, a.indices)
        if draw < 0.1 and self.has("bools", 1.0):
            return self.read("bool", axes)
        if draw < 0.3 and depth > 0:
            a, b = self.boolean(axes, depth - 1), self.boolean(axes, depth - 1)
            if self.rng.random() < 0.25:
                return Expr(f"not ({a.text})", 1, a.indices)
            return Expr(f"({a.text} {self.rng.choice(['and', 'or'])} {b.text})", 1, a.indices | b.indices)
        if draw < 0.45 and self.has("integers", 1.0):
            a = self.integer(axes, 1)
            return Expr(f"({a.text} {self.rng.choice(['==', '!=', '<', '>='])} {self.rng.randint(-2, 3)})", 1, a.indices)
        if draw < 0.52 and len(axes) > 1 and self.has("index_values", 1.0):
            a, b = self.index_value(axes), self.index_value(axes)
            return Expr(f"({a.text} {self.rng.choice(['<=', '<', '>', '!='])} {b.text})", 1, a.indices | b.indices)
        a = self.read("real", axes)
        b = Expr(self.number()) if a.is_exact or self.rng.random() < 0.7 else self.read("real", axes)
        return Expr(f"({a.text} {self.rng.choice(['<', '<=', '>', '>='])} {b.text})", 1, a.indices | b.indices)

    # Statements.

    def draw_contraction(self):
        """acc[b,m,n] = sum[k](A[b,m,k] * B[b,n,k]) with each operand's axes in any order."""
        *free, k = self.axes
        self.free_axes, self.axes = free, free
        batch, m, n = ([free[0]] if len(free) == 3 else []), free[-2], free[-1]
        dtype = self.rng.choice(["f16", "bf16", "f32"] if self.accumulate == "f32" else ["f64"])
        reads = []
        for own in (m, n):
            axes = [own, k]
            if "transposes" in self.features:
                self.rng.shuffle(axes)
            axes = batch + axes
            name = self.declare("a", [axis.dim for axis in axes], dtype)
            reads.append(f"{name}[{','.join(axis.index for axis in axes)}]")
        self.lines.append(f"acc[{','.join(axis.index for axis in free)}] = sum[{k.index}]({reads[0]} * {reads[1]})")
        self.values.append(Value("acc", [axis.dim for axis in free], "real", NORMAL_MAGNITUDE * math.sqrt(k.extent)))

    def target_axes(self):
        if self.style in ("pointwise", "contraction"):
            return list(self.axes)
        if self.style == "row":
            return self.free_axes + (self.reduced_axes if self.rng.random() < 0.6 or "reductions" not in self.features else [])
        axes = self.some(self.axes, 1 if self.rng.random() < 0.9 else 0)
        return [axis for axis in self.axes if axis in axes]

    def kind_of_statement(self):
        draw = self.rng.random()
        if draw < 0.08 and "integers" in self.features:
            return "int"
        return "bool" if draw < 0.14 and "bools" in self.features else "real"

    def draw_statements(self):
        drawn = []
        for number in range(self.rng.randint(1, self.max_statements - len(self.lines))):
            axes, kind = self.target_axes(), self.kind_of_statement()
            depth = self.rng.choice([1, 2, 2, 3, 4])
            if kind == "real":
                expr = self.reduction(axes, depth) if self.rng.random() < 0.3 and "reductions" in self.features else None
                expr = self.limited(expr or self.real(axes, depth))
            else:
                expr = self.integer(axes, min(depth, 2)) if kind == "int" else self.boolean(axes, 1)
            axes = [axis for axis in axes if axis.index in expr.indices]  # an intermediate has only the indices that it depends on
            value = Value(f"t{number}", [axis.dim for axis in axes], kind, expr.magnitude, expr.is_exact)
            drawn.append((value, axes, expr.text))
            self.values.append(value)
        self.finish(drawn)

    def finish(self, drawn):
        """What nobody reads becomes an output, and some others do; without the feature `outputs` all but the last and what it needs is dropped."""
        if "outputs" not in self.features:
            needed = []
            for statement in reversed(drawn):
                if not needed or any(f"{statement[0].name}[" in text for _, _, text in needed):
                    needed.insert(0, statement)
            drawn = needed
        acc = f"acc[{','.join(axis.index for axis in self.axes)}]" if self.style == "contraction" else ""
        if acc and not any("acc[" in text for _, _, text in drawn):
            value, axes, text = drawn.pop()
            if value.kind == "real":
                drawn.append((value, axes, f"{text} + {acc}"))
            else:
                drawn += [(value, axes, text), (Value("t", [axis.dim for axis in self.axes], "real", MAX_MAGNITUDE), self.axes, acc)]
        names = {}
        for position, (value, axes, text) in enumerate(drawn):
            for old, new in names.items():
                text = text.replace(f"{old}[", f"{new}[")
            if any(f"{value.name}[" in later for _, _, later in drawn[position + 1:]):
                is_whole = self.style == "free" or len(axes) in (len(self.axes), len(self.free_axes) if self.style == "row" else -1)
                name = value.name
                if is_whole and self.has("outputs", 0.08):
                    name = names[value.name] = self.declare("y", value.dims, self.output_dtype(value), "out")
                self.lines.append(f"{name}[{','.join(axis.index for axis in axes)}] = {text}")
                continue
            if self.style in ("pointwise", "contraction"):
                axes = list(self.axes)
            elif self.style == "row":
                axes = self.free_axes + [axis for axis in self.reduced_axes if axis in axes]
            self.write_output(value, axes, text)

    def output_dtype(self, value):
        reals = ["f16", "bf16", "f32", "f32"] if self.accumulate == "f32" else ["f32", "f64"]
        return self.rng.choice({"real": reals, "int": ["i32", "i64"], "bool": ["bool"]}[value.kind])

    def write_output(self, value, axes, text):
        if "transposes" in self.features and self.rng.random() < 0.15:
            axes = self.rng.sample(axes, len(axes))
        dims, subscripts, dtype = [axis.dim for axis in axes], [axis.index for axis in axes], self.output_dtype(value)
        left = ",".join(subscripts)
        if value.kind == "real" and axes and self.has("parts", 0.05):
            out = self.declare("y", [f"2*{dims[0]}"] + dims[1:], dtype, "out")
            self.stated.add(subscripts[0])
            shifted = ",".join([f"{subscripts[0]} + {dims[0]}"] + subscripts[1:])
            self.lines += [f"{out}[{left}] = {text}", f"{out}[{shifted}] = 0.5 * ({text})"]
        elif value.kind == "real" and self.has("inout", 0.06):
            out = self.declare("y", dims, dtype, "inout")
            self.lines.append(f"{out}[{left}] = 0.5 * {out}[{left}] + ({text})")
        else:
            out = self.declare("y", dims, dtype, "out")
            self.lines.append(f"{out}[{left}] = {text}")

    def text(self):
        body = "\n".join(self.lines)
        words = set(re.findall(r"\w+", body))
        tensors = [text for name, text in self.tensors.items() if name in words]
        used_dims = set(re.findall(r"\b[BMNKV]\d*\b", " ".join(tensors)))
        lines = [f'name = "{self.name}"', "[dims]", *(f"{dim} = {extent}" for dim, extent in self.dims.items() if dim in used_dims), "[tensors]", *tensors]
        scalars = [f"{name} = {value}" for name, value in self.scalars.items() if name in words]
        lines += ["[scalars]", *scalars] if scalars else []
        stated = [axis for axis in self.every_axis if axis.index in self.stated & words]
        lines += ["[index]", *(f'{axis.index} = {{ extent = "{axis.dim}" }}' for axis in stated)] if stated else []
        lines += ["[compute]", f'accumulate = "{self.accumulate}"', 'body = """', body, '"""', ""]
        return "\n".join(lines)


def random_specs(count, seed, styles=tuple(STYLES), without=(), max_statements=MAX_STATEMENTS):
    """(name, text) of `count` programs."""
    features = frozenset(FEATURES) - frozenset(without)
    rng = random.Random(f"styles {seed}")
    result = []
    for number in range(count):
        style = rng.choices(list(styles), [STYLES[style] for style in styles])[0]
        name = f"random{number:03d}_{style}"
        result.append((name, Program(name, style, seed, features, max_statements).text()))
    return result


def list_of(known):
    def parse(text):
        names = [name for name in text.split(",") if name]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]}: expected some of {', '.join(known)}")
        return names
    return parse


def add_draw_options(parser):
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--styles", type=list_of(list(STYLES)), default=list(STYLES))
    parser.add_argument("--without", type=list_of(FEATURES), default=[])
    parser.add_argument("--max-statements", type=int, default=MAX_STATEMENTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_draw_options(parser)
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    folder = pathlib.Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in random_specs(args.count, args.seed, args.styles, args.without, args.max_statements):
        (folder / f"{name}.op.toml").write_text(text)
    print(f"{args.count} specs in {folder}")


if __name__ == "__main__":
    main()
