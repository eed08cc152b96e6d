"""Kernels of elementwise operations, alone and in loops of many.

A loop is computed tile by tile: all its operations on one part of the result's
elements, then all on the next, so that intermediate values stay in the cache. An
intermediate value lives in the result's memory while that is not needed otherwise, or
in a tile of the workspace, which is reused after the last use of the value. A single
operation is a loop of one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from ....dialects.diagnostics import LocatedError
from ....dialects.dtypes import Array, DType, numpy_dtype
from ....dialects.tgraph.base import Shape, TensorOp, value_element
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.formulas import ANY, FORMULAS, NoForm, Scalars
from ....dialects.tgraph.terms import Term
from ....support.arrays import strided
from ...calls import Call
from ...pool import Scratch
from ..arrays import tiles
from .base import check_types, kernel
from .forms import (
    COMPARISONS,
    FORMS,
    TILE,
    Emit,
    Operand,
    by_ufunc,
    converted,
    copied,
    recast,
    selected,
)


@dataclass(frozen=True)
class Instruction:
    """Computes one value of a body from others, all identified by their SSA values."""

    op: TensorOp
    operands: Sequence[SSAValue]
    result: SSAValue


@dataclass
class Body:
    """A loop that computes the result of its last instruction.

    `leaves` are values that are read from arrays of the result's shape, `splats` are
    constant numbers; each instruction computes one more value.
    """

    leaves: dict[SSAValue, Array]
    splats: dict[SSAValue, Array]
    instructions: Sequence[Instruction]


@kernel(ElementwiseOp)
def single(
    op: TensorOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    leaves = dict(zip(op.inputs, inputs, strict=True))
    (result,) = op.outs or op.res
    body = Body(leaves, {}, [Instruction(op, op.inputs, result)])
    return loop(body, outs[0], scratch)


def loop(body: Body, out: Array, scratch: Scratch) -> list[Call]:
    """The calls that compute `body` into `out`, tile by tile."""
    out, *leaves = merge_dimensions([out, *body.leaves.values()])
    program = UfuncProgram(list(body.leaves), body.splats, body.instructions)
    limit = out.size if program.is_one_ufunc else min(out.size, TILE)
    registers = Registers(scratch, limit)
    calls: list[Call] = []
    for tile in tiles(out.shape, limit):
        parts = [leaf[*tile, ...] for leaf in leaves]
        calls += program.compile_tile(parts, out[*tile, ...], registers)
    return calls


@dataclass(frozen=True)
class _Step:
    """One form, applied to numbered values."""

    emit: Emit
    dtype: DType
    operands: Sequence[int]
    result: int


class UfuncProgram(Scalars[int]):
    """Instructions in terms of NumPy's functions. Values are numbered, leaves first."""

    FORMS = FORMS
    DIVISION_TRAPS = False

    def __init__(
        self,
        leaves: Sequence[SSAValue],
        splats: Mapping[SSAValue, Array],
        instructions: Sequence[Instruction],
    ):
        self.is_one_ufunc = not splats
        self._op: TensorOp | None = None  # the operation that is being written
        self._steps: list[_Step] = []
        self._constants: dict[int, Operand] = {}
        self._count = 0
        values = {value: self._named(value_element(value)) for value in leaves}
        for value, x in splats.items():
            values[value] = self._number(x, value_element(value))
        for instruction in instructions:
            operands = [values[value] for value in instruction.operands]
            values[instruction.result] = self._written(instruction.op, operands)
        last = values[instructions[-1].result]
        if not self._steps or self._steps[-1].result != last.value:
            self._add(copied, last.element, last)
        self.is_one_ufunc &= len(self._steps) == 1
        self._dying = self._last_uses()

    # Writing

    def _written(self, op: TensorOp, operands: Sequence[Term[int]]) -> Term[int]:
        self._op = op
        try:
            return self.result(op, *operands)
        except NoForm:
            pass
        if type(op) not in FORMS and type(op) not in FORMULAS:
            raise LocatedError(f"{op.name} has no kernel", op)
        names = ", ".join(str(numpy_dtype(x.element, op)) for x in operands)
        raise LocatedError(f"{op.name} is not defined on elements of type {names}", op)

    def _named(self, element: Attribute) -> Term[int]:
        self._count += 1
        return Term(self, self._count - 1, element)

    def _number(self, number: Array, element: Attribute) -> Term[int]:
        term = self._named(element)
        self._constants[term.value] = Operand(number, number)
        return term

    def _add(
        self, form: np.ufunc | Emit, element: Attribute, *terms: Term[int]
    ) -> Term[int]:
        """Appends a step. Raises `LocatedError` for types that a ufunc lacks."""
        elements = [*(term.element for term in terms), element]
        dtypes = [numpy_dtype(x, self._op) for x in elements]
        if isinstance(form, np.ufunc):
            assert self._op is not None
            check_types(self._op, form, *dtypes)
            emit = by_ufunc(form)
        else:
            self.is_one_ufunc = False
            emit = form
        result = self._named(element)
        operands = [term.value for term in terms]
        self._steps.append(_Step(emit, dtypes[-1], operands, result.value))
        return result

    def constant(self, number: float, like: Term[int]) -> Term[int]:
        array = np.array(number).astype(numpy_dtype(like.element))
        return self._number(array, like.element)

    def write(self, form: Any, *terms: Term[int]) -> Term[int]:
        return self._add(form, terms[-1].element, *terms)

    def compare(self, direction: str, x: Term[int], y: Term[int]) -> Term[int]:
        return self._add(COMPARISONS[direction], i1, x, y)

    def select(self, condition: Term[int], x: Term[int], y: Term[int]) -> Term[int]:
        return self.write(selected, condition, x, y)

    def convert(self, x: Term[int], element: Attribute) -> Term[int]:
        return self._add(converted, element, x)

    def recast(self, x: Term[int], element: Attribute) -> Term[int]:
        return self._add(recast, element, x)

    def parts(
        self, kind: type[ElementwiseOp], element: Attribute, *terms: Term[int]
    ) -> Term[int]:
        return self._add(FORMS[kind][ANY], element, *terms)

    def quotient(self, x: Term[int], y: Term[int]) -> Term[int]:
        return self.write(np.floor_divide, x - self.remainder(x, y), y)

    def remainder(self, x: Term[int], y: Term[int]) -> Term[int]:
        return self.write(np.fmod, x, y)

    def power(self, x: Term[int], y: Term[int]) -> Term[int]:
        return self.write(np.power, x, y)

    def shift(
        self, kind: type[ElementwiseOp], x: Term[int], amount: Term[int]
    ) -> Term[int]:
        return self.apply(kind, x, amount)

    # Compiling

    def _last_uses(self) -> Sequence[Sequence[int]]:
        """For each step, the results of other steps that no later step reads."""
        computed = {step.result for step in self._steps}
        dying: list[Sequence[int]] = []
        for step in reversed(self._steps):
            last = [n for n in dict.fromkeys(step.operands) if n in computed]
            computed.difference_update(last)
            dying.append(last)
        return dying[::-1]

    def compile_tile(
        self, leaves: Sequence[Array], out: Array, registers: "Registers"
    ) -> list[Call]:
        """The calls for one tile. `leaves` and `out` are parts of the arrays."""
        values = dict(enumerate(map(Operand, leaves))) | self._constants
        calls: list[Call] = []
        temporaries: list[Array] = []

        def temporary(dtype: DType) -> Array:
            temporaries.append(registers.take(out.shape, dtype))
            return temporaries[-1]

        usable = self._first_use_of(out, leaves)
        free: list[Array] = []
        for number, step in enumerate(self._steps):
            free += [values[n].array for n in self._dying[number]]
            if number == usable:
                free.append(out)
            same = [i for i, x in enumerate(free) if x.dtype == step.dtype]
            if number == len(self._steps) - 1:
                target = out
            elif same:
                target = free.pop(same[0])
            else:
                target = registers.take(out.shape, step.dtype)
            calls += step.emit([values[n] for n in step.operands], target, temporary)
            values[step.result] = Operand(target)
            for array in (*free, *temporaries):
                if array is not out:
                    registers.release(array)
            free = [array for array in free if array is out]
            temporaries.clear()
        return calls

    def _first_use_of(self, out: Array, leaves: Sequence[Array]) -> int:
        """The first step that may write the result's memory, after all reads of leaves
        in that memory; the last step if the elements are not contiguous."""
        last = len(self._steps) - 1
        if out.ndim and out.strides[-1] != out.itemsize:
            return last
        shared = {n for n, x in enumerate(leaves) if np.may_share_memory(x, out)}
        readers = (i for i, s in enumerate(self._steps) if shared & {*s.operands})
        return max(readers, default=0)


