"""Loops and branches: calls that make other calls, as an element in memory says."""

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation

from tensorplan.runtime.dtypes import Array
from tensorplan.runtime.kernels import Call
from tensorplan.runtime.native.records import joined
from tensorplan.runtime.steps import Buffer, Step, View


def control_calls(
    op: Operation, flag: Array, regions: Sequence[Sequence[Step]]
) -> list[Call]:
    """The call that runs an `scf.while` or `scf.if`, whose regions' steps these are.

    `flag` is what the condition is loaded from.
    """
    for steps in regions:
        for step in steps:
            step.remake()
    tapes = [
        joined([call for step in steps for call in step.calls]) for steps in regions
    ]
    run = run_while if isinstance(op, scf.WhileOp) else run_if
    return [(run, (flag, *tapes))]


def run_while(flag: Array, condition: Sequence[Call], body: Sequence[Call]) -> None:
    while True:
        for function, arguments in condition:
            function(*arguments)
        if not flag:
            return
        for function, arguments in body:
            function(*arguments)


def run_if(flag: Array, on_true: Sequence[Call], on_false: Sequence[Call] = ()) -> None:
    for function, arguments in on_true if flag else on_false:
        function(*arguments)


def touched(
    regions: Sequence[Sequence[Step]],
) -> tuple[list[View], list[View]]:
    """What the regions together read from outside, and all that they write.

    Buffers that a region writes before it reads them are not read from outside.
    """
    reads: list[View] = []
    writes: list[View] = []
    for steps in regions:
        written: set[Buffer] = set()
        for step in steps:
            reads += [view for view in step.reads if view.buffer not in written]
            written.update(view.buffer for view in step.writes)
            writes += step.writes
    return list(dict.fromkeys(reads)), list(dict.fromkeys(writes))
