"""Writes tensor programs bufferized by mlir-opt 22, and their native output.

    python tests/mlir/mlir_programs.py

Writes `programs/*.mlir` and `expected.json`, so that tests need no mlir-opt. A small
builder writes sources: linalg on tensors, which MLIR 19 and later read. mlir-opt
bufferizes them (one-shot-bufferize), adds deallocations according to ownership, and
lowers these to `memref.dealloc`. Every other result is in generic form, the rest in
pretty form, with `linalg.generic` for operations that xDSL can't parse. `expected.json`
has the output of each program when it runs natively without planning.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tensorplan.runtime.backends.mlir.executable import Tools

HERE = Path(__file__).parent
BUFFERIZE = (
    "--one-shot-bufferize=bufferize-function-boundaries allow-return-allocs-from-loops"
    " function-boundary-type-conversion=identity-layout-map"
)
DEALLOCATE = (
    "--ownership-based-buffer-deallocation",
    "--canonicalize",
    "--buffer-deallocation-simplification",
    "--bufferization-lower-deallocations",
    "--cse",
    "--canonicalize",
)
GENERALIZE = "--linalg-generalize-named-ops"
LOWER = (
    "--convert-linalg-to-loops",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--convert-to-llvm",
    "--reconcile-unrealized-casts",
)
LIBRARIES = ",".join(
    str(library)
    for name in ("libmlir_runner_utils.so*", "libmlir_c_runner_utils.so*")
    for library in sorted(Path("/usr/lib").glob(f"llvm-*/lib/{name}"))[-1:]
)
"""The libraries that print memrefs. Their interface is the same in all versions."""

Shape = tuple[int, ...]


class Source:
    """Builds `@program(%n: index, %c: i1, %x, %y, %out)` and a `@main` that runs it."""

    def __init__(self, shape: Shape = (8, 8)):
        self.shape = shape
        self.lines: list[str] = []
        self.count = 0
        self.x, self.y = "%x", "%y"
        self.shapes: dict[str, Shape] = {"%x": shape, "%y": shape}
        self.early: Sequence[str] = ()  # passes before deallocation
        self.late: Sequence[str] = ()  # passes after deallocation

    def type(self, shape: Shape) -> str:
        return f"tensor<{'x'.join(map(str, shape))}{'x' if shape else ''}f32>"

    def of(self, value: str) -> str:
        return self.type(self.shapes[value])

    def add(self, text: str, shape: Shape | None = None) -> str:
        """Adds a line. With `shape`, it defines a value, which is returned."""
        if shape is None:
            self.lines.append(text)
            return ""
        name = f"%v{self.count}"
        self.count += 1
        self.shapes[name] = shape
        self.lines.append(f"{name} = {text}")
        return name

    def scalar(self, text: str) -> str:
        return self.add(text, ())

    def empty(self, shape: Shape) -> str:
        return self.add(f"tensor.empty() : {self.type(shape)}", shape)

    def fill(self, value: float, shape: Shape) -> str:
        c = self.scalar(f"arith.constant {value:e} : f32")
        e = self.empty(shape)
        return self.add(
            f"linalg.fill ins({c} : f32) outs({e} : {self.of(e)}) -> {self.of(e)}",
            shape,
        )

    def map(self, op: str, *values: str, into: str | None = None) -> str:
        """An elementwise operation, into a new tensor or `into`."""
        shape = self.shapes[values[0]]
        out = into or self.empty(shape)
        types = ", ".join(self.of(v) for v in values)
        return self.add(
            f"linalg.{op} ins({', '.join(values)} : {types}) outs({out} : "
            f"{self.of(out)}) -> {self.of(out)}",
            shape,
        )

    def matmul(self, a: str, b: str) -> str:
        shape = (self.shapes[a][0], self.shapes[b][1])
        out = self.fill(0, shape)
        return self.add(
            f"linalg.matmul ins({a}, {b} : {self.of(a)}, {self.of(b)}) outs({out} : "
            f"{self.of(out)}) -> {self.of(out)}",
            shape,
        )

    def transpose(self, a: str) -> str:
        *outer, rows, columns = self.shapes[a]
        shape = (*outer, columns, rows)
        e = self.empty(shape)
        dimensions = [*range(len(outer)), len(outer) + 1, len(outer)]
        return self.add(
            f"linalg.transpose ins({a} : {self.of(a)}) outs({e} : {self.of(e)}) "
            f"permutation = {dimensions}",
            shape,
        )

    def rows(self, a: str, op: str = "addf") -> str:
        """Reduces rows, by sums or another operation."""
        shape = self.shapes[a][:1]
        out = self.fill(0, shape)
        return self.add(
            f"linalg.reduce ins({a} : {self.of(a)}) outs({out} : {self.of(out)}) "
            f"dimensions = [1] (%i: f32, %o: f32) {{ %s = arith.{op} %i, %o : f32 "
            "linalg.yield %s : f32 }",
            shape,
        )

    def spread(self, a: str, columns: int) -> str:
        """Broadcasts a vector to `columns` columns."""
        shape = (*self.shapes[a], columns)
        e = self.empty(shape)
        return self.add(
            f"linalg.broadcast ins({a} : {self.of(a)}) outs({e} : {self.of(e)}) "
            "dimensions = [1]",
            shape,
        )

    def part(self, a: str, rows: int, first: int = 0) -> str:
        shape = (rows, *self.shapes[a][1:])
        sizes = ", ".join(map(str, shape))
        offsets = ", ".join(map(str, (first, *(0 for _ in shape[1:]))))
        ones = ", ".join("1" for _ in shape)
        return self.add(
            f"tensor.extract_slice {a}[{offsets}] [{sizes}] [{ones}] : {self.of(a)} to "
            f"{self.type(shape)}",
            shape,
        )

    def put(self, a: str, into: str, first: int) -> str:
        sizes = ", ".join(map(str, self.shapes[a]))
        offsets = ", ".join(map(str, (first, *(0 for _ in self.shapes[a][1:]))))
        ones = ", ".join("1" for _ in self.shapes[a])
        return self.add(
            f"tensor.insert_slice {a} into {into}[{offsets}] [{sizes}] [{ones}] : "
            f"{self.of(a)} into {self.of(into)}",
            self.shapes[into],
        )

    def number(self, value: int) -> str:
        return self.scalar(f"arith.constant {value} : index")

    def block(self, a: str, at: Sequence[str], shape: Shape) -> str:
        """Extracts a slice that starts at the indices `at`."""
        sizes, ones = ", ".join(map(str, shape)), ", ".join("1" for _ in shape)
        return self.add(
            f"tensor.extract_slice {a}[{', '.join(at)}] [{sizes}] [{ones}] : "
            f"{self.of(a)} to {self.type(shape)}",
            shape,
        )

    def put_block(self, a: str, into: str, at: Sequence[str]) -> str:
        shape = self.shapes[a]
        sizes, ones = ", ".join(map(str, shape)), ", ".join("1" for _ in shape)
        place = f"[{', '.join(at)}] [{sizes}] [{ones}]"
        return self.add(
            f"tensor.insert_slice {a} into {into}{place} : {self.of(a)} into "
            f"{self.of(into)}",
            self.shapes[into],
        )

    def reshape(self, a: str, groups: str, shape: Shape) -> str:
        """Expands or collapses dimensions."""
        sizes = ", ".join(map(str, shape))
        if len(shape) > len(self.shapes[a]):
            text = f"tensor.expand_shape {a} {groups} output_shape [{sizes}]"
        else:
            text = f"tensor.collapse_shape {a} {groups}"
        return self.add(f"{text} : {self.of(a)} into {self.type(shape)}", shape)

    def named(self, op: str, a: str, b: str, out: str, attributes: str = "") -> str:
        """A named operation that accumulates into `out`."""
        return self.add(
            f"linalg.{op} {attributes} ins({a}, {b} : {self.of(a)}, {self.of(b)}) "
            f"outs({out} : {self.of(out)}) -> {self.of(out)}",
            self.shapes[out],
        )

    def pad(self, a: str, by: int) -> str:
        """Pads the second and the third of four dimensions with zeros."""
        n, h, w, c = self.shapes[a]
        shape = (n, h + 2 * by, w + 2 * by, c)
        zero = self.scalar("arith.constant 0.0 : f32")
        amounts = f"[0, {by}, {by}, 0]"
        return self.add(
            f"tensor.pad {a} low{amounts} high{amounts} {{\n"
            f"^bb0(%p0: index, %p1: index, %p2: index, %p3: index):\n"
            f"tensor.yield {zero} : f32\n}} : {self.of(a)} to {self.type(shape)}",
            shape,
        )

    def first(self, a: str) -> str:
        """The first element, as a scalar."""
        zero = self.scalar("arith.constant 0 : index")
        zeros = ", ".join(zero for _ in self.shapes[a])
        return self.scalar(f"tensor.extract {a}[{zeros}] : {self.of(a)}")

    def less(self, a: str, limit: float) -> str:
        c = self.scalar(f"arith.constant {limit:e} : f32")
        return self.scalar(f"arith.cmpf olt, {a}, {c} : f32")

    @contextmanager
    def inside(self, head: str, tail: str = "}") -> Iterator[None]:
        self.lines.append(head)
        yield
        self.lines.append(tail)

    def choose(
        self, then: Callable[[], str], other: Callable[[], str], c: str = "%c"
    ) -> str:
        """An `scf.if` that returns a tensor."""
        at = len(self.lines)
        a = then()
        self.add(f"scf.yield {a} : {self.of(a)}")
        self.add("} else {")
        b = other()
        self.add(f"scf.yield {b} : {self.of(b)}")
        result = self.add(f"scf.if {c} -> {self.of(a)} {{", self.shapes[a])
        self.lines.insert(at, self.lines.pop())
        self.add("}")
        return result

    def repeat(self, init: str, body: Callable[[str], str], count: str = "%n") -> str:
        """An `scf.for` that carries a tensor."""
        return self.steps(init, lambda _, value: body(value), count)

    def steps(
        self, init: str, body: Callable[[str, str], str], count: str, step: int = 1
    ) -> str:
        """An `scf.for` that carries a tensor; `body` also takes the loop's index."""
        zero = self.scalar("arith.constant 0 : index")
        one = self.scalar(f"arith.constant {step} : index")
        index, argument = f"%i{self.count}", f"%s{self.count}"
        result = self.add(
            f"scf.for {index} = {zero} to {count} step {one} iter_args("
            f"{argument} = {init}) -> ({self.of(init)}) {{",
            self.shapes[init],
        )
        self.shapes[argument] = self.shapes[init]
        last = body(index, argument)
        self.add(f"scf.yield {last} : {self.of(last)}")
        self.add("}")
        return result

    def repeat_while(
        self, init: str, condition: Callable[[str], str], body: Callable[[str], str]
    ) -> str:
        """An `scf.while` that carries a tensor."""
        before, after = f"%p{self.count}", f"%q{self.count}"
        type = self.of(init)
        for name in (before, after):
            self.shapes[name] = self.shapes[init]
        result = self.add(
            f"scf.while ({before} = {init}) : ({type}) -> {type} {{",
            self.shapes[init],
        )
        c = condition(before)
        self.add(f"scf.condition({c}) {before} : {type}")
        self.add("} do {")
        self.add(f"^bb0({after}: {type}):")
        last = body(after)
        self.add(f"scf.yield {last} : {type}")
        self.add("}")
        return result

    def text(self, result: str) -> str:
        """The module with a program that writes `result` to %out."""
        tensor = self.type(self.shape)
        memref = tensor.replace("tensor", "memref")
        out = self.of(result).replace("tensor", "memref")
        rank = len(self.shape)
        bounds = [f"%d{i}" for i in range(rank)]
        loops = "".join(
            f"scf.for {i} = %c0 to %e{n} step %c1 {{\n" for n, i in enumerate(bounds)
        )
        extents = "".join(
            f"%e{n} = arith.constant {size} : index\n"
            for n, size in enumerate(self.shape)
        )
        total = "".join(
            f"%t{n + 1} = arith.addi %t{n}, {i} : index\n" for n, i in enumerate(bounds)
        )
        calls = "".join(
            f"func.call @program(%n{n}, %{c}, %x, %y, %out) : "
            f"(index, i1, {memref}, {memref}, {out}) -> ()\n"
            f"func.call @printMemrefF32(%any) : (memref<*xf32>) -> ()\n"
            for n, c in ((3, "true"), (0, "false"), (4, "false"))
        )
        kind = f"memref<{'x'.join(map(str, self.shapes[result]))}xf32>"
        arguments = f"%n: index, %c: i1, %xm: {memref}, %ym: {memref}, %om: {out}"
        types = f"({self.of(result)}, {out}) -> ()"
        return f"""
func.func @program({arguments}) {{
%x = "bufferization.to_tensor"(%xm) <{{restrict}}> : ({memref}) -> {tensor}
%y = "bufferization.to_tensor"(%ym) <{{restrict}}> : ({memref}) -> {tensor}
{chr(10).join(self.lines)}
bufferization.materialize_in_destination {result} in restrict writable %om : {types}
return
}}
func.func private @printMemrefF32(memref<*xf32>) attributes {{llvm.emit_c_interface}}
func.func @main() {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%n0 = arith.constant 0 : index
%n3 = arith.constant 3 : index
%n4 = arith.constant 4 : index
%true = arith.constant true
%false = arith.constant false
%scale = arith.constant 0.0625 : f32
%t0 = arith.constant 1 : index
{extents}
%x = memref.alloca() : {memref}
%y = memref.alloca() : {memref}
%out = memref.alloca() : {kind}
{loops}
{total}
%w = arith.index_cast %t{rank} : index to i32
%f = arith.sitofp %w : i32 to f32
%a = arith.mulf %f, %scale : f32
%b = arith.mulf %a, %a : f32
memref.store %a, %x[{", ".join(bounds)}] : {memref}
memref.store %b, %y[{", ".join(bounds)}] : {memref}
{"}" * rank}
%any = memref.cast %out : {kind} to memref<*xf32>
{calls}
return
}}
"""


