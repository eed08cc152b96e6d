"""Declarations in Inductor's code: kernels, sizes, functions, examples of arguments.

    code = Code(module, lines, path)
    code.shapes["buf3"], code.kernels["triton_poi_fused_add_0"], code.parts("buf5")

Sizes of tensors are those that the code asserts, or uses to run itself with example
arguments. Sizes that depend on the inputs are those of the examples.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import NamedTuple

from ...planning import round_up
from ...support.foreign_plan import ForeignPlanError
from .elements import element_width
from .inductor_kernels import kernels

_ORIGIN = re.compile(r"Original ATen: \[(.*)\]")
_STREAM = re.compile(r"\s*\w+ = get_(raw|cuda)_stream\(")
_ALIGNMENT = 64  # bytes, of tensors in pools
_EXAMPLES = ("get_args", "benchmark_compiled_module")


class Shape(NamedTuple):
    extent: int  # number of elements from the first to the last one in memory
    elements: int  # number of these that belong to the tensor
    dtype: str  # empty if unknown


class SizeOfData(ValueError):
    """A size that depends on data; the code has no example of it."""


class Code:
    """The declarations in the code of a module."""

    def __init__(self, module: ast.Module, lines: Sequence[str], path: Path):
        self.path = path
        self.lines = lines
        self.kernels = kernels(module)
        self.numbers = dict(_numbers(module))
        """The integers among the example arguments, by name."""
        self.shapes = _shapes(module, self.numbers)
        self.devices = dict(_devices(module))
        """The devices of the example arguments."""
        self.items = _items(module)
        """The names of items of tuples, by the name of the tuple and the index."""
        self.functions = _functions(module)
        self.globals = {*dir(builtins), *_globals(module)}

    def shape(self, sizes: ast.expr, strides: ast.expr, dtype: str = "") -> Shape:
        return _shape(sizes, strides, self.numbers, dtype)

    def parts(self, name: str) -> Mapping[str, str]:
        """The names of the items of a tuple, by index."""
        return {key: part for (whole, key), part in self.items.items() if whole == name}

    def refusal(self, what: str, node: ast.stmt | ast.expr) -> ForeignPlanError:
        place = f"{self.path}:{node.lineno}:{node.col_offset + 1}"
        return ForeignPlanError(f"this is not Inductor's output code: {what}", place)

    def origin(self, line: int) -> str:
        """The operations of PyTorch that a call computes, from a comment before it."""
        line -= 2
        while line > 0 and _STREAM.match(self.lines[line]):
            line -= 1
        found = _ORIGIN.search(self.lines[line])
        return found[1] if found else ""


def _numbers(module: ast.Module) -> Iterator[tuple[str, int]]:
    """The integers among the example arguments, with all names for them."""
    examples: dict[str, int] = {}
    names: list[tuple[str, str]] = []
    for function in ast.walk(module):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            match node:
                case ast.Assign(
                    targets=[ast.Name(name)], value=ast.Constant(int(number))
                ) if function.name in _EXAMPLES:
                    examples[name] = number
                case ast.Assign(targets=[ast.Name(name)], value=ast.Name(old)):
                    names.append((name, old))
                case _:
                    pass
    yield from examples.items()
    yield from ((name, examples[old]) for name, old in names if old in examples)


def _shapes(module: ast.Module, numbers: Mapping[str, int]) -> Mapping[str, Shape]:
    """The shapes that the code asserts, or that it uses for example arguments."""
    asserted: dict[str, Shape] = {}
    made: dict[str, Shape] = {}
    for node in ast.walk(module):
        with suppress(ValueError, LookupError, TypeError):  # a size is unknown
            match node:
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Name("assert_size_stride"),
                        args=[ast.Name(name), sizes, strides, *_],
                    )
                ):
                    asserted[name] = _shape(sizes, strides, numbers)
                case ast.Assign(
                    targets=[ast.Name(name)],
                    value=ast.Call(
                        func=ast.Name("rand_strided"),
                        args=[sizes, strides],
                        keywords=named,
                    ),
                ):
                    [dtype] = [dtype_of(k.value) for k in named if k.arg == "dtype"]
                    made[name] = _shape(sizes, strides, numbers, dtype)
                case _:
                    pass
    shapes = asserted | made
    for node in ast.walk(module):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Name(old)) if (
                name in shapes
            ):
                shapes.setdefault(old, shapes[name])  # the same tensor
            case _:
                pass
    return shapes


def _devices(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(module):
        match node:
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Name("rand_strided"), keywords=named),
            ):
                for keyword in named:
                    if keyword.arg == "device":
                        yield name, str(ast.literal_eval(keyword.value))
            case _:
                pass


def _items(module: ast.Module) -> Mapping[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for node in ast.walk(module):
        match node:
            case ast.Assign(
                targets=[ast.Name(part)],
                value=ast.Subscript(value=ast.Name(whole), slice=key),
            ):
                found[whole, text_of(key)] = part
            case _:
                pass
    return found


def _globals(module: ast.Module) -> Iterator[str]:
    """The names that are defined outside of functions."""
    for item in module.body:
        match item:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((each.asname or each.name).split(".")[0] for each in names)
            case _:
                for node in ast.walk(item):
                    if isinstance(node, ast.Name):
                        yield node.id


def _functions(module: ast.Module) -> Mapping[str, Sequence[ast.stmt]]:
    """The bodies of functions of the program, by the expressions that call them."""
    bodies: dict[str, Sequence[ast.stmt]] = {
        item.name: item.body
        for item in module.body
        if isinstance(item, ast.FunctionDef)
    }
    for node in ast.walk(module):
        match node:
            case ast.keyword(arg="partitions", value=ast.List(elts=functions)):
                for number, function in enumerate(functions):
                    body = bodies.get(text_of(function), ())
                    bodies[f"self.partitions[{number}]"] = body
            case _:
                pass
    return bodies


def _shape(
    sizes: ast.expr, strides: ast.expr, numbers: Mapping[str, int], dtype: str = ""
) -> Shape:
    if not isinstance(sizes, ast.Tuple) or not isinstance(strides, ast.Tuple):
        raise ValueError
    pairs = [
        (number_in(size, numbers), number_in(step, numbers))
        for size, step in zip(sizes.elts, strides.elts, strict=True)
    ]
    if min((n for pair in pairs for n in pair), default=0) < 0:
        raise ValueError
    if not prod(size for size, _ in pairs):
        return Shape(0, 0, dtype)
    last = sum((size - 1) * step for size, step in pairs)
    return Shape(last + 1, prod(size for size, step in pairs if step), dtype)


def size_of(shape: Shape) -> int:
    if (width := element_width(shape.dtype or "float32")) is None:
        raise ValueError
    return shape.extent * width


def number_in(expression: ast.expr, numbers: Mapping[str, int]) -> int:
    """The value of an integer expression; `numbers` are the values of names."""
    match expression:
        case ast.Constant(int(number)):
            return number
        case ast.Name(name) if name not in numbers:
            raise SizeOfData
        case ast.Name(name):
            return numbers[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -number_in(operand, numbers)
        case ast.BinOp(left=left, op=op, right=right):
            pair = number_in(left, numbers), number_in(right, numbers)
            return _arithmetic(op, *pair)
        case ast.Call(func=ast.Name("max" | "min" as name), args=operands):
            found = [number_in(operand, numbers) for operand in operands]
            return max(found) if name == "max" else min(found)
        case ast.Call(func=ast.Name("align"), args=[operand]):
            return round_up(number_in(operand, numbers), _ALIGNMENT)
        case _:
            raise ValueError


def _arithmetic(op: ast.operator, left: int, right: int) -> int:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right:
            return left // right
        case ast.Mod() if right:
            return left % right
        case _:
            raise ValueError


def dtype_of(expression: ast.expr) -> str:
    return text_of(expression).removeprefix("torch.")


def text_of(expression: ast.expr) -> str:
    return ast.unparse(expression)
