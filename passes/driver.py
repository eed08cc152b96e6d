"""Runs passes in sequence, and verifies the IR after each pass that changed it.

xDSL's `verify()` does not check the order of definitions and uses (xDSL issue 1033), so
a pass that moves operations can break it unnoticed. The driver therefore runs two
checks after a pass: `verify()`, and that each definition dominates its uses. As in
MLIR, valid IR that did not change is not verified again. Passes need not report their
changes: `Verifier` finds them.
"""

import re
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

from ..analysis.caching import caching
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


def deadline(time_limit: float | None) -> float:
    """The time of `time.monotonic()` at which passes with a `time_limit` in seconds
    have to end. The limit counts from the start of the current `run`, or from now
    outside of one. Infinity if `time_limit` is None."""
    if time_limit is None:
        return inf
    start = _began.get()
    return (monotonic() if start is None else start) + time_limit


def flatten(passes: Iterable[ModulePass]) -> Iterator[ModulePass]:
    """Yields the passes, with each pipeline replaced by its passes."""
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

    Raises `VerifyException` if the input or the output of a pass is not valid.
    """
    with (
        depth_limited(module),
        seldom_collected(),
        _clocked(),
        measured_once(),
        caching(),
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
            except VerifyException as error:  # without a source location
                raise LocatedVerifyError(f"{pass_.name}: {error}") from None
            seconds = process_time() - start
            if verify:
                verifier.verify(module)
            if after:
                after(pass_, module, seconds)


@contextmanager
def _clocked() -> Generator[None]:
    """Records the start time of the outermost run."""
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
    """Checks a module repeatedly while passes run on it, each time only the changes."""

    def __init__(self):
        self._contents: Contents = {}
        self._keys = StructuralKeys()
        self._valid: set[object] = set()

    def verify(self, module: Operation) -> None:
        """Like `check`, but skips operations that an earlier call found valid."""
        try:
            contents, before = contents_of(module), self._contents
            if contents == before:
                return
            # An erased operation shows as a change of its parent.
            changed = {key for key, own in contents.items() if own != before.get(key)}
            self._check(module, contents, changed)
        except LocatedVerifyError:
            raise
        except VerifyException as error:
            culprit = _culprit(module)
            message = f"{name_of(culprit)}: {_in_terms_of(culprit, str(error))}"
            raise LocatedVerifyError(message, culprit) from None
        self._contents = contents

    def _check(self, module: Operation, contents: Contents, changed: set[int]) -> None:
        self._verify(contents, changed)
        for region in module.regions:
            _check_region(region, set())

    def _verify(self, contents: Contents, changed: set[int]) -> None:
        """Verifies the operations that changed or contain a change, unless one with an
        equal key was valid. Operations whose rules are not known are always verified.
        Loops and branches have no key: it would contain all nested operations."""
        for number, own in contents.items():  # nested operations come first
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
        """Everything that the rules of a known operation read. For a function this is
        its signature; `_check_region` also finds its uses of values from outside."""
        if type(op) is not FuncOp:
            return self._keys.of(op)
        return type(op.parent_op()), self._keys.signature(op)


def _is_known(op: Operation) -> bool:
    """Whether the rules of `op` read only `op` itself, not what surrounds it."""
    if isinstance(op, TensorOp) or type(op) in _KNOWN:
        return op.next_op is not None
    return type(op) in (YieldOp, FuncOp)


def check(module: Operation) -> None:
    """Raises `VerifyException`, with a source location, if `module` is not valid."""
    with depth_limited(module):
        Verifier().verify(module)


def _redefined(op: Operation) -> Operation | None:
    """The first symbol of a module whose name an earlier symbol has, or None."""
    names: set[Attribute] = set()
    for inner in op.body.block.ops if isinstance(op, ModuleOp) else ():
        name = inner.get_attr_or_prop("sym_name")
        if name in names:
            return inner
        if name is not None:
            names.add(name)
    return None


def _culprit(module: Operation) -> Operation:
    """The first operation that does not verify by itself. If this is a module, which
    has no source location, prefers a symbol in it that is defined twice."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            return _redefined(op) or op
    return module


def _in_terms_of(op: Operation, message: str) -> str:
    """A message of xDSL's verifier with the names and values in the text of `op`."""
    if match := re.match(r"(?:property|attribute) '(\w+)' expected in", message):
        return f"attribute {match[1]!r} is missing"
    if "terminates block in single-block region but is not" in message:
        return "ends its block, expected a terminator such as func.return after it"
    value, _, kind = message.partition(" should be of base attribute ")
    names = (name for name, given in op.properties.items() if str(given) == value)
    if kind and (name := next(names, None)):
        form = {"array": "array<i64: ...>", "integer": "a number", "string": "a string"}
        return f"{name} is {value}, expected {form.get(kind, kind)}"
    return message


def _check_region(region: Region, visible: set[int]) -> None:
    """Checks that each definition in the region dominates its uses.

    visible: the values from outside that operations in the region may use, by `id`,
        because hashing a value calls Python code.
    """
    first = region.first_block
    if first is None:
        return
    if first.next_block is None:
        visible.difference_update(_check_block(first, visible))
        return
    dominance = Dominance(region)
    above: list[tuple[Block, Sequence[int]]] = []  # dominators, and their definitions
    for block in dominance.blocks:
        while above and not dominance.dominates(above[-1][0], block):
            visible.difference_update(above.pop()[1])
        above.append((block, _check_block(block, visible)))
    for _, defined in above:
        visible.difference_update(defined)


def _check_block(block: Block, visible: set[int]) -> Sequence[int]:
    """Checks a block. Adds the values that it defines to `visible` and returns them."""
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