def straight_line(s: Source, number: int) -> str:
    """Builds one of twenty programs without control flow. Returns its result."""
    x, y = s.x, s.y
    match number:
        case 0:  # a chain
            for op in ("exp", "negf", "tanh", "abs", "negf"):
                x = s.map(op, s.map(op, x))
            return x
        case 1:  # two chains that meet
            a, b = s.map("exp", x), s.map("tanh", y)
            return s.map("add", s.map("negf", a), s.matmul(b, b))
        case 2:  # a long-lived value
            a = s.map("tanh", x)
            b = a
            for _ in range(4):
                b = s.matmul(b, y)
            return s.map("sub", b, a)
        case 3:  # rows
            m = s.map("exp", x)
            return s.map("div", m, s.spread(s.rows(m), s.shape[1]))
        case 4:  # layer norm, roughly
            mean = s.spread(s.rows(x), s.shape[1])
            d = s.map("sub", x, mean)
            v = s.spread(s.rows(s.map("mul", d, d)), s.shape[1])
            return s.map("div", d, s.map("sqrt", v))
        case 5:  # halves, one at a time
            h = s.shape[0] // 2
            a, b = s.map("exp", s.part(x, h)), s.map("tanh", s.part(y, h, h))
            e = s.fill(0, s.shape)
            return s.map("exp", s.put(b, s.put(a, e, 0), h))
        case 6:  # transposes
            return s.matmul(s.transpose(s.matmul(x, y)), s.transpose(x))
        case 7:  # attention, roughly
            p = s.map("exp", s.matmul(x, s.transpose(y)))
            p = s.map("div", p, s.spread(s.rows(p), s.shape[0]))
            return s.matmul(p, y)
        case 8:  # wide and narrow
            a = s.matmul(s.matmul(x, y), s.fill(0.5, (s.shape[1], 32)))
            return s.matmul(s.map("tanh", a), s.fill(0.25, (32, s.shape[1])))
        case 9:  # residual connections
            for _ in range(4):
                x = s.map("add", x, s.map("tanh", s.matmul(x, y)))
            return x
        case 10:  # a diamond
            a = s.map("tanh", x)
            return s.map(
                "mul", s.map("exp", a), s.map("add", s.map("negf", a), s.map("abs", a))
            )
        case 11:  # all kept, then summed
            values = [s.map("tanh", x)]
            for _ in range(5):
                values.append(s.matmul(values[-1], y))
            total = values[0]
            for value in values[1:]:
                total = s.map("add", total, value)
            return total
        case 12:  # written in place
            a = s.map("exp", x)
            return s.map("exp", s.map("negf", a, into=a), into=a)
        case 13:  # sizes that do not divide each other
            a = s.matmul(x, s.fill(0.1, (s.shape[1], 5)))
            b = s.matmul(s.map("tanh", a), s.fill(0.2, (5, 7)))
            return s.matmul(s.map("tanh", b), s.fill(0.3, (7, s.shape[1])))
        case 14:  # a vector
            return s.spread(s.rows(s.map("mul", x, y)), 3)
        case 15:  # parts of one value, used late
            a = s.map("exp", x)
            p, q = s.part(a, 2), s.part(a, 2, 4)
            b = s.matmul(a, y)
            return s.map("add", s.map("add", p, q), s.part(b, 2, 1))
        case 16:  # a deep network
            for _ in range(8):
                x = s.map("tanh", s.matmul(x, y))
            return x
        case 17:  # equal values computed at different times
            a = s.matmul(x, y)
            b = s.map("exp", s.map("negf", s.map("abs", a)))
            return s.map("sub", s.matmul(b, y), s.transpose(a))
        case 18:  # small beside large
            a = s.rows(s.matmul(x, s.fill(0.5, (s.shape[1], 64))))
            return s.map("mul", s.spread(a, s.shape[1]), s.map("exp", y))
        case _:  # gradient of a layer, roughly
            h = s.map("tanh", s.matmul(x, y))
            one = s.fill(1, s.shape)
            g = s.map("sub", one, s.map("mul", h, h))
            return s.map("sub", y, s.matmul(s.transpose(x), g))


