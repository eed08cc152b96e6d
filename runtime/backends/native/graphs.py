"""Represents an operation or a fusion as a graph over one iteration space.

The space has the shape of the result, or of the operand of reductions. Each node of the
graph is the element at an index of the space. It is read from an array, with stride
zero along dimensions that it does not depend on, or computed from other nodes, or
reduced over the space's reduced dimensions. Transposes, slices, reshapes and broadcasts
of arrays become strides; within the graph, they only rename dimensions. Integers of an
iota are counted: they are computed from the indices of loops. A scatter has the space
of its updates; its root is not an element but combines elements with others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.dtypes import Array, DType, constant, numpy_dtype
from ....dialects.tgraph import shaping
from ....dialects.tgraph.base import AnyTensor, Shape, TensorOp
from ....dialects.tgraph.elementwise import CompareOp, ElementwiseOp
from ....dialects.tgraph.indexing import GatherOp, ScatterOp
from ....dialects.tgraph.reducing import ReduceOp
from ....support.arrays import address, strided
from ..arrays import iota, viewed
from ..numpy.functions import Starts
from ..numpy.indexing import starts_of
from .code import Number
from .elements import has_registers, number_of

Mapped: TypeAlias = tuple[int | None, ...]
"""The space's dimension for each dimension of a value; None for those of size 1."""


class NoLoopNest(Exception):
    """There is no loop nest, or none that pays; another kernel must be used."""


@dataclass(eq=False)
class ElementNode:
    dtype: DType
    op: TensorOp | None = None
    """None for constants, and for elements that are read from an array."""
    operands: Sequence["ElementNode"] = ()
    number: Number | None = None
    """The element of a constant."""
    array: int = -1
    """The index of the array that is read."""
    count: int = -1
    """The index of the count that is the element."""
    starts: Sequence[tuple[int, int]] = ()
    """For a gather from the array at the indices `operands`: for each operand the
    largest start, and the stride in bytes. For a scatter to the array: the same for the
    indices, which are the operands after the update."""
    dims: frozenset[int] = frozenset()
    """The loops (see `LoopNest`) that it depends on."""
    stage: int = 0
    """The number of consecutive reductions that must precede it."""

    @property
    def is_reduction(self) -> bool:
        return isinstance(self.op, ReduceOp)

    @property
    def is_scatter(self) -> bool:
        return isinstance(self.op, ScatterOp)


class Count(NamedTuple):
    """Elements that are numbers: `first`, plus the index along each dimension of the
    space times its step."""

    first: int
    steps: Shape

    def after(self, dim: int, start: int) -> "Count":
        """The count from index `start` along `dim` on."""
        return Count(self.first + start * self.steps[dim], self.steps)


@dataclass
class ElementGraph:
    """A graph. `arrays` are views with the space's dimensions; the last is the
    output."""

    shape: Shape
    reduced: frozenset[int]
    root: ElementNode
    arrays: list[Array] = field(default_factory=list[Array])
    nodes: list[ElementNode] = field(default_factory=list[ElementNode])
    """Operands before users; `root` is the last."""

    wholes: list[Array] = field(default_factory=list[Array])
    """The arrays that elements are gathered from, or scattered to; `arrays` has windows
    of them."""

    order: Shape | None = None
    """The order of the dimensions of loops, if it matters."""

    counts: Sequence[Count] = ()
    """The counts that are elements. They lie in no array."""

    @property
    def placed(self) -> Mapping[int, frozenset[int]]:
        """The arrays that elements are gathered from, or scattered to, each with the
        loops (see `LoopNest`) that determine the indices."""
        return {
            node.array: frozenset[int]().union(*(x.dims for x in node.operands))
            for node in self.nodes
            if node.starts or node.is_scatter
        }


def graph_of(
    ops: Mapping[SSAValue, TensorOp],
    result: SSAValue,
    arrays: Mapping[SSAValue, Array],
    out: Array,
) -> ElementGraph:
    """The graph of `result`, computed from `arrays` by `ops`, which each define a
    value.

    Raises `NoLoopNest` if there is no such graph.
    """
    return _Builder(ops, dict(arrays)).graph(result, out)


def by_result(ops: Sequence[TensorOp]) -> dict[SSAValue, TensorOp]:
    return {(op.results or op.outs)[0]: op for op in ops}


def views(
    ops: Sequence[TensorOp], arrays: Mapping[SSAValue, Array]
) -> Mapping[SSAValue, Array]:
    """The values that need no computation: `arrays`, and views of them."""
    return _Builder(by_result(ops), dict(arrays)).arrays


