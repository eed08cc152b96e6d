"""Runs passes in sequence, and verifies the IR after each pass that changed it.

xDSL's `verify()` does not check the order of definitions and uses (xDSL issue 1033), so
a pass that moves operations can break it unnoticed. The driver therefore runs two
checks after a pass: `verify()`, and that each definition dominates its uses. As in
MLIR, valid IR that did not change is not verified again. Passes need not report changes
(`Verifier`).
"""

from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic, process_time
from typing import Protocol, runtime_checkable

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from ..analysis.once import asked_once
from ..dialects.contents import Contents, contents_of, operands_of
from ..dialects.diagnostics import (
    LocatedError,
    LocatedVerifyError,
    depth_limited,
    name_of,
)
from ..dialects.dominance import Dominance
from ..dialects.garbage import seldom_collected
from ..dialects.structural_keys import StructuralKeys
from ..dialects.tgraph.base import TensorOp
from ..dialects.tgraph.structure import AssignOp, ReadOp, RegionOp, YieldOp
from ..dialects.workspaces import measured_once


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
    with (
        depth_limited(module),
        seldom_collected(),
        _clocked(),
        measured_once(),
        asked_once(),
    ):
        verifier = Verifier()
        if verify:
            verifier.verify(module)
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
                verifier.verify(module)
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


_KNOWN = frozenset(
    {
        arith.ConstantOp,
        memref.AllocOp,
        memref.CopyOp,
        memref.DeallocOp,
        memref.ReinterpretCastOp,
        memref.ViewOp,
        AssignOp,
        ReadOp,
    }
)


class Verifier:
    """Checks a module again and again, while passes run on it: what they changed."""

    def __init__(self):
        self._contents: Contents = {}
        self._keys = StructuralKeys()
        self._valid: set[object] = set()

    def verify(self, module: Operation) -> None:
        """As `check`. Does not look again at what an earlier call found valid."""
        try:
            contents, before = contents_of(module), self._contents
            if contents == before:
                return
            # An operation that is gone changes what is around it.
            changed = {key for key, own in contents.items() if own != before.get(key)}
            self._check(module, contents, changed)
        except LocatedVerifyError:
            raise
        except VerifyException as error:
            culprit = _culprit(module)
            message = f"{name_of(culprit)}: {error}"
            raise LocatedVerifyError(message, culprit) from None
        self._contents = contents

    def _check(self, module: Operation, contents: Contents, changed: set[int]) -> None:
        self._verify(contents, changed)
        for region in module.regions:
            _check_region(region, set())

    def _verify(self, contents: Contents, changed: set[int]) -> None:
        """Verifies operations that changed, or within which one did, unless one
        with an equal key was valid; those whose rules are not known, always. The key
        of a loop or branch would be made of all that is within."""
        for number, own in contents.items():  # what is within comes before
            op: Operation = own[0]
            has_changed = number in changed
            if has_changed and (around := op.parent_op()):
                changed.add(id(around))
            if not _is_known(op) or (has_changed and isinstance(op, RegionOp)):
                op.verify(verify_nested_ops=False)
            elif has_changed and (key := self._key(op)) not in self._valid:
                op.verify(verify_nested_ops=False)
                self._valid.add(key)

    def _key(self, op: Operation) -> object:
        """What the rules of a known operation look at. Those of a function look at its
        signature, and for values from outside, which `_check_region` finds, too."""
        if type(op) is not FuncOp:
            return self._keys.of(op)
        return type(op.parent_op()), self._keys.signature(op)


def _is_known(op: Operation) -> bool:
    """Whether the rules of an operation look at nothing else, nor at where it is."""
    if isinstance(op, TensorOp) or type(op) in _KNOWN:
        return op.next_op is not None
    return type(op) in (YieldOp, FuncOp)


def check(module: Operation) -> None:
    """Raises `VerifyException`, with the place in the source, if IR is not valid."""
    with depth_limited(module):
        Verifier().verify(module)


def _redefined(op: Operation) -> Operation | None:
    """The first symbol in a module whose name is there before."""
    names: set[Attribute] = set()
    for inner in op.body.block.ops if isinstance(op, ModuleOp) else ():
        name = inner.get_attr_or_prop("sym_name")
        if name in names:
            return inner
        if name is not None:
            names.add(name)
    return None


def _culprit(module: Operation) -> Operation:
    """The first operation that does not verify by itself; of a module, which has no
    place in the source, a symbol that is there twice."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            return _redefined(op) or op
    return module


def _check_region(region: Region, visible: set[int]) -> None:
    """`visible`: the values from around the region that its operations may use, by
    `id`, as values are hashed in Python."""
    first = region.first_block
    if first is None:
        return
    if first.next_block is None:
        visible.difference_update(_check_block(first, visible))
        return
    dominance = Dominance(region)
    above: list[tuple[Block, Sequence[int]]] = []  # with what they define
    for block in dominance.blocks:
        while above and not dominance.dominates(above[-1][0], block):
            visible.difference_update(above.pop()[1])
        above.append((block, _check_block(block, visible)))
    for _, defined in above:
        visible.difference_update(defined)


def _check_block(block: Block, visible: set[int]) -> Sequence[int]:
    """Adds what the block defines to what is visible, and returns that."""
    added = list(map(id, block.args))
    visible.update(added)
    for op in block.ops:
        if not visible.issuperset(map(id, operands_of(op))):
            index = next(n for n, v in enumerate(op.operands) if id(v) not in visible)
            raise LocatedVerifyError(
                f"{name_of(op)}: operand {index} is used before it is defined", op
            )
        for region in op.regions:
            isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
            _check_region(region, set() if isolated else visible)
        results = list(map(id, op.results))
        visible.update(results)
        added += results
    return added