def control_flow(s: Source, number: int) -> str:
    """Builds one of twenty programs with branches and loops. Returns its result."""
    x, y = s.x, s.y

    def limited(v: str) -> str:
        return s.less(s.first(v), 3.0)

    match number:
        case 0:  # a branch with local buffers on both sides
            return s.choose(
                lambda: s.matmul(s.map("exp", x), y),
                lambda: s.map("tanh", s.map("negf", s.map("abs", y))),
            )
        case 1:  # values used after the branch or on one side only
            a, b = s.map("exp", x), s.map("tanh", y)
            r = s.choose(lambda: s.map("negf", a), lambda: s.map("add", a, b))
            return s.map("add", r, a)
        case 2:  # one side returns an argument
            r = s.choose(lambda: s.map("exp", x), lambda: y)
            return s.map("tanh", s.map("negf", r))
        case 3:  # a select
            a, b = s.map("exp", x), s.map("tanh", y)
            r = s.add(f"arith.select %c, {a}, {b} : {s.of(a)}", s.shape)
            return s.matmul(r, y)
        case 4:  # a loop that updates in place, with a buffer in each iteration
            return s.repeat(
                s.map("tanh", x),
                lambda v: s.map("add", v, s.map("tanh", s.matmul(v, y)), into=v),
            )
        case 5:  # a loop that defines a new value in each iteration
            return s.repeat(s.map("tanh", x), lambda v: s.map("tanh", s.matmul(v, y)))
        case 6:  # nested loops
            return s.repeat(
                s.map("abs", x),
                lambda v: s.repeat(
                    v, lambda w: s.map("add", w, s.map("tanh", s.map("exp", w)), into=w)
                ),
            )
        case 7:  # a branch in a loop

            def body(v: str) -> str:
                e = s.choose(
                    lambda: s.map("tanh", s.matmul(v, y)), lambda: s.map("exp", y)
                )
                return s.map("add", v, e, into=v)

            return s.repeat(s.map("tanh", x), body)
        case 8:  # a loop in a branch
            return s.choose(
                lambda: s.repeat(
                    s.map("tanh", x), lambda v: s.map("sub", v, s.matmul(v, y), into=v)
                ),
                lambda: s.map("exp", s.map("negf", y)),
            )
        case 9:  # while
            return s.repeat_while(
                s.map("abs", x), limited, lambda v: s.map("add", v, s.map("exp", v))
            )
        case 10:  # while, updated in place
            return s.repeat_while(
                s.map("abs", x),
                limited,
                lambda v: s.map("add", v, s.map("tanh", s.map("exp", v)), into=v),
            )
        case 11:  # two loops, one after the other
            a = s.repeat(
                s.map("tanh", x), lambda v: s.map("add", v, s.map("exp", y), into=v)
            )
            return s.repeat(
                s.map("tanh", a), lambda v: s.map("mul", v, s.map("tanh", a), into=v)
            )
        case 12:  # consecutive branches
            for _ in range(3):
                v = x
                x = s.choose(lambda v=v: s.map("exp", v), lambda v=v: s.map("abs", v))
                x = s.map("tanh", x)
            return x
        case 13:  # nested branches
            d = s.less(s.first(x), 0.5)
            return s.choose(
                lambda: s.choose(
                    lambda: s.map("exp", s.map("negf", x)), lambda: s.matmul(x, y), d
                ),
                lambda: s.map("tanh", s.map("abs", y)),
            )
        case 14:  # a buffer from outside, used in the loop and after it
            a = s.map("exp", s.map("negf", x))
            r = s.repeat(
                s.map("tanh", y), lambda v: s.map("add", v, s.matmul(v, a), into=v)
            )
            return s.map("sub", r, a)
        case 15:  # cases 15 to 17: cases 1, 7 and 10, lowered to blocks
            s.late = ("--convert-scf-to-cf", "--canonicalize")
            return control_flow(s, 1)
        case 16:
            s.late = ("--convert-scf-to-cf", "--canonicalize")
            return control_flow(s, 7)
        case 17:
            s.late = ("--convert-scf-to-cf", "--canonicalize")
            return control_flow(s, 10)
        case 18:  # nested scalar loops, as lowered from linalg
            s.late = ("--convert-linalg-to-loops",)
            return control_flow(s, 4)
        case _:  # allocations hoisted out of their loop
            s.early = ("--buffer-loop-hoisting",)
            return control_flow(s, 4)