class _Builder:
    def __init__(self, ops: Mapping[SSAValue, TensorOp], arrays: dict[SSAValue, Array]):
        self._ops = ops
        self.arrays = arrays
        self._splats: dict[SSAValue, Number] = {}
        self._counted: dict[SSAValue, Array] = {}
        """For views of integers that an iota counts, the array that starts with 0."""
        reductions = [op for op in ops.values() if isinstance(op, ReduceOp)]
        for value, op in self._ops.items():
            self._read_ahead(value, op)
        self._shape: Shape = ()
        self._reduced: frozenset[int] = frozenset()
        if reductions:
            self._shape = _shape(reductions[0].inputs[0])
            self._reduced = frozenset(reductions[0].dimensions.get_values())
        self._nodes: dict[tuple[SSAValue, Mapped], ElementNode] = {}
        self._views: list[Array] = []
        self._wholes: list[Array] = []
        self._counts: list[Count] = []

    def graph(self, result: SSAValue, out: Array) -> ElementGraph:
        op = self._ops.get(result)
        if isinstance(op, ScatterOp):
            return self._scattered(op, out)
        if not self._reduced:
            self._shape = out.shape
        identity = tuple(range(len(self._shape)))
        if out.shape == self._shape:
            mapped: Mapped = identity
        else:
            kept = tuple(d for d in identity if d not in self._reduced)
            mapped = _matched(out.shape, [self._shape[d] for d in kept], kept)
        if isinstance(op, ElementwiseOp | ReduceOp):
            # If computed in place, the result is also a key of `arrays`.
            root = self._computed(op, mapped)
        else:
            root = self._node(result, mapped)
        self._views.append(self._in_space(out, mapped))
        return self._graph(root)

    def _graph(self, root: ElementNode, order: Shape | None = None) -> ElementGraph:
        made = (*self._nodes.values(), root)
        read = (n for node in made for n in (*node.operands, node))
        nodes = [node for node in dict.fromkeys(read) if node is not root]
        return ElementGraph(
            self._shape,
            self._reduced,
            root,
            self._views,
            [*nodes, root],
            self._wholes,
            order,
            self._counts,
        )

    def _scattered(self, op: ScatterOp, out: Array) -> ElementGraph:
        """The graph of a scatter into `out`, which has the elements of its operand."""
        _, vectors, updates = op.inputs
        is_extreme = op.kind.data in ("maximum", "minimum")
        if self._reduced or (is_extreme and out.dtype.kind == "c"):
            raise NoLoopNest
        self._shape = _shape(updates)
        identity = tuple(range(len(self._shape)))
        update = self._node(updates, identity)
        entries, places, at = self._indexed(op, vectors, identity, out)
        sizes = [1 if d is None else self._shape[d] for d in places]
        window, steps = _windows(out, at, sizes)
        self._views.append(self._in_space(window, places))
        self._wholes.append(out)
        number = len(self._views) - 1
        root = ElementNode(
            update.dtype, op, [update, *entries], array=number, starts=steps
        )
        numbers = op.dimension_numbers
        return self._graph(root, (*numbers.batch(len(identity)), *numbers.window))

    def _read_ahead(self, value: SSAValue, op: TensorOp) -> None:
        """Records arrays and constants that need no computation."""
        if isinstance(op, ElementwiseOp | ReduceOp):
            return
        dtype, shape = _dtype(value), _shape(value)
        if isinstance(op, shaping.ConstantOp | shaping.FullLikeOp):
            elements = constant(op.value, dtype)
            if elements.ndim:
                self.arrays[value] = elements
            else:
                self._splats[value] = number_of(elements)
        elif isinstance(op, shaping.IotaOp):
            self.arrays[value] = iota(op, shape, dtype)
            if dtype.kind in "iu":
                self._counted[value] = self.arrays[value]
        elif isinstance(op, _VIEWS) and op.inputs[0] in self._splats:
            self._splats[value] = self._splats[op.inputs[0]]
        elif isinstance(op, _VIEWS) and op.inputs[0] in self.arrays:
            view = viewed(op, self.arrays[op.inputs[0]], shape)
            if view is not None:
                self.arrays[value] = view
                if op.inputs[0] in self._counted:
                    self._counted[value] = self._counted[op.inputs[0]]

    def _node(self, value: SSAValue, mapped: Mapped) -> ElementNode:
        """The node of `value`, with its dimensions in the space."""
        waiting = [(value, mapped)]  # not recursive, as chains may have any length
        while waiting:
            missing = [k for k in self._operands(*waiting[-1]) if k not in self._nodes]
            if missing:
                waiting += reversed(missing)
                continue
            key = waiting.pop()
            if key not in self._nodes:
                self._nodes[key] = self._made(*key)
        return self._nodes[value, mapped]

    def _operands(
        self, value: SSAValue, mapped: Mapped
    ) -> Sequence[tuple[SSAValue, Mapped]]:
        """The operands of a value's node, with their dimensions in the space."""
        op = self._ops.get(value)
        if op is None or value in self._splats or value in self.arrays:
            return ()
        if isinstance(op, ElementwiseOp):
            return [(x, mapped) for x in op.inputs]
        operand = op.inputs[0]
        if isinstance(op, ReduceOp):
            return [(operand, tuple(range(len(_shape(operand)))))]
        if isinstance(op, _VIEWS):
            return [(operand, _mapped_through(op, _shape(operand), mapped))]
        if isinstance(op, GatherOp):
            return self._computed_entries(op, mapped)
        return ()

    def _made(self, value: SSAValue, mapped: Mapped) -> ElementNode:
        if value in self._splats:
            return ElementNode(_dtype(value), number=self._splats[value])
        if value in self.arrays:
            array = self.arrays[value]
            if not has_registers(array.dtype):
                raise NoLoopNest
            seen = self._in_space(array, mapped)
            if value in self._counted:
                self._counts.append(_count(seen, self._counted[value]))
                return ElementNode(array.dtype, count=len(self._counts) - 1)
            self._views.append(seen)
            return ElementNode(array.dtype, array=len(self._views) - 1)
        if value not in self._ops:
            raise NoLoopNest
        return self._computed(self._ops[value], mapped)

    def _computed(self, op: TensorOp, mapped: Mapped) -> ElementNode:
        dtype = _dtype((op.results or op.outs)[0])
        if not has_registers(dtype):
            raise NoLoopNest
        if isinstance(op, ElementwiseOp):
            operands = [self._node(x, mapped) for x in op.inputs]
            return ElementNode(
                dtype, op, operands, stage=max(x.stage for x in operands)
            )
        if isinstance(op, ReduceOp):
            return self._reduction(op, dtype, mapped)
        if isinstance(op, GatherOp):
            return self._gathered(op, dtype, mapped)
        if isinstance(op, _VIEWS):
            operand = op.inputs[0]
            shape = _shape(operand)
            return self._node(operand, _mapped_through(op, shape, mapped))
        raise NoLoopNest

    def _reduction(self, op: ReduceOp, dtype: DType, mapped: Mapped) -> ElementNode:
        shape = _shape(op.inputs[0])
        kept = [d for d in range(len(shape)) if d not in self._reduced]
        same = all(
            to == d or shape[d] == 1 for to, d in zip(mapped, kept, strict=False)
        )
        dims = frozenset(op.dimensions.get_values())
        has_form = dtype.kind != "c" or op.kind.data == "add"
        if shape != self._shape or dims != self._reduced or not same or not has_form:
            raise NoLoopNest
        operand = self._node(op.inputs[0], tuple(range(len(shape))))
        return ElementNode(dtype, op, [operand], stage=operand.stage + 1)

    def _gathered(self, op: GatherOp, dtype: DType, mapped: Mapped) -> ElementNode:
        """An element that is read from an array at indices from another array, or at
        computed indices."""
        source, vectors = op.inputs
        if source not in self.arrays:
            raise NoLoopNest
        whole = self.arrays[source]
        entries, places, at = self._indexed(op, vectors, mapped, whole)
        window, steps = _windows(whole, at, op.slice_sizes.get_values())
        self._views.append(self._in_space(window, places))
        self._wholes.append(whole)
        number = len(self._views) - 1
        stage = max((entry.stage for entry in entries), default=0)
        return ElementNode(
            dtype, operands=entries, array=number, starts=steps, stage=stage
        )

    def _indexed(
        self, op: GatherOp | ScatterOp, vectors: SSAValue, mapped: Mapped, whole: Array
    ) -> tuple[list[ElementNode], Mapped, Starts]:
        """The entries of the index vectors, and the space's dimensions for those of
        `whole`. `mapped` are those of the slices."""
        indices, numbers = self.arrays.get(vectors), op.dimension_numbers
        at = starts_of(op, _placeholder(vectors) if indices is None else indices)
        along = _batch(op, mapped)
        within = iter([mapped[d] for d in sorted(numbers.window)])
        places = [
            along[at.batching[d]]
            if d in at.batching
            else None
            if d in numbers.omitted
            else next(within)
            for d in range(whole.ndim)
        ]
        entries = [self._node(*entry) for entry in self._computed_entries(op, mapped)]
        for entry in at.entries if indices is not None else ():
            if not has_registers(entry.dtype):
                raise NoLoopNest
            self._views.append(self._in_space(entry, along))
            entries.append(ElementNode(entry.dtype, array=len(self._views) - 1))
        return entries, tuple(places), at

    def _computed_entries(
        self, op: GatherOp | ScatterOp, mapped: Mapped
    ) -> Sequence[tuple[SSAValue, Mapped]]:
        """The values of which each has one entry of all index vectors, with their
        dimensions in the space; empty if the indices are an array."""
        vectors = op.inputs[1]
        if vectors in self.arrays:
            return ()
        dim, parts = op.index_vector_dim.value.data, [vectors]
        if isinstance(join := self._ops.get(vectors), shaping.ConcatenateOp):
            if join.dimension.value.data != dim:
                raise NoLoopNest
            parts = join.inputs
        if any((*_shape(part), 1)[dim] != 1 for part in parts):
            raise NoLoopNest
        along = list(_batch(op, mapped))
        if dim < len(_shape(vectors)):
            along.insert(dim, None)
        return [(part, tuple(along)) for part in parts]

    def _in_space(self, array: Array, mapped: Mapped) -> Array:
        strides = [0] * len(self._shape)
        for size, stride, dim in zip(array.shape, array.strides, mapped, strict=True):
            if size > 1 and dim is not None:
                strides[dim] = stride
        return strided(array, self._shape, strides)


