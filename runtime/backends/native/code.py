"""Writes LLVM IR as text: a function of nested loops over explicit vectors.

A `Value` is a scalar, a vector, or a constant without a width, which takes the width of
the other operand. Arithmetic on values appends an instruction to their `LlvmFunction`.
Nothing is left to LLVM's loop vectorizer, so vectorization does not depend on LLVM's
version, and compiling stays cheap.
"""

import struct
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import TypeAlias, Union

from ..jit.inlining import HEAD

LINE = 64
"""The bytes of a cache line."""

FLOATS = ("float", "double")
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}
"""The bits of LLVM's scalar types that values have."""

_SUFFIX = {"float": "f32", "double": "f64", "half": "f16"}

Number: TypeAlias = int | float
Operand: TypeAlias = Union["Value", Number]


@dataclass(frozen=True, eq=False)
class Value:
    """An SSA value of an LLVM function, or a literal."""

    code: "LlvmFunction"
    text: str
    element: str
    """The type of an element: `float`, `i32`, ..."""
    lanes: int
    """Elements of a vector; 1 for a scalar; 0 for a constant, which has no width."""
    number: Number | None = None
    """The number of a constant."""

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS

    def __add__(self, other: Operand) -> "Value":
        return self.code.binary("fadd" if self.is_float else "add", self, other)

    def __sub__(self, other: Operand) -> "Value":
        return self.code.binary("fsub" if self.is_float else "sub", self, other)

    def __mul__(self, other: Operand) -> "Value":
        return self.code.binary("fmul" if self.is_float else "mul", self, other)

    def __truediv__(self, other: Operand) -> "Value":
        return self.code.binary("fdiv", self, other)

    def __neg__(self) -> "Value":
        if self.is_float:
            return self.code.op(f"fneg {typed(self)}", self.element, self.lanes)
        return self.code.number(0, self.element) - self

    def __and__(self, other: Operand) -> "Value":
        return self.code.binary("and", self, other)

    def __or__(self, other: Operand) -> "Value":
        return self.code.binary("or", self, other)

    def __xor__(self, other: Operand) -> "Value":
        return self.code.binary("xor", self, other)

    def __invert__(self) -> "Value":
        return self.code.binary("xor", self, -1)

    def __lshift__(self, other: Operand) -> "Value":
        return self.code.binary("shl", self, other)

    def arithmetic_shift(self, bits: int) -> "Value":
        return self.code.binary("ashr", self, bits)

    def logical_shift(self, bits: int) -> "Value":
        return self.code.binary("lshr", self, bits)

    def compare(self, predicate: str, other: Operand) -> "Value":
        """An `i1` for each element; `predicate` as in LLVM: `olt`, `une`, `slt`, ..."""
        x, y = self.code.matched(self, other)
        name = "fcmp" if x.is_float else "icmp"
        return self.code.op(f"{name} {predicate} {typed(x)}, {y.text}", "i1", x.lanes)

    @property
    def is_nan(self) -> "Value":
        return self.compare("uno", self)

    @property
    def is_infinite(self) -> "Value":
        return self.call("fabs").compare("oeq", inf)

    def cast(self, instruction: str, element: str) -> "Value":
        """Applies `sext`, `fptrunc`, `bitcast`, ... to each element."""
        to = vector(element, self.lanes)
        text = f"{instruction} {typed(self)} to {to}"
        return self.code.op(text, element, self.lanes)

    def call(self, name: str, *others: Operand, flags: str = "") -> "Value":
        """Calls LLVM's intrinsic function `name` on values of one type."""
        values = self.code.matched(self, *others)
        first = values[0]
        type = vector(first.element, first.lanes)
        function = f"llvm.{name}.{suffix(first.element, first.lanes)}"
        self.code.declare(f"{type} @{function}({', '.join([type] * len(values))})")
        arguments = ", ".join(typed(v) for v in values)
        return self.code.op(
            f"call {flags}{type} @{function}({arguments})", first.element, first.lanes
        )


def vector(element: str, lanes: int) -> str:
    return element if lanes <= 1 else f"<{lanes} x {element}>"


def suffix(element: str, lanes: int) -> str:
    """The type in the name of an overloaded intrinsic."""
    name = _SUFFIX.get(element, element)
    return name if lanes <= 1 else f"v{lanes}{name}"


def typed(value: Value) -> str:
    return f"{vector(value.element, value.lanes)} {value.text}"


def literal(number: Number, element: str) -> str:
    if element in FLOATS:
        if element == "float":  # LLVM writes a float as the double of the same value
            (number,) = struct.unpack("f", struct.pack("f", number))
        return "0x" + struct.pack(">d", number).hex().upper()
    return str(int(number))


