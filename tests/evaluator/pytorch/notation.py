# SPDX-License-Identifier: Apache-2.0
"""The notation of op specs, read and computed with PyTorch in float64: the second opinion on the evaluator.

Nothing is shared with the tool: the spec's text is parsed here, every expression becomes a tensor with one axis per index of the spec (extent 1
where it does not depend on the index), and reductions are PyTorch's own. Covers what a spec of the tests uses: no sugar, no blocks, no ragged or
bounded indices, no lists of tensors, no strides.
"""
import re
import tomllib

import torch

REAL, INTEGER, BOOL = torch.float64, torch.int64, torch.bool
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i8": torch.int8, "i32": torch.int32, "i64": torch.int64,
          "bool": torch.bool}
TOKEN = re.compile(r"\s*(?:(\d+\.\d*(?:e[-+]?\d+)?|\d+(?:e[-+]?\d+)?|\.\d+)|([A-Za-z_]\w*)|(<=|>=|==|!=|//|[-+*/%^<>()\[\],=]))")
REDUCTIONS = {"sum", "max", "min", "mean", "prod", "any", "all", "count", "argmax", "logsumexp", "softmax", "cumsum", "topk", "topk_index"}


class Parser:
    """Text of one expression to nested tuples: ("number", 1.5), ("name", "m"), ("read", "x", subscripts), ("call", "exp", arguments), ("reduce", "sum", ["k"], arguments)."""

    def __init__(self, text):
        self.tokens, position = [], 0
        while position < len(text.rstrip()):
            match = TOKEN.match(text, position)
            if match is None:
                raise SyntaxError(f"{text!r} at {position}")
            self.tokens.append(match.group(match.lastindex))
            position = match.end()
        self.next = 0

    def peek(self):
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        if wanted is not None and token != wanted:
            raise SyntaxError(f"expected {wanted}, found {token!r} in {' '.join(self.tokens)}")
        self.next += 1
        return token

    def whole(self):
        result = self.disjunction()
        if self.peek():
            raise SyntaxError(f"{self.peek()!r} is left over in {' '.join(self.tokens)}")
        return result

    def disjunction(self):
        left = self.conjunction()
        while self.peek() == "or":
            left = ("call", self.take(), [left, self.conjunction()])
        return left

    def conjunction(self):
        left = self.negation()
        while self.peek() == "and":
            left = ("call", self.take(), [left, self.negation()])
        return left

    def negation(self):
        if self.peek() == "not":
            return ("call", self.take(), [self.negation()])
        left = self.sum()
        if self.peek() in ("<", "<=", ">", ">=", "==", "!="):
            return ("call", self.take(), [left, self.sum()])
        return left

    def sum(self):
        left = self.product()
        while self.peek() in ("+", "-"):
            left = ("call", self.take(), [left, self.product()])
        return left

    def product(self):
        left = self.unary()
        while self.peek() in ("*", "/", "//", "%"):
            left = ("call", self.take(), [left, self.unary()])
        return left

    def unary(self):
        if self.peek() == "-":
            self.take()
            return ("call", "neg", [self.unary()])
        base = self.primary()
        if self.peek() == "^":
            self.take()
            return ("call", "^", [base, self.unary()])
        return base

    def arguments(self, end):
        items = []
        while self.peek() != end:
            if self.next + 1 < len(self.tokens) and self.tokens[self.next + 1] == "=":  # sink = value
                self.next += 2
            items.append(self.disjunction())
            if self.peek() != end:
                self.take(",")
        self.take(end)
        return items

    def primary(self):
        token = self.take()
        if token == "(":
            inner = self.disjunction()
            self.take(")")
            return inner
        if re.match(r"[\d.]", token):
            return ("number", int(token) if token.isdigit() else float(token))
        if token in ("inf", "nan"):
            return ("number", float(token))
        if token in ("true", "false"):
            return ("number", token == "true")
        if self.peek() == "[":
            self.take()
            if token in REDUCTIONS:
                indices = [part[1] for part in self.arguments("]")]
                self.take("(")
                return ("reduce", token, indices, self.arguments(")"))
            return ("read", token, self.arguments("]"))
        if self.peek() == "(":
            self.take()
            return ("call", token, self.arguments(")"))
        return ("name", token)


def walk(node):
    yield node
    for part in node[1:]:
        for child in part if isinstance(part, list) else []:
            if isinstance(child, tuple):
                yield from walk(child)


def common_shape(*shapes):
    """Of tensors of one rank that broadcast. PyTorch's own function imports SymPy."""
    return [next((extent for extent in extents if extent != 1), 1) for extents in zip(*shapes)]


def real(x):
    return x.to(REAL)


def joined(operands):
    """Operands of arithmetic: integers as long as all are, else reals."""
    return operands if all(operand.dtype == INTEGER for operand in operands) else [real(operand) for operand in operands]