def _count(view: Array, zero: Array) -> Count:
    """The count of a view of the numbers from `zero` on."""
    size = view.itemsize
    first = (address(view) - address(zero)) // size
    return Count(first, tuple(step // size for step in view.strides))


def _batch(op: GatherOp | ScatterOp, mapped: Mapped) -> Mapped:
    """The space's dimensions of the index vectors, if those of the slices are
    `mapped`."""
    return tuple(mapped[d] for d in op.dimension_numbers.batch(len(mapped)))


def _windows(
    whole: Array, at: Starts, sizes: Sequence[int]
) -> tuple[Array, list[tuple[int, int]]]:
    """The first window of `whole`, with all of its batching dimensions; and for each
    entry of an index vector the largest start, and the stride in bytes."""
    window = whole[
        *(
            slice(None) if d in at.batching else slice(size)
            for d, size in enumerate(sizes)
        ),
        ...,  # or NumPy would copy the only element
    ]
    return window, [(whole.shape[d] - sizes[d], whole.strides[d]) for d in at.dims]


def _placeholder(value: SSAValue) -> Array:
    """An array of the value's type without elements of its own."""
    return np.broadcast_to(np.zeros((), _dtype(value)), _shape(value))


def _shape(value: SSAValue) -> Shape:
    return cast(AnyTensor, value.type).get_shape()  # or a memref, which has it too


def _dtype(value: SSAValue) -> DType:
    return numpy_dtype(cast(AnyTensor, value.type).element_type)


_VIEWS = (shaping.ViewOp, shaping.DeviceCopyOp)


def _mapped_through(op: TensorOp, shape: Shape, mapped: Mapped) -> Mapped:
    """The operand's dimensions in the space, if the result's are `mapped`."""
    match op:
        case shaping.DeviceCopyOp():
            return mapped
        case shaping.BroadcastInDimOp():
            dims = op.broadcast_dimensions.get_values()
            return tuple(
                mapped[d] if size > 1 else None
                for size, d in zip(shape, dims, strict=True)
            )
        case shaping.TransposeOp():
            order = op.permutation.get_values()
            return tuple(mapped[order.index(d)] for d in range(len(order)))
        case shaping.ReshapeOp():
            return _matched(shape, op.declared[0].get_shape(), mapped)
        case _:
            raise NoLoopNest


def _matched(shape: Shape, like: Sequence[int], mapped: Mapped) -> Mapped:
    """The map for a shape that differs from `like` only by dimensions of size 1."""
    long = [(size, to) for size, to in zip(like, mapped, strict=True) if size != 1]
    if [size for size, _ in long] != [size for size in shape if size != 1]:
        raise NoLoopNest
    rest: Iterator[int | None] = iter([to for _, to in long])
    return tuple(None if size == 1 else next(rest) for size in shape)


def description(node: ElementNode) -> str:
    """The operation's name with the properties that affect its value."""
    if isinstance(node.op, CompareOp):
        return f"compare {node.op.direction.data}"
    if isinstance(node.op, ReduceOp):
        return f"reduce {node.op.kind.data}"
    if isinstance(node.op, ScatterOp):
        return f"scatter {node.op.kind.data}"
    return "" if node.op is None else node.op.name
