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
import math
import pathlib
import random
import re

from random_expressions import MAX_MAGNITUDE, NORMAL_MAGNITUDE, Axis, RandomExpressions, Value

STYLES = {"pointwise": 2, "row": 5, "contraction": 1, "free": 3}  # with how often each is drawn
FEATURES = ("reductions axes order scan gathers casts integers bools transposes offsets parts squares scalars index_values inout f64 outputs").split()
EXTENTS = [1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 100, 129, 257]
MAX_ELEMENTS = 3_000     # of the space of all indices
MAX_STATEMENTS = 12


class Program(RandomExpressions):
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
