"""Runs passes one after the other, and checks the IR after each that changed it.

xDSL's `verify()` does not look at the order of definitions and uses (xDSL issue 1033):
a pass that moves operations can break it unnoticed. So two checks run after a pass:
`verify()`, and that every use is dominated by its definition. As in MLIR, IR that was
valid and did not change is not verified again; passes need not say so (`_contents`).
"""

import gc
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic, process_time
from typing import Protocol, TypeAlias, runtime_checkable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from ..dialects.diagnostics import (
    LocatedError,
    LocatedVerifyError,
    depth_limited,
    name_of,
)
from ..dialects.tgraph.base import TensorOp


@runtime_checkable
class Pipeline(Protocol):
    """A pass that is only a sequence of other passes."""

    def passes(self) -> Sequence[ModulePass]: ...


_began: ContextVar[float | None] = ContextVar("_began", default=None)


def due(time_limit: float | None) -> float:
    """When a run of passes has to end that may take so many seconds, on
    `time.monotonic()`: this one, from when it began."""
    if time_limit is None:
        return inf
    start = _began.get()
    return (monotonic() if start is None else start) + time_limit


def flatten(passes: Iterable[ModulePass]) -> Iterator[ModulePass]:
    """The passes with each pipeline replaced by what it consists of."""
    for pass_ in passes:
        if isinstance(pass_, Pipeline):
            yield from flatten(pass_.passes())
        else:
            yield pass_


def run(
    ctx: Context,
    module: ModuleOp,
    passes: Iterable[ModulePass],
    *,
    verify: bool = True,
    before: Callable[[ModulePass, ModuleOp], None] | None = None,
    after: Callable[[ModulePass, ModuleOp, float], None] | None = None,
) -> None:
    """Applies the passes in order to `module`, in place.

    `before` is called with each pass and the module, `after` also with the seconds of
    CPU time that the pass took (without verification).

    Raises `VerifyException` if the input or what a pass leaves is not valid.
    """
    with depth_limited(module), _seldom_collected(), _clocked():
        checked: Contents = _check_changes(module, {}) if verify else {}
        for pass_ in flatten(passes):
            if before:
                before(pass_, module)
            start = process_time()
            try:
                pass_.apply(ctx, module)
            except LocatedError:
                raise
            except VerifyException as error:  # of what no operation looks at
                raise LocatedVerifyError(f"{pass_.name}: {error}") from None
            seconds = process_time() - start
            if verify:
                checked = _check_changes(module, checked)
            if after:
                after(pass_, module, seconds)


@contextmanager
def _clocked() -> Generator[None]:
    """Notes when the outermost run began."""
    token = _began.set(_began.get() or monotonic())
    try:
        yield
    finally:
        _began.reset(token)


@contextmanager
def _seldom_collected() -> Generator[None]:
    """Looks for garbage every 200,000 objects, not every 700: IR is many live ones.

    It took a third of the time of a pass over 10,000 operations.
    """
    thresholds = gc.get_threshold()
    if thresholds[0]:
        gc.set_threshold(max(200_000, thresholds[0]), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


Contents: TypeAlias = Mapping[Operation, Sequence[object]]
"""What makes each operation of a module valid or not, by `_contents`."""


def _contents(module: Operation) -> Contents:
    """What the operations consist of, in order: of two with equal contents, both or
    none are valid. Attributes and types of values never change.
    """
    contents: dict[Operation, Sequence[object]] = {}

    def add(op: Operation) -> None:
        own: list[object] = [*op.operands, *op.successors]
        for named in (op.attributes, op.properties):
            own += named
            own += named.values()
        own += op.results
        contents[op] = own
        for region in op.regions:
            for block in region.blocks:
                own.append(block)
                own += block.args
                own += block.ops
                for inner in block.ops:
                    add(inner)
            own.append(None)  # which operations are within

    add(module)
    return contents


def _check_changes(module: Operation, checked: Contents) -> Contents:
    """As `check`, of a module that was valid with the contents `checked`; returns those
    that it has now."""
    contents = _contents(module)
    # An operation that is gone changes what is around it.
    changed = {op for op, own in contents.items() if own != checked.get(op)}
    if changed:
        _check(module, changed)
    return contents


def check(module: Operation) -> None:
    """Raises `VerifyException`, with the place in the source, if IR is not valid."""
    with depth_limited(module):
        _check(module, set(module.walk()))


def _check(module: Operation, changed: Set[Operation]) -> None:
    try:
        _verify(module, changed)
    except LocatedVerifyError:
        raise
    except VerifyException as error:
        culprit = _culprit(module)
        message = f"{name_of(culprit)}: {error}"
        raise LocatedVerifyError(message, culprit) from None
    for region in module.regions:
        _check_region(region, set())


def _verify(op: Operation, changed: Set[Operation]) -> bool:
    """Verifies an operation if it or one within changed, and says whether.

    Only the rules of `TensorOp` are known to look at nothing but the operation. What
    ends a block, and all others, are always verified.
    """
    has_changed = op in changed
    for region in op.regions:
        for block in region.blocks:
            if block.parent is not region or block.is_empty:
                region.verify()
            for inner in block.ops:
                if inner.parent is not block:
                    block.verify()
                has_changed |= _verify(inner, changed)
    if has_changed or op.next_op is None or not isinstance(op, TensorOp):
        op.verify(verify_nested_ops=False)
    return has_changed


def _culprit(module: Operation) -> Operation:
    """The first operation that does not verify by itself."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            return op
    return module


def _check_region(region: Region, visible: set[SSAValue]) -> None:
    """`visible`: the values from around the region that its operations may use."""
    first = region.first_block
    if first is None:
        return
    if first.next_block is None:
        _check_block(first, visible)
        return
    dominance = DominanceInfo(region)
    defined = {block: _defined(block) for block in region.blocks}
    for block in region.blocks:
        dominating = (
            values
            for other, values in defined.items()
            if dominance.strictly_dominates(other, block)
        )
        _check_block(block, visible.union(*dominating))


def _defined(block: Block) -> set[SSAValue]:
    return {*block.args, *(result for op in block.ops for result in op.results)}


def _check_block(block: Block, visible: set[SSAValue]) -> None:
    added: list[SSAValue] = list(block.args)
    visible.update(added)
    for op in block.ops:
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                raise LocatedVerifyError(
                    f"{op.name}: operand {index} is used before it is defined", op
                )
        for region in op.regions:
            isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
            _check_region(region, set() if isolated else visible)
        visible.update(op.results)
        added.extend(op.results)
    visible.difference_update(added)
