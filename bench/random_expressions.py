# SPDX-License-Identifier: Apache-2.0
"""Random expressions in the notation: the part of make_random_specs.py that knows functions, reads, reductions and casts."""
import dataclasses
import math

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


class RandomExpressions:
    """Draws expressions. A program sets rng, features, style, accumulate, the axes, and what is declared (tensors, scalars, values)."""

    # Choices.

    def has(self, feature, probability):
        return self.rng.random() < probability and feature in self.features

    def number(self, low=-2.0, high=2.0):
        value = self.rng.randrange(int(low * 8), int(high * 8) + 1) / 8
        return str(value) if value >= 0 else f"({value})"

    def some(self, items, least=0):
        count = self.rng.randint(min(least, len(items)), len(items))
        return self.rng.sample(items, count)

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
