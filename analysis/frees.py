"""Uses of memory after it is freed: what frees it again, reads it or writes it.

    memref.dealloc %a
    memref.copy %a, %y              surely reads it after it is freed
    scf.if %c {
      memref.dealloc %b
    }
    memref.copy %b, %y              may do so, on one path

A use follows a free if a path leads from the one to the other, and does not allocate
the memory anew in between. What control flow hands on may be what is freed, as long as
it is not bound to something else: a select of %a and another one, or the %old of a loop
that is the %new of the iteration before.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.traits import IsTerminator

from ..dialects.diagnostics import name_of, place_of
from ..dialects.memory import effects_on, freed, is_memref
from .control_flow import ControlFlow, moves, passes_on
from .references import References


class UseAfterFree(NamedTuple):
    """Memory is freed, and used after that."""

    memory: SSAValue  # what makes it
    free: Operation
    use: Operation
    what: str  # it does: `reads`, `writes`, `uses`, or `frees`
    is_sure: bool  # whether it does so whenever the free has run

    @property
    def text(self) -> str:
        """Which operation does what."""
        name = f"%{self.memory.name_hint or '?'}"
        place = place_of(self.free)
        free = f"{name_of(self.free)} ({place})" if place else name_of(self.free)
        what = self.what if self.is_sure else f"may {self.what.removesuffix('s')}"
        again = " again" if self.what == "frees" else ""
        where = "" if self.is_sure else ", on some path"
        return f"{name_of(self.use)} {what} {name}{again} after {free} frees it{where}"


def uses_after_free(func: FuncOp, flow: ControlFlow) -> Iterator[UseAfterFree]:
    """Those of each memory and each `memref.dealloc` of it, in order of the text."""
    for source in _sources(func):
        if _is_freed_last(source, flow):
            continue
        references = References(flow, source)
        uses = [
            use for alias in references.of for use in alias.uses if moves(use) is None
        ]
        if not any(isinstance(use.operation, memref.DeallocOp) for use in uses):
            continue
        uses.sort(key=lambda use: flow.step_of(use.operation)[0])
        for use in uses:
            if (
                isinstance(use.operation, memref.DeallocOp)
                and use.operation in flow.step
            ):
                yield from _Freed(references, flow, use).used(uses)


def _sources(func: FuncOp) -> Iterator[SSAValue]:
    """The memrefs of a function that are made of no others."""
    yield from filter(is_memref, func.args)
    for op in func.walk():
        if op.results and not passes_on(op):
            yield from filter(is_memref, op.results)


def _is_freed_last(source: SSAValue, flow: ControlFlow) -> bool:
    """Whether the last use of an allocation frees it, as most do: in its own block, and
    by no other name."""
    ops = [use.operation for use in source.uses]
    frees = [op for op in ops if isinstance(op, memref.DeallocOp)]
    return len(frees) == 1 and all(
        op.parent is source.owner.parent
        and op.next_op is not None
        and not any(map(is_memref, op.results))
        and flow.step_of(op)[0] <= flow.step_of(frees[0])[0]
        for op in ops
    )


def _what(use: Use) -> str | None:
    """What an operation does to its operand; None if it leaves the memory alone, as a
    return does, or finds out at run time (`bufferization.dealloc`)."""
    op = use.operation
    if op.has_trait(IsTerminator, value_if_unregistered=False):
        return None
    if use.index in freed(op):
        return "frees" if isinstance(op, memref.DeallocOp) else None
    match effects_on(op, op.operands[use.index]):
        case True, True:
            return "uses"
        case True, False:
            return "reads"
        case False, True:
            return "writes"
        case _:
            return None


class _Since(NamedTuple):
    """From when on a reference is to what is freed."""

    step: int
    is_bound: bool  # whether it is bound to it before this step; else, after it


class _Freed:
    """What a `memref.dealloc` frees."""

    def __init__(self, references: References, flow: ControlFlow, free: Use):
        self.references = references
        self.flow = flow
        self.free = free.operation
        self.named = references.of[self.free.operands[free.index]]
        self.since = {r: {_Since(flow.step[self.free], False)} for r in self.named}
        self._follow()

    def used(self, uses: Sequence[Use]) -> Iterator[UseAfterFree]:
        """By which of some uses, each operation once."""
        said: set[Operation] = set()
        for use in uses:
            op = use.operation
            step, whole = self.flow.step_of(op)
            references = self.references.of[op.operands[use.index]]
            if op in said or not any(self._is_freed(r, step) for r in references):
                continue
            what = _what(use)
            if what is None:
                continue
            said.add(op)
            is_sure = (
                op is whole
                and op.parent is self.free.parent
                and step > self.flow.step[self.free]
                and references == self.named
                and len(references) == 1
            )
            memory = self.references.source
            yield UseAfterFree(memory, self.free, op, what, is_sure)

    def _follow(self) -> None:
        """Finds the other references to it: what it is bound to before the free, or
        after that."""
        free = self.flow.step[self.free]
        pending = list(self.since)
        for reference in pending:  # grows
            for source, target, op in self.references.moves:
                step = self.flow.step_of(op)[0]
                found: list[tuple[SSAValue, _Since]] = []
                if source is reference and self._is_freed(source, step):
                    first = self.references.begin(target)
                    found.append((target, _Since(first, True)))
                elif source is reference and self._leads(step, free, source):
                    found.append((target, _Since(free, False)))
                if target is reference and self._leads(step, free, source):
                    found.append((source, _Since(free, False)))
                for other, since in found:
                    known = self.since.setdefault(other, set())
                    if since not in known:
                        known.add(since)
                        pending.append(other)

    def _is_freed(self, reference: SSAValue, step: int) -> bool:
        """Whether a reference may be to what is freed, when a step begins."""
        return any(
            (since.is_bound and since.step == step)
            or self._leads(since.step, step, reference)
            for since in self.since.get(reference, ())
        )

    def _leads(self, step: int, other: int, reference: SSAValue) -> bool:
        """Whether the one may follow the other, with a reference to the same."""
        return self.flow.reaches(step, other, self.references.begin(reference))
