"""Finds calls that keep no memref after they have returned, and results of calls that
are new memory, from the bodies of the functions that they reach.

    func.func private @scale(%a: memref<64xf32>) {     keeps nothing: it may access
      linalg.exp ins(%a) outs(%a)                      %a only while it runs
      func.return
    }
    func.func private @exp(%a: memref<64xf32>) -> memref<64xf32> {
      %b = memref.alloc()                              keeps nothing: its result is new
      linalg.exp ins(%a) outs(%b)
      func.return %b
    }

A result is also new if control flow chooses between allocations, such as `scf.if`, or a
loop that replaces its buffer.
"""

from collections import Counter
from collections.abc import Iterable, Set
from itertools import chain, islice

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
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from ..dialects.diagnostics import name_of
from ..dialects.memory import (
    asynchronous,
    freed,
    is_barrier,
    is_done_at_its_end,
    is_entry,
    is_memref,
    is_view,
)
from ..dialects.symbols import Symbols
from ..dialects.tgraph.base import TensorOp
from .forwarding import origins_of

NUMBERS = AnyFloat | IntegerType | IndexType | ComplexType | VectorType
"""Types of values that cannot hold a memref."""

STORES = ("memref.store", "affine.store")


class Calls:
    """Finds calls that keep no memrefs or return new ones; analyzes each function
    once."""

    def __init__(self):
        self._symbols = Symbols()
        self._keeps_nothing: dict[FuncOp, bool] = {}
        self._new: dict[FuncOp, Set[int]] = {}
        """By function: the indices of the results that are new memory."""

    def is_new(self, value: SSAValue) -> bool:
        """Whether `value` is the result of a call that is memory which the called
        function has allocated, and no other result. Recursive functions, and functions
        that call these, count as returning nothing new."""
        if not isinstance(value, OpResult) or not isinstance(call := value.op, CallOp):
            return False
        callee = self._symbols.callee(call)
        return callee is not None and value.index in self._new_results(callee)

    def may_return(self, op: Operation) -> list[SSAValue]:
        """The results of `op` that may be the memory of its operands."""
        return [r for r in op.results if is_memref(r) and not self.is_new(r)]

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
                if not self._is_over_in(op, callee):
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

    def _is_over_in(self, op: Operation, func: FuncOp) -> bool:
        """Whether an operation of a function keeps none of the function's memrefs,
        except to return new ones. The caller checks what a call keeps or returns."""
        if transfer := asynchronous(op):
            return transfer.is_local_wait(op) and bool(transfer.waits_of(op))
        if is_barrier(op) or (op.regions and not _ends_with_its_regions(op)):
            return False
        memrefs = [index for index, v in enumerate(op.operands) if is_memref(v)]
        if not memrefs or is_view(op):
            return True
        if op.has_trait(IsTerminator, value_if_unregistered=False):
            is_return = isinstance(op, ReturnOp)
            return not is_return or set(memrefs) <= self._new_results(func)
        if name_of(op) in STORES and 0 in memrefs:
            return False
        if freed(op):
            return all(self._is_made_here(op.operands[index]) for index in freed(op))
        if not all(isinstance(x.type, NUMBERS) or is_memref(x) for x in op.results):
            return False
        return bool(op.regions) or isinstance(op, CallOp) or _is_plain_over(op)

    def _is_made_here(self, value: SSAValue) -> bool:
        """Whether `value` is known to be allocated in the function or by its calls, not
        passed to it."""
        return all(
            isinstance(origin.owner, memref.AllocOp) or self.is_new(origin)
            for origin in origins_of(value)
        )

    def _new_results(self, func: FuncOp) -> Set[int]:
        """The indices of the results of a function that are new memory."""
        for each in self._symbols.callees_first(func, self._new):
            self._new[each] = self._find_new(each)
        return self._new.get(func, frozenset())

    def _find_new(self, func: FuncOp) -> Set[int]:
        """`_new_results` of a function whose callees are known: each return must return
        an allocation there. All other memrefs that it returns must be known to be other
        memory."""
        found = set(range(len(func.function_type.outputs)))
        for block in func.body.blocks:
            op = block.last_op
            if op is None or op.successors:
                continue
            if not isinstance(op, ReturnOp):
                return frozenset()
            memrefs = {n: v for n, v in enumerate(op.operands) if is_memref(v)}
            origins = {n: origins_of(v) for n, v in memrefs.items()}
            count = Counter(chain.from_iterable(origins.values()))
            if not all(map(self._is_distinct, count)):
                return frozenset()
            found &= {
                n
                for n, value in memrefs.items()
                if all(count[origin] == 1 for origin in origins[n])
                and self._is_made_here(value)
            }
        return found

    def _is_distinct(self, origin: SSAValue) -> bool:
        """Whether a memref is known not to be any other origin in its function, unless
        both are arguments or globals."""
        if isinstance(owner := origin.owner, Block):
            return is_entry(owner)
        return isinstance(owner, memref.GetGlobalOp) or self._is_made_here(origin)


def _is_plain_over(op: Operation) -> bool:
    """Whether an operation other than a call keeps no memref after it has run."""
    if isinstance(
        op, memref.ExtractAlignedPointerAsIndexOp | UnrealizedConversionCastOp
    ):
        return False
    return isinstance(op, TensorOp) or is_done_at_its_end(op)


def _ends_with_its_regions(op: Operation) -> bool:
    """Whether all operations nested in `op` are done when it ends."""
    return name_of(op).startswith(("scf.", "affine.")) or _is_plain_over(op)
