"""`tgraph-eliminate-assigns`: computes assigned values directly into their variables.

    %w = tgraph.read %v : tensor<4xf32>
    %n = tgraph.subtract %w, %g : tensor<4xf32>
    tgraph.assign %v, %n : tensor<4xf32>

    %w = tgraph.read %v : tensor<4xf32>
    %n = tgraph.subtract %w, %g outs(%v) : tensor<4xf32>

The pass does so exactly where the change cannot be observed: from the producer's first
write on, nothing may read the old contents, through any view. The producer itself may
read them if it does so element by element (`TensorOp.overwritable`).

 * An assign is removed if the variable already holds the value, or if the value is
   overwritten before it is read.
 * The tensor that a slice update or a scatter updates is computed into the variable,
   too, if nothing reads it after the update. A chain of updates runs in the variable.
 * An assign of a loop's result stays; bufferization runs the loop in the variable.
 * An assign of a single number becomes `tgraph.constant ... outs(%v)`.
 * Any other assign stays as a copy. The pass moves it after the last reader of the old
   contents where possible, so that bufferization need not save them: `a, b = b, n`
   takes two copies in any order, and a swap, which is a cycle, takes three.

A remark reports what the pass did with each assign, and why.

Needs: level 1, preferably before tgraph-fuse, because an assigned value ends a group.
Leaves: level 1; destinations (`outs`) are variables.
Does not: move computations to make an assign avoidable.

NNVM's `_assign` marking (GraphCompile) relies on reference counts and patterns instead.
It copies where no reader is left, and can overwrite a value that is read later.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from ...analysis.functions import tensor_blocks
from ...analysis.updates import is_read_before
from ...analysis.versions import (
    Version,
    last_versions,
    looped_into,
    source_of,
    uses_of_contents,
)
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import TensorOp, segments
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp, ScatterOp
from ...dialects.tgraph.shaping import ConstantOp, ViewOp
from ...dialects.tgraph.structure import AssignOp, ReadOp
from ..optional import OptionalPass


@dataclass(frozen=True)
class TGraphEliminateAssigns(OptionalPass):
    """Computes assigned values directly into their variables where that is safe."""

    name = "tgraph-eliminate-assigns"
    TOPIC = "assigns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in list(tensor_blocks(op)):
            _erase_unused_reads(block)  # they would block an assign
            elimination = _Elimination(block)
            if elimination.drop_needless():
                _erase_unused_reads(block)
                elimination = _Elimination(block)
            elimination.run()
            _erase_unused_reads(block)


def _erase_unused_reads(block: Block) -> None:
    for read in list(block.ops):
        if isinstance(read, ReadOp) and read.result.first_use is None:
            _erase(read)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


class _Elimination:
    """Eliminates, drops, or moves the assigns of one block."""

    def __init__(self, block: Block):
        ops = list(block.ops)
        self.position: dict[Operation, int | Fraction] = {
            op: index for index, op in enumerate(ops)
        }
        self.version_of: dict[SSAValue, Version] = {}  # of values in variables
        made: dict[Operation | None, Version] = {}
        for version in last_versions(block).values():
            while version is not None:
                self.version_of.update((value, version) for value in version.values)
                made[version.writer] = version
                version = version.previous
        self.written = {op: made[op] for op in ops if isinstance(op, AssignOp)}

    def run(self) -> None:
        """Eliminates each assign if possible; moves the others, or makes them fills."""
        copies: list[tuple[AssignOp, str]] = []
        for op, version in list(self.written.items()):
            if looped_into(version, self.position):
                message = "assign costs nothing: tgraph.while runs in the variable"
                remark(message, op, passed=True)
            elif reason := self._obstacle(op.value, version.previous):
                copies.append((op, reason))
            else:
                self._compute_into_variable(op)
        # In reverse: a later assign may be the reader that an earlier one moves after.
        places = {op: self._move_after_readers(op) for op, _ in reversed(copies)}
        for op, reason in copies:
            place = places[op]
            constant = op.value.owner
            if isinstance(constant, ConstantOp) and constant.splat is not None:
                remark(f"assign becomes a fill{place}", op)
                _fill(op, constant)
            else:
                remark(f"assign stays a copy{place}: {reason}", op)

    def drop_needless(self) -> bool:
        """Erases the assigns that have no effect. Returns whether there were any."""
        count = len(self.written)
        stack: list[Operation | None] = [*reversed(self.written)]
        while stack:
            op = stack.pop()
            version = self.written.get(op) if isinstance(op, AssignOp) else None
            if version is None or not (reason := _needless(version)):
                continue
            assert isinstance(op, AssignOp)
            assert version.previous is not None
            remark(f"assign is removed: {reason}", op)
            # Without this assign, others may be needless, too.
            stack.append(version.previous.writer)
            if version.next is not None:
                stack.append(version.next.writer)
            if read := self.version_of.get(op.value):
                stack.append(read.writer)
            self.version_of.update((v, version.previous) for v in version.values)
            version.drop()
            del self.written[op]
            _erase(op)
        return len(self.written) < count

    def _obstacle(self, value: SSAValue, before: Version | None) -> str | None:
        """Why `value` cannot be computed into a variable over the contents `before`;
        None if it can."""
        producer = value.owner
        if not isinstance(producer, TensorOp) or producer not in self.position:
            return "no operation of this block computes the value"
        if isinstance(producer, ViewOp | ConstantOp):
            return f"the value comes from {producer.name}, which computes nothing"
        if len(producer.res) > 1:
            return f"{producer.name} has {len(producer.res)} results"
        if producer.outs:
            return "the value is computed into another variable"
        assert before is not None
        computed = self.position[producer]
        if before.writer is not None and self.position[before.writer] > computed:
            return (
                f"{before.writer.name} of the variable comes between the computation "
                "and the assign"
            )
        for at, user, operand in self._readers(before):
            if at > computed:
                return f"{user.name} reads the old contents later"
            if at == computed and operand not in producer.overwritable():
                return (
                    f"{user.name} needs the old contents while it writes the new ones"
                )
        return None

    def _readers(
        self, version: Version
    ) -> Iterator[tuple[int | Fraction, Operation, int | None]]:
        for value in version.values:
            yield from uses_of_contents(value, self.position)

    def _compute_into_variable(self, op: AssignOp) -> None:
        producer, version = op.value.owner, self.written[op]
        assert isinstance(producer, TensorOp)
        message = f"assign is eliminated: {producer.name} writes the variable"
        remark(message, op, passed=True)
        self._write(producer, op.variable, version)
        _erase(op)
        while start := self._start(version):
            producer, version = start.owner, version.insert()
            assert isinstance(producer, TensorOp)
            self._write(producer, op.variable, version)

    def _write(self, producer: TensorOp, variable: SSAValue, version: Version) -> None:
        """Makes `producer` write `version` into the variable."""
        version.writer = producer
        version.values.append(producer.result)
        self.version_of[producer.result] = version
        inputs = producer.inputs
        producer.operands = [*inputs, variable]
        producer.properties["operandSegmentSizes"] = segments(inputs, (variable,))

    def _start(self, version: Version) -> SSAValue | None:
        """The tensor that the writer of `version` updates, if it can be computed into
        the variable, too, because nothing reads it later; else None."""
        update = version.writer
        if not isinstance(update, DynamicUpdateSliceOp | ScatterOp):
            return None
        start, before = update.inputs[0], version.previous
        if self._obstacle(start, before) or not is_read_before(
            update, Version(values=[start]), self.position[update], self.position
        ):
            return None
        return start

    def _move_after_readers(self, op: AssignOp) -> str:
        """Moves `op` after all readers of the old contents, if that is allowed. Returns
        where to, as text for a remark.

        An assign must not pass another access of its variable, or a write to the
        variable that holds its value.
        """
        version = self.written[op]
        assert version.previous is not None
        start = self.position[op]
        end, reader = max(
            self._readers(version.previous), key=lambda r: r[0], default=(start, op)
        )[:2]
        lies_in = self.version_of.get(source_of(op.value))
        stops = [value.owner for value in version.values]
        stops += [v.next.writer for v in (version, lies_in) if v and v.next]
        if (
            end <= start
            or reader.has_trait(IsTerminator, value_if_unregistered=False)
            or any(
                start < self.position[stop] <= end
                for stop in stops
                if isinstance(stop, Operation)
            )
        ):
            return ""
        following = reader.next_op
        assert following is not None
        self.position[op] = (
            Fraction(self.position[reader] + self.position[following]) / 2
        )
        op.detach()
        Rewriter.insert_op(op, InsertPoint.after(reader))
        return f", after {reader.name}"


def _needless(version: Version) -> str | None:
    """Why the assign that writes `version` has no effect; None if it has one."""
    before, op = version.previous, version.writer
    assert before is not None
    assert isinstance(op, AssignOp)
    if version.next is not None and all(v.first_use is None for v in version.values):
        assert version.next.writer is not None
        return f"{version.next.writer.name} overwrites it, and nothing reads it"
    if op.value in before.values or (
        isinstance(before.writer, AssignOp) and before.writer.value is op.value
    ):
        return "the variable already holds the value"
    return None


def _fill(op: AssignOp, constant: ConstantOp) -> None:
    fill = ConstantOp.create(
        operands=[op.variable],
        result_types=[constant.result.type],
        properties=constant.properties
        | {"operandSegmentSizes": segments((), (op.variable,))},
        attributes=op.attributes,
    )
    fill.location = op.location
    Rewriter.replace_op(op, fill, [])