POINTWISE = {
    "neg": lambda x: -x,
    "abs": torch.abs,
    "cos": lambda x: torch.cos(real(x)),
    "erf": lambda x: torch.special.erf(real(x)),
    "exp": lambda x: torch.exp(real(x)),
    "floor": lambda x: x if x.dtype == INTEGER else torch.floor(x),
    "gelu": lambda x: torch.nn.functional.gelu(real(x), approximate="none"),
    "gelu_tanh": lambda x: torch.nn.functional.gelu(real(x), approximate="tanh"),
    "isfinite": torch.isfinite,
    "log": lambda x: torch.log(real(x)),
    "relu": torch.relu,
    "rsqrt": lambda x: torch.rsqrt(real(x)),
    "sigmoid": lambda x: torch.sigmoid(real(x)),
    "silu": lambda x: torch.nn.functional.silu(real(x)),
    "sin": lambda x: torch.sin(real(x)),
    "sqrt": lambda x: torch.sqrt(real(x)),
    "tanh": lambda x: torch.tanh(real(x)),
    "not": torch.logical_not,
    "+": lambda a, b: torch.add(*joined([a, b])),
    "-": lambda a, b: torch.sub(*joined([a, b])),
    "*": lambda a, b: torch.mul(*joined([a, b])),
    "/": lambda a, b: torch.div(real(a), real(b)),
    "//": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "%": torch.remainder,
    "^": lambda a, b: torch.pow(real(a), real(b)),
    "max": lambda a, b: torch.maximum(*joined([a, b])),
    "min": lambda a, b: torch.minimum(*joined([a, b])),
    "<": torch.lt, "<=": torch.le, ">": torch.gt, ">=": torch.ge, "==": torch.eq, "!=": torch.ne,
    "and": torch.logical_and, "or": torch.logical_or,
}


