"""Plans of PyTorch Inductor, from the code that it generates for the CPU.

    _, [code] = torch._inductor.utils.run_and_get_code(compiled, x)
    Path("net.output_code.py").write_text(code)

The code says when each buffer is allocated, reused and deleted, which kernel gets
which, and, with `torch._inductor.config.memory_planning`, the offsets in pools. It is
parsed, and never run. Allocations and pools take the lowest address that is free, as
those of an ideal allocator would.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import NamedTuple

from ...support.foreign_plan import (
    Access,
    ForeignPlan,
    ForeignPlanError,
    Memory,
    Region,
    Step,
    Unknown,
    Value,
)
from .elements import element_width

ENDINGS = ("output_code.py",)

ASSUMPTIONS = (
    "a kernel reads `in_ptr`, writes `out_ptr`, and updates `in_out_ptr`",
    "a kernel that gets the same buffer twice orders its own reads and writes",
    "other functions read their operands and write `out`, or what they return",
    "what they return has elements of the type of their first operand",
    "the allocator takes the lowest address that is free",
)

ALIGNMENT = 64  # bytes, of PyTorch's allocator for the CPU

_HEAP = "heap"
_POINTER = re.compile(r"\b(in_out_ptr|in_ptr|out_ptr)\d+\b")
_CHECKS = ("assert_size_stride", "assert_alignment", "args.clear")
_ORIGIN = re.compile(r"Original ATen: \[(.*)\]")


class _Tensor(NamedTuple):
    """What a name stands for."""

    block: str  # the name that its allocation had first; empty for what is not known
    group: str  # the first name of the same contents
    at: int  # bytes, from the start of the block
    size: int  # bytes
    dtype: str


_NOTHING = _Tensor("", "", 0, 0, "float32")


class _Shape(NamedTuple):
    elements: int
    dtype: str  # empty if it is not known

    def bytes(self, dtype: str = "float32") -> int:
        if (width := element_width(self.dtype or dtype)) is None:
            raise ValueError
        return self.elements * width


class _Use(NamedTuple):
    """What a call does to groups."""

    reads: list[Value]
    written: list[str]
    changed: list[str]
    """Of those, the ones that it reads element by element, too."""


def read_file(path: Path) -> ForeignPlan:
    """Raises `ForeignPlanError` for what is no such code, and `OSError`."""
    try:
        text = path.read_text()
        module = ast.parse(text)
        [call] = [
            item
            for item in ast.walk(module)
            if isinstance(item, ast.FunctionDef) and item.name == "call"
        ]
        reader = _Reader(module, text.splitlines(), path.name)
        reader.take(call.body)
        return reader.plan()
    except (
        SyntaxError,
        LookupError,
        ValueError,
        TypeError,
        RecursionError,
        MemoryError,
    ):
        raise ForeignPlanError("this is no code of Inductor", str(path)) from None


class _Reader:
    def __init__(self, module: ast.Module, lines: Sequence[str], file: str):
        self.lines = lines
        self.file = file
        self.kernels = dict(_kernels(module))
        self.shapes = _shapes(module)
        self.names: dict[str, _Tensor] = {}
        self.regions: dict[str, Region] = {}
        """Of each group."""
        self.types: dict[str, str] = {}
        self.before: dict[str, str] = {}
        """The group whose bytes a group has taken over."""
        self.values: dict[str, Value] = {}
        """What each group has been written last."""
        self.versions: Counter[str] = Counter()
        self.tuples: dict[str, tuple[int, str]] = {}
        """The steps that return tuples, and the element types of these."""
        self.memories: dict[str, Memory] = {}
        self.heap = _Heap()
        self.steps: list[Step] = []
        self.given: list[Value] = []
        self.kept: list[Value] = []
        self.not_understood: Counter[str] = Counter()

    def plan(self) -> ForeignPlan:
        lent = [self.values[value.name] for value in self.given]
        return ForeignPlan(
            self.file,
            {**self.memories, _HEAP: Memory(self.heap.size, "temporary")},
            self.steps,
            self.given,
            list(dict.fromkeys([*self.kept, *lent])),
            ASSUMPTIONS,
            self.not_understood,
        )

    def take(self, body: Sequence[ast.stmt]) -> None:
        for item in body:
            match item:
                case ast.Assign(
                    targets=[ast.Tuple(elts=names)], value=ast.Name("args")
                ):
                    for name in names:
                        self._argument(_text(name))
                case ast.Assign(targets=[ast.Name(name)], value=value):
                    self._assign(name, value, item)
                case ast.Delete(targets=targets):
                    for target in targets:
                        self.names.pop(_text(target), None)
                    live = {tensor.block for tensor in self.names.values()}
                    self.heap.keep(live)
                case ast.Expr(value=ast.Call() as call):
                    self._call(call, item, [])
                case ast.With(body=inner):
                    self.take(inner)
                case ast.Return(value=value) if value is not None:
                    self.kept += self._read(value)
                case _:
                    self.not_understood["statements of other kinds"] += 1

    def _argument(self, name: str) -> None:
        """The caller has it, in bytes of its own."""
        if name not in self.shapes:
            self.not_understood["arguments without a shape"] += 1
            return
        shape = self.shapes[name]
        self.memories[name] = Memory(shape.bytes(), "argument")
        self._name(name, _Tensor(name, name, 0, shape.bytes(), shape.dtype))
        self.values[name] = Value(name, self.regions[name], shape.dtype, name)
        self.given.append(self.values[name])

    def _name(self, name: str, tensor: _Tensor) -> None:
        """A new group."""
        self.names[name] = tensor
        at = tensor.at
        memory = tensor.block
        if memory not in self.memories:
            memory, at = _HEAP, at + self.heap.offsets[tensor.block]
        self.regions[name] = Region(memory, at, tensor.size)
        self.types[name] = tensor.dtype

    def _assign(self, name: str, value: ast.expr, item: ast.stmt) -> None:
        line = self.lines[item.end_lineno - 1 if item.end_lineno else 0]
        is_new = line.endswith(("# reuse", "# alloc"))
        match value:
            case ast.Name(old):
                self._rename(name, self.names[old], is_new)
            case ast.Call(func=ast.Name(function), args=arguments) if (
                function == "reinterpret_tensor"
            ):
                self._rename(name, self._tensor(arguments[0]), is_new)
            case ast.Call(func=ast.Name(function), args=arguments) if (
                function == "alloc_from_pool"
            ):
                pool, at, dtype, shape, strides = arguments
                block = self.names[_text(pool)].block
                made = _Shape(_elements(shape, strides), _dtype(dtype))
                start = ast.literal_eval(at)
                self._name(name, _Tensor(block, name, start, made.bytes(), made.dtype))
            case ast.Call(func=ast.Name(function), args=arguments) if (
                function.startswith("empty_strided")
            ):
                shape, strides, dtype = arguments
                self._allocate(name, _Shape(_elements(shape, strides), _dtype(dtype)))
            case ast.Call():
                self._call(value, item, [name])
            case ast.Subscript(value=ast.Name(whole)):
                self._result(name, whole)
            case _:
                self.not_understood["expressions of other kinds"] += 1

    def _rename(self, name: str, old: _Tensor, is_new: bool) -> None:
        """An alias of the same contents, or a new tensor in the same bytes."""
        if is_new and old.block:
            self.before[name] = old.group
            self._name(name, old._replace(group=name))
        else:
            self.names[name] = old

    def _allocate(self, name: str, shape: "_Shape", dtype: str = "float32") -> None:
        self.heap.allocate(name, shape.bytes(dtype))
        size = shape.bytes(dtype)
        self._name(name, _Tensor(name, name, 0, size, shape.dtype or dtype))

    def _result(self, name: str, whole: str) -> None:
        """One of several results, which the function has allocated."""
        if name not in self.shapes or whole not in self.tuples:
            self.not_understood["results of unknown size"] += 1
            return
        number, dtype = self.tuples[whole]
        self._allocate(name, self.shapes[name], dtype)
        step = self.steps[number]
        new = self._write(name, step.operation, step.location)
        self.steps[number] = replace(step, writes=[*step.writes, *new])

    def _call(self, call: ast.Call, item: ast.stmt, results: Sequence[str]) -> None:
        function = _text(call.func)
        if function in _CHECKS:
            return
        pointers = self.kernels.get(function)
        use = self._kernel(pointers, call) if pointers else self._function(call)
        dtype = next((self._tensor(a).dtype for a in call.args), "float32")
        for name in results:
            if name not in self.shapes:
                self.tuples[name] = len(self.steps), dtype  # its parts follow
                continue
            self._allocate(name, self.shapes[name], dtype)
            use.written.append(name)
        in_place = {
            self.regions[group] for group in use.changed if group in self.regions
        }
        origin, place = self._origin(item.lineno), f"{self.file}:{item.lineno}"
        written = dict.fromkeys(use.written)
        writes = [v for group in written for v in self._write(group, origin, place)]

        def access(read: int, write: int) -> Access:
            region = use.reads[read].region
            if region == writes[write].region and region in in_place:
                return None
            return Unknown("the kernel may write it before it has read it")

        name = f"line {item.lineno}"
        operation = origin or function
        self.steps.append(Step(name, operation, use.reads, writes, place, access))

    def _kernel(self, pointers: Sequence[str], call: ast.Call) -> "_Use":
        """A kernel may read what it has written itself."""
        groups = [self._tensor(argument).group for argument in call.args]
        pairs = list(zip(pointers, groups, strict=False))
        written = [group for pointer, group in pairs if pointer != "in_ptr"]
        use = _Use([], written, [])
        for pointer, group in pairs:
            if pointer == "in_ptr" and group not in written:
                use.reads.extend(self._latest(group, is_read=True))
            elif pointer != "out_ptr":
                use.reads.extend(self._latest(group, is_read=False))
                use.changed.append(group)
        return use

    def _function(self, call: ast.Call) -> "_Use":
        """A function whose name ends with `_` changes its first operand."""
        outs = [k.value for k in call.keywords if k.arg == "out"]
        rest = [k.value for k in call.keywords if k.arg != "out"]
        written = [self._tensor(out).group for out in outs]
        changed: list[str] = []
        if not outs and re.search(r"[a-z]_(\.\w+)?$", _text(call.func)):
            changed = [self._tensor(call.args[0]).group]
        return _Use(self._read(*call.args, *rest), [*written, *changed], changed)

    def _origin(self, line: int) -> str:
        """The operations of PyTorch that a call computes: the comment before it."""
        found = _ORIGIN.search(self.lines[line - 2])
        return found[1] if found else ""

    def _read(self, *expressions: ast.expr) -> list[Value]:
        names = [
            node.id
            for expression in expressions
            for node in ast.walk(expression)
            if isinstance(node, ast.Name) and node.id in self.names
        ]
        groups = dict.fromkeys(self.names[name].group for name in names)
        return [v for group in groups for v in self._latest(group, is_read=True)]

    def _latest(self, group: str, is_read: bool) -> Sequence[Value]:
        """What a group holds; before its first write, what it takes over."""
        found = group
        while found not in self.values and found in self.before:
            found = self.before[found]
        if found in self.values:
            return [self.values[found]]
        is_known = is_read and group in self.regions
        return [Value(group, self.regions[group])] if is_known else []

    def _write(self, group: str, origin: str, place: str) -> Sequence[Value]:
        """A new value in all bytes of a group, under a name of its own."""
        if group not in self.regions:
            return ()
        self.versions[group] += 1
        number = self.versions[group]
        name = f"{group}#{number}" if number > 1 or group in self.memories else group
        value = Value(name, self.regions[group], self.types[group], origin, place)
        self.values[group] = value
        return [value]

    def _tensor(self, expression: ast.expr) -> _Tensor:
        """What an operand is: a name, or a view of one."""
        match expression:
            case ast.Name(name):
                return self.names.get(name, _NOTHING)
            case ast.Call(args=[base, *_]):
                return self._tensor(base)
            case _:
                return _NOTHING


class _Heap:
    """Blocks at the lowest addresses that are free when they are allocated."""

    def __init__(self) -> None:
        self.size = 0
        self.offsets: dict[str, int] = {}
        self._live: dict[str, tuple[int, int]] = {}

    def allocate(self, name: str, size: int) -> None:
        at = 0
        for begin, end in sorted(self._live.values()):
            if begin - at >= size:
                break
            at = max(at, -(-end // ALIGNMENT) * ALIGNMENT)
        self.offsets[name] = at
        self._live[name] = at, at + size
        self.size = max(self.size, at + size)

    def keep(self, names: Iterable[str]) -> None:
        """Frees the others."""
        self._live = {n: place for n, place in self._live.items() if n in names}


def _kernels(module: ast.Module) -> Iterator[tuple[str, Sequence[str]]]:
    """What each kernel does with its pointers, in the order of its parameters."""
    for item in module.body:
        match item:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(args=arguments)):
                for argument in arguments:
                    if isinstance(argument, ast.Constant):
                        code = str(argument.value).partition("kernel(")[2]
                        found = _POINTER.findall(code.partition(")")[0])
                        if found:
                            yield name, found
            case _:
                pass


def _shapes(module: ast.Module) -> Mapping[str, _Shape]:
    """Of the names that the code asserts, or fills with numbers to run it alone."""
    asserted: dict[str, _Shape] = {}
    made: dict[str, _Shape] = {}
    for node in ast.walk(module):
        match node:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name("assert_size_stride"),
                    args=[ast.Name(name), shape, strides, *_],
                )
            ):
                asserted[name] = _Shape(_elements(shape, strides), "")
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(
                    func=ast.Name("rand_strided"), args=[shape, strides], keywords=named
                ),
            ):
                [dtype] = [_dtype(k.value) for k in named if k.arg == "dtype"]
                made[name] = _Shape(_elements(shape, strides), dtype)
            case _:
                pass
    return asserted | made


def _elements(shape: ast.expr, strides: ast.expr) -> int:
    """From the first to the last one in memory."""
    sizes, steps = ast.literal_eval(shape), ast.literal_eval(strides)
    last = sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
    return last + 1 if prod(sizes) else 0


def _dtype(expression: ast.expr) -> str:
    return _text(expression).removeprefix("torch.")


def _text(expression: ast.expr) -> str:
    return ast.unparse(expression)
