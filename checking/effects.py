"""Effects of operations on their memrefs, through calls and regions, for plan-check."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from itertools import chain
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    ComplexType,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    MemRefType,
    NoneType,
    UnrankedMemRefType,
    VectorType,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from ..dialects.diagnostics import name_of
from ..dialects.memory import asynchronous, effects_on, is_done_at_its_end, is_view
from ..dialects.symbols import Symbols
from ..dialects.tgraph.base import AnyMemRef, element_bytes
from .pointees import (
    FORWARDING,
    is_memref,
    is_return,
    may_be,
    only_forwards,
    operations_in,
)
from .ranges import range_of

_PLAIN = (
    IntegerType
    | IndexType
    | ComplexType
    | FixedBitwidthType
    | VectorType
    | MemRefType
    | UnrankedMemRefType
    | NoneType
)
"""Types of results that cannot refer to memory unnoticed."""


def hides(op: Operation) -> bool:
    """Whether an operation returns something other than a memref that may refer to the
    memory of its operands, or stores a memref in memory."""
    if name_of(op) == "memref.extract_aligned_pointer_as_index":
        return True
    if isinstance(op, memref.StoreOp) and is_memref(op.operands[0]):
        return True
    if asynchronous(op):  # it returns a token
        return False
    types: Sequence[Attribute] = [result.type for result in op.results]
    return not all(isinstance(type, _PLAIN) for type in types)


def is_over_at_its_end(op: Operation) -> bool:
    """Whether all operations nested in `op` are done when it ends."""
    return name_of(op).startswith(("scf.", "affine.")) or is_done_at_its_end(op)


def bytes_used(memory: SSAValue, at: int) -> tuple[int, int]:
    """The range [first, end) of bytes that the views of a memory use, where the memory
    starts at byte `at`. All of its bytes if anything but such views uses it."""
    ranges: list[tuple[int, int]] = []
    for use in memory.uses:
        view = use.operation
        shift = isinstance(view, memref.ViewOp) and range_of(view.byte_shift)
        if not isinstance(view, memref.ViewOp) or not shift or view.sizes:
            return at, at + _static_bytes(memory)
        ranges.append((at + shift.least, at + shift.most + _static_bytes(view.result)))
    return min((r[0] for r in ranges), default=0), max(
        (r[1] for r in ranges), default=0
    )


def _static_bytes(value: SSAValue) -> int:
    type = cast(AnyMemRef, value.type)
    return prod(type.get_shape()) * element_bytes(type.element_type)


def _made_by(op: Operation) -> Iterable[SSAValue]:
    """The memrefs that an operation returns, unless they are its operands, or views or
    copies of these."""
    derived = (*FORWARDING, "arith.select", "bufferization.clone")
    is_derived = is_view(op) or name_of(op) in derived
    return () if is_derived else filter(is_memref, op.results)


def _goes_on(op: Operation) -> bool:
    """Whether an operation starts something that may outlast its function."""
    trait = asynchronous(op)
    return trait is not None and not trait.waits_of(op)


class Callees:
    """The effects of a module's called functions, each analyzed once."""

    def __init__(self):
        self._symbols = Symbols()
        self._effects: dict[SSAValue, tuple[bool, bool]] = {}
        self._reached: dict[FuncOp, Sequence[FuncOp]] = {}
        self._own: dict[FuncOp, _Own] = {}
        self._new: dict[FuncOp, Set[int]] = {}
        """By function: the indices of the results that are new memory."""
        self._new_in: dict[FuncOp, dict[SSAValue, None]] = {}

    def of(self, op: Operation) -> FuncOp | None:
        """The function that `op` calls; None if `op` is no call, or the function has no
        body to check."""
        return self._symbols.callee(op) if isinstance(op, CallOp) else None

    def effects_of(self, op: Operation, value: SSAValue) -> tuple[bool, bool]:
        """Whether an operation reads, and whether it writes, an operand. For a call,
        whether the function may, through any memref that it derives from its
        argument."""
        callee = self.of(op)
        if callee is None:
            return effects_on(op, value)
        args = callee.body.blocks[0].args
        effects = [self._on(args[n]) for n, v in enumerate(op.operands) if v is value]
        return any(r for r, _ in effects), any(w for _, w in effects)

    def _on(self, argument: SSAValue) -> tuple[bool, bool]:
        """Whether a function may read, and may write, the memory of its argument."""
        if argument not in self._effects:
            effects = [
                (True, True) if self.of(user) else effects_on(user, each)
                for each in may_be({argument: 0})
                for user in (use.operation for use in each.uses)
                if not only_forwards(user)
            ]
            self._effects[argument] = (
                any(r for r, _ in effects),
                any(w for _, w in effects),
            )
        return self._effects[argument]

    def new_in(self, func: FuncOp) -> Set[SSAValue]:
        """The results of calls in `func` that are new memory: the called function has
        allocated it, and no other result may refer to it. Recursive functions, and
        functions that call these, count as returning nothing new."""
        if func not in self._new_in:
            results = (r for op in operations_in(func) for r in op.results)
            self._new_in[func] = dict.fromkeys(filter(self._is_new, results))
        return self._new_in[func].keys()

    def _is_new(self, value: SSAValue) -> bool:
        if not isinstance(value, OpResult) or not is_memref(value):
            return False
        callee = self.of(value.op)
        return callee is not None and value.index in self._new_results(callee)

    def _new_results(self, func: FuncOp) -> Set[int]:
        for each in self._symbols.callees_first(func, self._new):
            self._new[each] = self._find_new(each)
        return self._new.get(func, frozenset())

    def _find_new(self, func: FuncOp) -> Set[int]:
        """`_new_results` of a function whose callees are known: on every path, the
        result is an allocation of the function or of its callees, to which no other
        result may refer."""
        new = self.new_in(func)
        made = [v for v in func.args if is_memref(v)] + [
            result for op in operations_in(func) for result in _made_by(op)
        ]
        own = {
            number
            for number, value in enumerate(made)
            if value in new or isinstance(value.owner, memref.AllocOp)
        }
        known = may_be({value: number for number, value in enumerate(made)}, new)
        found = set(range(len(func.function_type.outputs)))
        for block in func.body.blocks:
            op = block.last_op
            if op is None or op.successors:
                continue
            returned = [known.get(v, ()) for v in op.operands if is_return(op)]
            count = Counter(chain.from_iterable(returned))
            found &= {
                number
                for number, of in enumerate(returned)
                if of and own.issuperset(of) and all(count[each] == 1 for each in of)
            }
        return found

    def hide(self, op: Operation) -> bool:
        """Whether an operation calls a function that hides a memref, directly or
        through other calls."""
        return any(self._own_of(func).hides for func in self._reached_from(op))

    def memories_of(self, op: Operation) -> Sequence[SSAValue]:
        """The memrefs that the called functions, direct or indirect, make from no other
        memref."""
        reached = self._reached_from(op)
        return [made for func in reached for made in self._own_of(func).memories]

    def _reached_from(self, op: Operation) -> Sequence[FuncOp]:
        """The functions that `op` calls, directly or indirectly."""
        callee = self.of(op)
        if callee is None:
            return ()
        if callee not in self._reached:
            found = {callee: None}
            pending = [callee]
            for func in pending:  # grows during the loop
                new = [f for f in self._own_of(func).callees if f not in found]
                found.update(dict.fromkeys(new))
                pending += new
            self._reached[callee] = pending
        return self._reached[callee]

    def _own_of(self, func: FuncOp) -> "_Own":
        if func not in self._own:
            inside = list(operations_in(func))
            users = [op for op in inside if any(map(is_memref, op.operands))]
            made = [
                result
                for op in inside
                if not (op.regions or any(map(is_memref, op.operands)))
                for result in filter(is_memref, op.results)
            ]
            callees = dict.fromkeys(filter(None, map(self.of, inside)))
            hides_some = any(hides(op) or _goes_on(op) for op in users)
            self._own[func] = _Own(list(callees), hides_some, made)
        return self._own[func]


class _Own(NamedTuple):
    """The effects of a function itself, without those of its calls."""

    callees: Sequence[FuncOp]
    hides: bool  # whether it hides a memref
    memories: Sequence[SSAValue]  # the memrefs that it makes from no other memref