class Program:
    """A spec with its inputs given by `input_of(position, name, dtype, extents, low, high)`; `outputs()` computes it."""

    def __init__(self, text, input_of, scalar_of):
        spec = tomllib.loads(text)
        self.dims = dict(spec["dims"])
        self.tensors = spec["tensors"]
        lines = [line.split("#")[0].strip() for line in spec["compute"]["body"].splitlines()]
        self.statements = [self.statement(part) for line in lines for part in line.split(";") if part.strip()]
        self.find_axes(spec.get("index", {}))
        self.scalars = {}
        for name, value in spec.get("scalars", {}).items():
            value = value.get("value", "launch") if isinstance(value, dict) else value
            self.scalars[name] = scalar_of(len(self.scalars)) if value == "launch" else float(value)
        self.stored = {}
        for position, (name, tensor) in enumerate(self.tensors.items()):
            if tensor.get("role", "in") != "out":
                low, high = tensor.get("range", [None, None])
                self.stored[name] = input_of(position, tensor["dtype"], self.shape(tensor), low, high)

    @staticmethod
    def statement(line):
        left, right = re.match(r"\s*([\w\[\]\s,+*/%-]*?)\s*=(?!=)\s*(.*)$", line).groups()
        target = Parser(left).whole()
        return (target[1], target[2] if target[0] == "read" else [], Parser(right).whole())

    def shape(self, tensor):
        return [eval(str(extent), {"__builtins__": {}}, self.dims) for extent in tensor["shape"]]  # an expression of dims, in Python's operators

    def find_axes(self, stated):
        """Numbers the indices and finds their extents: as stated, else of an axis where the index stands alone."""
        self.extents = {name: eval(str(entry["extent"]), {"__builtins__": {}}, self.dims) for name, entry in stated.items()}
        shapes = {name: self.shape(tensor) for name, tensor in self.tensors.items()}
        for target, subscripts, value in self.statements:
            accesses = [(node[1], node[2]) for node in walk(value) if node[0] == "read"] + ([(target, subscripts)] if target in shapes else [])
            for name, access in accesses:
                for subscript, extent in zip(access, shapes.get(name, [])):
                    if subscript[0] == "name" and subscript[1] not in self.dims:
                        self.extents.setdefault(subscript[1], extent)
            if target not in shapes:
                shapes[target] = [self.extents[subscript[1]] for subscript in subscripts]
        self.axis = {name: position for position, name in enumerate(sorted(self.extents))}

    def along(self, index):
        shape = [1] * len(self.axis)
        shape[self.axis[index]] = self.extents[index]
        return torch.arange(self.extents[index], dtype=INTEGER).reshape(shape)

    def constant(self, value):
        dtype = BOOL if isinstance(value, bool) else INTEGER if isinstance(value, int) else REAL
        return torch.full([1] * len(self.axis), value, dtype=dtype)

    def value(self, node):
        kind = node[0]
        if kind == "number":
            return self.constant(node[1])
        if kind == "name":
            name = node[1]
            if name in self.axis:
                return self.along(name)
            if name in self.dims:
                return self.constant(self.dims[name])
            return self.constant(self.scalars[name]) if name in self.scalars else self.read(name, [])
        if kind == "read":
            return self.read(node[1], node[2])
        if kind == "reduce":
            return self.reduced(node[1], node[2], node[3])
        return self.called(node[1], node[2])

    def called(self, name, arguments):
        if name == "cast":
            dtype = DTYPES[arguments[1][1]]
            x = self.value(arguments[0])
            if dtype in (torch.int8, torch.int32, torch.int64):
                return torch.trunc(real(x)).to(INTEGER)
            return real(real(x).to(dtype))
        values = [self.value(argument) for argument in arguments]
        if name == "where":
            kept = values[1:] if values[1].dtype == values[2].dtype == BOOL else joined(values[1:])
            return torch.where(values[0], *kept)
        return POINTWISE[name](*values)

    def read(self, name, subscripts):
        source = self.stored[name]
        if not subscripts:
            return source.reshape([1] * len(self.axis))
        positions = [self.value(subscript) for subscript in subscripts]
        # A read under `where` may leave its axis: the value is not used then.
        return source[tuple(position.clamp(0, max(extent - 1, 0)) for position, extent in zip(positions, source.shape))]

    def reduced(self, name, indices, arguments):
        x = self.value(arguments[0])
        axes = [self.axis[index] for index in indices]
        shape = list(x.shape)
        for index in indices:
            shape[self.axis[index]] = self.extents[index]
        x = x.expand(shape)
        axis = axes[0]
        if name in ("sum", "mean", "logsumexp", "softmax", "cumsum", "prod") and not (x.dtype == INTEGER and name in ("sum", "prod", "cumsum")):
            x = real(x)
        if name == "sum":
            return torch.sum(x, axes, keepdim=True)
        if name == "mean":
            return torch.mean(x, axes, keepdim=True)
        if name == "max":
            return torch.amax(x, axes, keepdim=True)
        if name == "min":
            return torch.amin(x, axes, keepdim=True)
        if name == "logsumexp":
            return torch.logsumexp(x, axes, keepdim=True)
        if name == "count":
            return torch.count_nonzero(x, axes).reshape([1 if position in axes else extent for position, extent in enumerate(x.shape)])
        if name in ("prod", "any", "all"):
            for one in axes:
                x = getattr(torch, name)(x, one, keepdim=True)
            return x
        if name == "cumsum":
            return torch.cumsum(x, axis)
        if name == "argmax":
            return torch.argmax(x, axis, keepdim=True)
        if name == "softmax":
            return self.softmax(x, axis, arguments)
        ordered, positions = torch.sort(x, dim=axis, descending=True, stable=True)
        rank = self.value(arguments[1])
        common = common_shape(rank.shape, [1 if position == axis else extent for position, extent in enumerate(x.shape)])
        inner = [extent if position != axis else ordered.shape[axis] for position, extent in enumerate(common)]
        return torch.gather((ordered if name == "topk" else positions).expand(inner), axis, rank.expand(common))

    def softmax(self, x, axis, arguments):
        if len(arguments) < 2:
            return torch.softmax(x, axis)
        sink = real(self.value(arguments[1]))
        common = common_shape(sink.shape, [1 if position == axis else extent for position, extent in enumerate(x.shape)])
        x = x.expand([extent if position != axis else x.shape[axis] for position, extent in enumerate(common)])
        return torch.softmax(torch.cat([x, sink.expand(common)], axis), axis).narrow(axis, 0, x.shape[axis])

    def outputs(self):
        """{name: tensor}: what is written, before the rounding to the output's dtype. An output that a later statement reads is rounded: the reader
        sees the stored value."""
        results, stored = {}, {}
        for target, subscripts, node in self.statements:
            value = self.value(node)
            if target not in self.tensors:
                names = [subscript[1] for subscript in subscripts]
                full = value.expand([self.extents[name] if name in names else 1 for name in self.axis])
                order = [self.axis[name] for name in names]
                rest = [position for position in range(len(self.axis)) if position not in order]
                self.stored[target] = full.permute(order + rest).reshape([self.extents[name] for name in names])
                continue
            tensor = self.tensors[target]
            dtype = DTYPES[tensor["dtype"]]
            if target not in results:
                results[target] = torch.full(self.shape(tensor), float("nan"), dtype=REAL)
                stored[target] = torch.zeros(self.shape(tensor), dtype=dtype)
            positions = torch.broadcast_tensors(*(self.value(subscript) for subscript in subscripts)) if subscripts else ()
            shape = common_shape(value.shape, positions[0].shape) if subscripts else []
            value = value.expand(shape) if subscripts else value.reshape([])
            results[target][positions] = real(value)
            stored[target][positions] = value.to(dtype)
            if tensor.get("role") != "inout":  # reads of an inout tensor see what it held before
                self.stored[target] = stored[target].to(REAL if dtype.is_floating_point else BOOL if dtype == BOOL else INTEGER)
        is_read = {node[1] for _, _, value in self.statements for node in walk(value) if node[0] in ("read", "name")}
        return {name: real(stored[name]) if name in is_read and self.tensors[name].get("role") != "inout" else values for name, values in results.items()}