class LlvmFunction:
    """A function under construction. `i64` indices are plain text: `%i3` or `17`."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._slots: list[str] = []
        self._declared = {"i64 @llvm.smin.i64(i64, i64)": None}
        self._names = count()
        self._block = "entry"

    def function(self) -> str:
        """The text of the whole module. The function takes a pointer to its words."""
        return "\n".join(
            [
                HEAD,
                "entry:",
                *self._slots,
                *self._lines,
                "  ret i32 0",
                "}",
                *(f"declare {d}" for d in self._declared),
            ]
        )

    def declare(self, declaration: str) -> None:
        self._declared[declaration] = None

    def line(self, text: str) -> None:
        self._lines.append("  " + text)

    def name(self, text: str) -> str:
        """Appends an instruction and returns the name of its result."""
        name = f"%v{next(self._names)}"
        self._lines.append(f"  {name} = {text}")
        return name

    def op(self, text: str, element: str, lanes: int) -> Value:
        return Value(self, self.name(text), element, max(1, lanes))

    def number(self, number: Number, element: str) -> Value:
        return Value(self, literal(number, element), element, 0, number)

    def matched(self, *operands: Operand) -> list[Value]:
        """Values of the first value's element type, all as wide as the widest."""
        first = next(x for x in operands if isinstance(x, Value))
        values = [
            x if isinstance(x, Value) else self.number(x, first.element)
            for x in operands
        ]
        lanes = max(1, *(v.lanes for v in values))
        return [self.widened(v, lanes) for v in values]

    def widened(self, x: Value, lanes: int) -> Value:
        """`x` in all of `lanes` lanes."""
        if x.lanes == lanes or (x.lanes == 0 and lanes == 1):
            return Value(self, x.text, x.element, lanes, x.number)
        if x.lanes == 0:
            text = f"splat ({x.element} {x.text})"
            return Value(self, text, x.element, lanes, x.number)
        assert x.lanes == 1, "a vector has a width"
        type = vector(x.element, lanes)
        one = self.name(f"insertelement {type} poison, {typed(x)}, i64 0")
        mask = f"<{lanes} x i32> zeroinitializer"
        return self.op(
            f"shufflevector {type} {one}, {type} poison, {mask}", x.element, lanes
        )

    def binary(self, instruction: str, x: Operand, y: Operand) -> Value:
        left, right = self.matched(x, y)
        text = f"{instruction} {typed(left)}, {right.text}"
        return self.op(text, left.element, left.lanes)

    def select(
        self, condition: Value, x: Operand, y: Operand, *, random: bool = False
    ) -> Value:
        """Selects `x` or `y`. `random` keeps LLVM from making this a branch, which
        processors would mispredict."""
        left, right = self.matched(x, y)
        lanes = max(condition.lanes, left.lanes)
        values = [self.widened(v, lanes) for v in (condition, left, right)]
        text = "select " + ", ".join(typed(v) for v in values)
        if random:
            text += ", !unpredictable !{}"
        return self.op(text, left.element, lanes)

    def fma(self, x: Value, y: Operand, z: Operand) -> Value:
        """`x * y + z`, rounded once."""
        return x.call("fma", y, z)

    # Lanes

    def extract(self, x: Value, lane: int) -> Value:
        return self.op(f"extractelement {typed(x)}, i64 {lane}", x.element, 1)

    def insert(self, x: Value, scalar: Value, lane: int) -> Value:
        text = f"insertelement {typed(x)}, {typed(scalar)}, i64 {lane}"
        return self.op(text, x.element, x.lanes)

    def part(self, x: Value, start: int, lanes: int) -> Value:
        """`lanes` lanes of a vector, from `start` on."""
        return self.shuffled(x, range(start, start + lanes))

    def shuffled(
        self, x: Value, order: Sequence[int], other: Value | None = None
    ) -> Value:
        """The lanes in `order`, of a vector and of `other`, whose lanes follow it."""
        if len(order) == 1:
            values = [(v, lane) for v in (x, other) if v for lane in range(v.lanes)]
            source, lane = values[order[0]]
            return source if source.lanes == 1 else self.extract(source, lane)
        mask = ", ".join(f"i32 {lane}" for lane in order)
        type = vector(x.element, x.lanes)
        second = typed(other) if other else f"{type} poison"
        text = f"shufflevector {typed(x)}, {second}, <{len(order)} x i32> <{mask}>"
        return self.op(text, x.element, len(order))

    def each(self, function: str, *values: Value) -> Value:
        """Calls a C function of scalars, lane by lane."""
        values = tuple(self.matched(*values))
        element, lanes = values[0].element, values[0].lanes
        self.declare(f"{element} @{function}({', '.join([element] * len(values))})")
        if lanes <= 1:
            return self.op(
                f"call {element} @{function}({', '.join(map(typed, values))})",
                element,
                1,
            )
        result = Value(self, "poison", element, lanes)
        for lane in range(lanes):
            scalars = [self.extract(v, lane) for v in values]
            result = self.insert(result, self.each(function, *scalars), lane)
        return result

    # Indices and memory

    def index(self, instruction: str, x: str, y: str | int) -> str:
        return self.name(f"{instruction} i64 {x}, {y}")

    def smaller(self, x: str, step: str | int, limit: str | int) -> str:
        """The smaller of `x + step` and `limit`."""
        end = self.index("add", x, step)
        return self.name(f"call i64 @llvm.smin.i64(i64 {end}, i64 {limit})")

    def moved(self, pointer: str, index: str, stride: int) -> str:
        """The address that is `index * stride` bytes after `pointer`."""
        if stride == 0 or index == "0":
            return pointer
        offset = index if stride == 1 else self.index("mul", index, stride)
        return self.name(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def all_moved(
        self, pointers: Sequence[str], index: str, strides: Sequence[int]
    ) -> list[str]:
        """The addresses `index * stride` bytes after `pointers`, each by its stride."""
        pairs = zip(pointers, strides, strict=True)
        return [self.moved(pointer, index, stride) for pointer, stride in pairs]

    def prefetch(self, pointer: str, offset: int) -> None:
        """Prefetches the cache line at `pointer + offset`, if there is such memory."""
        self.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        at = self.moved(pointer, str(offset), 1)
        self.line(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")

    def word(self, number: int) -> str:
        """The function's argument with this index, a pointer."""
        at = self.name(f"getelementptr ptr, ptr %words, i64 {number}")
        return self.name(f"load ptr, ptr {at}")

    def slot(self, initial: Value) -> str:
        """A variable for values of one type; LLVM keeps it in registers."""
        name = f"%s{next(self._names)}"
        self._slots.append(
            f"  {name} = alloca {vector(initial.element, initial.lanes)}"
        )
        self.set(name, initial)
        return name

    def get(self, slot: str, element: str, lanes: int) -> Value:
        return self.op(f"load {vector(element, lanes)}, ptr {slot}", element, lanes)

    def set(self, slot: str, value: Value) -> None:
        self.line(f"store {typed(value)}, ptr {slot}")

    def buffer(self, element: str, count: int) -> str:
        """The address of `count` elements, allocated while the function runs. Stores of
        vectors that cross cache lines could not be forwarded to loads."""
        name = f"%b{next(self._names)}"
        self._slots.append(f"  {name} = alloca {element}, i64 {count}, align {LINE}")
        return name

    # Control

    def indices(self, size: int, most: int) -> Iterator[str]:
        """The index of a loop over `size`, or, if `size` is at most `most`, the index
        of each unrolled iteration."""
        if size <= most:
            yield from map(str, range(size))
        else:
            with self.loop("0", str(size), 1) as index:
                yield index

    @contextmanager
    def loop(self, start: str, stop: str, step: str | int) -> Generator[str]:
        """Runs its body once or more: for `start`, `start + step`, ... below `stop`."""
        number = next(self._names)
        before, body, after = self._block, f"body{number}", f"after{number}"
        self.line(f"br label %{body}")
        self._start(body)
        head = len(self._lines)
        index = f"%i{number}"
        yield index
        following = self.index("add", index, step)
        latch = self._block
        phi = f"  {index} = phi i64 [{start}, %{before}], [{following}, %{latch}]"
        self._lines.insert(head, phi)
        again = self.name(f"icmp slt i64 {following}, {stop}")
        self.line(f"br i1 {again}, label %{body}, label %{after}")
        self._start(after)

    @contextmanager
    def nest(
        self, loops: Sequence[tuple[int, Sequence[int]]], pointers: Sequence[str]
    ) -> Generator[Sequence[str]]:
        """Runs its body in loops of these sizes, the first one outermost. Each loop
        moves the pointers by its strides."""
        with ExitStack() as stack:
            for size, steps in loops:
                index = stack.enter_context(self.loop("0", str(size), 1))
                pointers = self.all_moved(pointers, index, steps)
            yield pointers

    @contextmanager
    def when(self, condition: Value) -> Generator[None]:
        """Runs its body if a scalar `i1` holds. Results are passed through slots."""
        number = next(self._names)
        self.line(f"br i1 {condition.text}, label %then{number}, label %end{number}")
        self._start(f"then{number}")
        yield
        self.line(f"br label %end{number}")
        self._start(f"end{number}")

    def _start(self, block: str) -> None:
        self._lines.append(f"{block}:")
        self._block = block
