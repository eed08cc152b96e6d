"""Follows the address of a buffer, to find out whether the program only compares it.

MLIR's `-buffer-deallocation-pipeline` finds out at run time which of several memrefs
are the same. It stores their addresses in tables, and passes these to a function that
compares them:

    %p = memref.extract_aligned_pointer_as_index %x
    memref.store %p, %table[%c0]
    func.call @dealloc_helper(%table, ...)

plan-memory can plan such a buffer. The buffer is live until the last comparison,
because different buffers must have different addresses until then.
"""

from xdsl.dialects import arith, func, memref
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.traits import SymbolTable

from ..dialects.memory import freed, is_view


def comparisons(address: SSAValue) -> list[Operation] | None:
    """The operations of the function that compare `address`, or that pass it to the
    comparison, in order of discovery. None if it has any other use."""
    holders: dict[SSAValue, None] = {address: None}  # the address, and its tables
    pending, found = [address], dict[Operation, None]()
    while pending:
        for use in pending.pop().uses:
            targets = _targets(use)
            if targets is None:
                return None
            found[use.operation] = None
            new = [target for target in targets if target not in holders]
            holders.update(dict.fromkeys(new))
            pending += new
    here = _function_of(address.owner)
    return [op for op in found if _function_of(op) is here]


def _targets(use: Use) -> list[SSAValue] | None:
    """The values that hold the address because of this use of a holder. None if the use
    neither compares nor forwards the address."""
    op, index = use.operation, use.index
    if isinstance(op, arith.CmpiOp | memref.DimOp) or freed(op):
        return []
    if is_view(op):
        return [op.results[0]]
    if isinstance(op, memref.LoadOp):
        return [op.res]
    if isinstance(op, memref.StoreOp):
        return _stored(op, index)
    if isinstance(op, func.CallOp):
        callee = SymbolTable.lookup_symbol(op, op.callee)
        if isinstance(callee, func.FuncOp) and not callee.is_declaration:
            return [callee.body.block.args[index]]
    return None


def _stored(op: memref.StoreOp, index: int) -> list[SSAValue] | None:
    """The table that an address is stored in; None if the table is not local."""
    if index != 0:
        return []
    is_local = isinstance(op.memref.owner, memref.AllocOp | memref.AllocaOp)
    return [op.memref] if is_local else None


def _function_of(inner: Operation | Block) -> Operation | None:
    outer = inner if isinstance(inner, Operation) else inner.parent_op()
    while outer is not None and not isinstance(outer, func.FuncOp):
        outer = outer.parent_op()
    return outer