class Registers:
    """Tiles of the workspace, each of up to `elements` elements."""

    def __init__(self, scratch: Scratch, elements: int):
        self._scratch = scratch
        self._elements = elements
        self._free: dict[int, list[Array]] = {}
        self._buffers: dict[int, Array] = {}  # by the id of the array in each

    def take(self, shape: Shape, dtype: DType) -> Array:
        free = self._free.setdefault(dtype.itemsize, [])
        if free:
            buffer = free.pop()
        else:
            raw = np.dtype(f"V{dtype.itemsize}")
            buffer = self._scratch.take((self._elements,), raw)
        array = np.ndarray(shape, dtype, buffer)
        self._buffers[id(array)] = buffer
        return array

    def release(self, array: Array) -> None:
        """Returns an array from `take` to the free tiles."""
        self._free[array.itemsize].append(self._buffers.pop(id(array)))


def merge_dimensions(arrays: Sequence[Array]) -> list[Array]:
    """Views of arrays of one shape with as few dimensions as possible.

    The dimensions are ordered by the first array's strides, the largest first.
    """
    first = arrays[0]
    order = sorted(
        (d for d, size in enumerate(first.shape) if size != 1),
        key=lambda d: -abs(first.strides[d]),
    )
    groups: list[list[int]] = []
    for d in order:
        if groups and all(
            a.strides[groups[-1][-1]] == a.strides[d] * a.shape[d] for a in arrays
        ):
            groups[-1].append(d)
        else:
            groups.append([d])
    shape = [prod(first.shape[d] for d in group) for group in groups]
    return [strided(a, shape, [a.strides[g[-1]] for g in groups]) for a in arrays]
