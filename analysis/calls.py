"""What a call does with its memrefs once it has returned: nothing, if its function's
body shows that.

    func.func private @scale(%a: memref<64xf32>) {     keeps nothing: it may read and
      linalg.exp ins(%a) outs(%a)                      write %a while it runs
      func.return
    }
"""

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
from xdsl.traits import IsTerminator, SymbolTable

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
from ..dialects.tgraph.base import TensorOp

NUMBERS = AnyFloat | IntegerType | IndexType | ComplexType | VectorType
"""Types of values that can't hold a memref."""

STORES = ("memref.store", "affine.store")


def is_over(op: Operation) -> bool:
    """Whether an operation accesses its memrefs only while it runs, and keeps no
    address. A call does if its function is there, and does so."""
    if isinstance(op, CallOp):
        return _keeps_nothing(op, set())
    if isinstance(
        op, memref.ExtractAlignedPointerAsIndexOp | UnrealizedConversionCastOp
    ):
        return False
    return isinstance(op, TensorOp) or is_done_at_its_end(op)


def _keeps_nothing(call: CallOp, asked: set[Operation]) -> bool:
    """Whether neither a function nor those that it calls keep what they are given."""
    callee = SymbolTable.lookup_symbol(call, call.callee)
    if not isinstance(callee, FuncOp) or callee.is_declaration:
        return False
    if callee in asked:
        return True
    asked.add(callee)
    return all(_is_over_in(op, asked) for op in callee.body.walk())


def _is_over_in(op: Operation, asked: set[Operation]) -> bool:
    """Whether an operation of a function keeps nothing that the function is given."""
    if transfer := asynchronous(op):
        return transfer.is_waited_for_here(op) and bool(transfer.waits_of(op))
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
        return not any(map(is_memref, op.results)) and _keeps_nothing(op, asked)
    return bool(op.regions) or is_over(op)


def _ends_with_its_regions(op: Operation) -> bool:
    """Whether all that is in an operation's regions is over when it ends."""
    return name_of(op).startswith(("scf.", "affine.")) or is_over(op)


def _is_made_here(value: SSAValue) -> bool:
    """Whether a memref is surely an allocation, and not what the caller gave."""
    return isinstance(root_of(value).owner, memref.AllocOp)