def network(s: Source, number: int) -> str:
    """Builds one of ten parts of networks, such as convolutions, tiled products, and
    training steps. Returns its result."""
    x, y = s.x, s.y
    rows, columns = s.shape
    strides = (
        "{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}"
    )

    def image(v: str) -> str:
        return s.reshape(v, "[[0, 1], [2, 3]]", (1, rows, columns, 1))

    def convolved(v: str, features: int, size: int = 3) -> str:
        n, h, w, c = s.shapes[v]
        kernel = s.fill(0.1, (size, size, c, features))
        out = s.fill(0, (n, h - size + 1, w - size + 1, features))
        return s.named("conv_2d_nhwc_hwcf", v, kernel, out, strides)

    match number:
        case 0:  # two convolutions that shrink the image
            a = s.map("tanh", convolved(image(x), 4))
            return s.map("tanh", convolved(a, 2))
        case 1:  # padded convolutions with a residual sum
            a = s.map("tanh", convolved(s.pad(image(x), 1), 4))
            b = convolved(s.pad(a, 1), 1)
            return s.map("add", b, image(y))
        case 2:  # pooling
            a = s.map("exp", convolved(image(x), 4))
            window, out = s.fill(0, (2, 2)), s.fill(0, (1, 5, 5, 4))
            return s.named("pooling_nhwc_max", a, window, out, strides)
        case 3:  # attention with two heads
            half = (2, rows // 2, columns)
            q = s.reshape(x, "[[0, 1], [2]]", half)
            k = s.reshape(y, "[[0, 1], [2]]", half)
            p = s.named("batch_matmul", q, s.transpose(k), s.fill(0, (2, 4, 4)))
            p = s.map("tanh", p)
            o = s.named("batch_matmul", p, k, s.fill(0, half))
            return s.reshape(s.map("exp", o), "[[0, 1], [2]]", s.shape)
        case 4:  # a product in tiles of rows

            def rows_of(i: str, out: str) -> str:
                part = s.block(x, (i, "0"), (2, columns))
                tile = s.map("tanh", s.matmul(part, y))
                return s.put_block(tile, out, (i, "0"))

            return s.steps(s.fill(0, s.shape), rows_of, s.number(rows), 2)
        case 5:  # a product in tiles of rows and columns, accumulated over a third loop
            wide = s.number(columns)

            def tile(i: str, j: str) -> Callable[[str, str], str]:
                def add(k: str, sum: str) -> str:
                    a = s.block(x, (i, k), (4, 4))
                    return s.named("matmul", a, s.block(y, (k, j), (4, 4)), sum)

                return add

            def columns_of(i: str) -> Callable[[str, str], str]:
                def put(j: str, out: str) -> str:
                    sums = s.steps(s.fill(0, (4, 4)), tile(i, j), wide, 4)
                    return s.put_block(s.map("tanh", sums), out, (i, j))

                return put

            return s.steps(
                s.fill(0, s.shape),
                lambda i, out: s.steps(out, columns_of(i), wide, 4),
                s.number(rows),
                4,
            )
        case 6:  # a recurrent network that stores each state

            def step(i: str, states: str) -> str:
                old = s.block(states, ("0", "0"), (1, columns))
                new = s.block(x, (i, "0"), (1, columns))
                h = s.map("tanh", s.map("add", s.matmul(old, y), s.matmul(new, y)))
                return s.put_block(h, states, (i, "0"))

            return s.steps(s.fill(0, s.shape), step, s.number(rows))
        case 7:  # a training step of two layers
            w1, w2 = s.map("abs", y), s.map("tanh", y)
            h = s.map("tanh", s.matmul(x, w1))
            d = s.map("sub", s.matmul(h, w2), x)
            g2 = s.matmul(s.transpose(h), d)
            one = s.fill(1, s.shape)
            slope = s.map("sub", one, s.map("mul", h, h))
            g1 = s.matmul(
                s.transpose(x), s.map("mul", slope, s.matmul(d, s.transpose(w2)))
            )
            rate = s.fill(0.01, s.shape)
            new1 = s.map("sub", w1, s.map("mul", g1, rate))
            return s.map("sub", new1, s.map("mul", g2, rate))
        case 8:  # sums of rows until they are large enough

            def larger(v: str) -> str:
                total = s.spread(s.rows(s.map("exp", v)), columns)
                return s.map("add", v, s.map("tanh", total))

            return s.repeat_while(
                s.map("abs", x), lambda v: s.less(s.first(v), 3.0), larger
            )
        case _:  # a branch for each block of rows

            def choose(i: str, out: str) -> str:
                part = s.block(x, (i, "0"), (2, columns))
                made = s.choose(
                    lambda: s.map("exp", s.matmul(part, y)),
                    lambda: s.map("tanh", s.map("negf", part)),
                    s.less(s.first(part), 2.0),
                )
                return s.put_block(made, out, (i, "0"))

            return s.steps(s.fill(0, s.shape), choose, s.number(rows), 2)


def sources() -> Iterator[tuple[str, Source, str]]:
    for number in range(20):
        source = Source()
        yield f"line_{number:02}", source, source.text(straight_line(source, number))
    for number in range(20):
        source = Source()
        yield f"flow_{number:02}", source, source.text(control_flow(source, number))
    for number in range(10):
        source = Source()
        yield f"net_{number:02}", source, source.text(network(source, number))


def run(tool: str, arguments: Sequence[str], text: str) -> str:
    done = subprocess.run(
        [tool, *arguments], input=text, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{tool} {' '.join(arguments)}: {done.stderr[:3000]}")
    return done.stdout


def bufferized(opt: str, source: Source, text: str, is_generic: bool) -> str:
    form = "--mlir-print-op-generic" if is_generic else GENERALIZE
    return run(opt, [BUFFERIZE, *source.early, *DEALLOCATE, *source.late, form], text)


def run_natively(tools: Tools, text: str) -> list[str]:
    """Runs a program natively; returns the output of @main without addresses."""
    printed = run(
        tools.runner,
        ["-e=main", "--entry-point-result=void", f"--shared-libs={LIBRARIES}"],
        run(tools.opt, LOWER, text),
    )
    return [line for line in printed.splitlines() if "base@" not in line]


def main() -> None:
    tools = Tools("mlir-opt-22", "mlir-runner-22")
    expected: dict[str, list[str]] = {}
    (HERE / "programs").mkdir(exist_ok=True)
    for number, (name, source, text) in enumerate(sources()):
        program = bufferized(tools.opt, source, text, is_generic=number % 2 == 1)
        (HERE / "programs" / f"{name}.mlir").write_text(program)
        expected[name] = run_natively(tools, program)
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
