"""Finds calls that keep no memref after they have returned, from the bodies of the
functions that they reach.

    func.func private @scale(%a: memref<64xf32>) {     keeps nothing: it may access
      linalg.exp ins(%a) outs(%a)                      %a only while it runs
      func.return
    }
"""

from collections.abc import Iterable
from itertools import islice

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    IndexType,
    IntegerType,
    UnrealizedConversionCastOp,
    VectorType,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from ..dialects.diagnostics import name_of
from ..dialects.memory import (
    asynchronous,
    freed,
    is_barrier,
    is_done_at_its_end,
    is_memref,
    is_view,
    root_of,
)
from ..dialects.symbols import Symbols
from ..dialects.tgraph.base import TensorOp

NUMBERS = AnyFloat | IntegerType | IndexType | ComplexType | VectorType
"""Types of values that cannot hold a memref."""

STORES = ("memref.store", "affine.store")


class Calls:
    """Finds calls that keep no memrefs; analyzes each function once."""

    def __init__(self):
        self._symbols = Symbols()
        self._keeps_nothing: dict[FuncOp, bool] = {}

    def is_over(self, op: Operation) -> bool:
        """Whether `op` accesses its memrefs only while it runs, and keeps no address. A
        call does so if the bodies of all functions that it reaches show it."""
        if isinstance(op, CallOp):
            return self._is_call_over(op)
        return _is_plain_over(op)

    def _is_call_over(self, call: CallOp) -> bool:
        """Whether no function that the call reaches keeps its memrefs. Recursive
        functions keep nothing if none of their other operations does."""
        callees: dict[FuncOp, None] = {}
        pending = [call]
        for each in pending:  # grows during the loop
            callee = self._symbols.callee(each)
            if callee is None:
                return self._note(callees, False)
            known = self._keeps_nothing.get(callee)
            if known is False:
                return self._note(callees, False)
            if known or callee in callees:
                continue
            callees[callee] = None
            for op in callee.body.walk():
                if not _is_over_in(op):
                    self._keeps_nothing[callee] = False
                    return self._note(callees, False)
                if isinstance(op, CallOp) and any(map(is_memref, op.operands)):
                    pending.append(op)
        return self._note(callees, True)

    def _note(self, callees: Iterable[FuncOp], keeps_nothing: bool) -> bool:
        """Notes that all functions keep nothing, or that the first one may."""
        noted = callees if keeps_nothing else islice(callees, 1)
        self._keeps_nothing |= dict.fromkeys(noted, keeps_nothing)
        return keeps_nothing


def _is_plain_over(op: Operation) -> bool:
    """Whether an operation other than a call keeps no memref after it has run."""
    if isinstance(
        op, memref.ExtractAlignedPointerAsIndexOp | UnrealizedConversionCastOp
    ):
        return False
    return isinstance(op, TensorOp) or is_done_at_its_end(op)


def _is_over_in(op: Operation) -> bool:
    """Whether an operation of a function keeps none of the function's memrefs. A call
    must not return memrefs; the caller checks what it keeps."""
    if transfer := asynchronous(op):
        return transfer.is_local_wait(op) and bool(transfer.waits_of(op))
    if is_barrier(op) or (op.regions and not _ends_with_its_regions(op)):
        return False
    memrefs = [index for index, v in enumerate(op.operands) if is_memref(v)]
    if not memrefs or is_view(op):
        return True
    if op.has_trait(IsTerminator, value_if_unregistered=False):
        return not isinstance(op, ReturnOp)
    if name_of(op) in STORES and 0 in memrefs:
        return False
    if freed(op):
        return all(_is_made_here(op.operands[index]) for index in freed(op))
    if not all(isinstance(x.type, NUMBERS) or is_memref(x) for x in op.results):
        return False
    if isinstance(op, CallOp):
        return not any(map(is_memref, op.results))
    return bool(op.regions) or _is_plain_over(op)


def _ends_with_its_regions(op: Operation) -> bool:
    """Whether all operations nested in `op` are done when it ends."""
    return name_of(op).startswith(("scf.", "affine.")) or _is_plain_over(op)


def _is_made_here(value: SSAValue) -> bool:
    """Whether `value` is known to be allocated in the function, not passed to it."""
    return isinstance(root_of(value).owner, memref.AllocOp)
