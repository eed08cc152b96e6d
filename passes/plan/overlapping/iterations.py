"""Lets copies continue from one iteration of a loop to the next: double buffering.

An iteration starts to copy in what the next one computes with:

    scf.for %i = 0 to 8 step 1 {
      %a = memref.alloc()
      memref.copy %x[%i], %a
      linalg.exp ins(%a) outs(%y[%i])
      memref.dealloc %a
    }

    memref.dma_start %x[0], %first, %tag                      the prologue
    %last = scf.for %i = 0 to 7 step 1 iter_args(%a = %first) {
      memref.dma_wait %tag
      %next = memref.alloc()
      memref.dma_start %x[%i + 1], %next, %tag
      linalg.exp ins(%a) outs(%y[%i])
      memref.dealloc %a
      scf.yield %next
    }
    memref.dma_wait %tag                                      the last iteration
    linalg.exp ins(%last) outs(%y[7])
    memref.dealloc %last

The last iteration is peeled, as MLIR's scf::pipelineForLoop does: as many bytes move as
before, none of them out of bounds, and each wait has its start on every path. If the
bounds are not constant, all of this is in an `scf.if` that tests whether there is an
iteration, and the program computes the last one. All tags and slots follow from SSA
values. plan-memory gives the allocation two slots, which the loop rotates.

An iteration waits for what the preceding one copies out; the first iteration is peeled:

    scf.for %i = 0 to 8 step 1 {
      %b = memref.alloc()
      linalg.exp ins(%x) outs(%b)
      memref.copy %b, %y[%i]
      memref.dealloc %b
    }

    %first = memref.alloc()                                   the first iteration
    linalg.exp ins(%x) outs(%first)
    memref.dma_start %first, %y[0], %tag
    %last = scf.for %i = 1 to 8 step 1 iter_args(%old = %first) {
      %b = memref.alloc()
      linalg.exp ins(%x) outs(%b)
      memref.dma_wait %tag
      memref.dealloc %old
      memref.dma_start %b, %y[%i], %tag
      scf.yield %b
    }
    memref.dma_wait %tag                                      the epilogue
    memref.dealloc %last
"""

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from ....analysis.loops import TRIP_COUNT, constant_range
from ....dialects.diagnostics import name_of, remark
from ....dialects.memory import is_view
from .copies import Copy, Memref, time_of
from .writing import Writer

ROUNDS = 8
"""The largest number of choices to place."""

GROWTH = 4
"""The factor by which a function's operations may increase. Each peeled iteration adds
operations: in a nest, each outer loop doubles the inner loops."""

SMALL = 512
"""The number of operations that any function may grow to."""


def most_operations(func: FuncOp) -> int:
    """The largest number of operations that `func` may grow to."""
    return max(SMALL, GROWTH * _size(func))


def overlap_iterations(
    func: FuncOp, copies: Sequence[Copy], fits: Callable[[FuncOp], bool], most: int
) -> bool:
    """Lets iterations start copies for the next iterations, or wait for copies of the
    preceding ones, if the function still fits. Copies that take the most time come
    first. Returns whether any copy has changed.

    `fits` is called with functions in copies of the module. The function gets no more
    than about `most` operations.
    """
    early = _may_start_early, _start_early, "that start one iteration earlier"
    late = _may_end_late, _end_late, "that end one iteration later"
    return any(_choose(func, copies, fits, most, *kind) for kind in (early, late))


Change = Callable[[scf.ForOp, Sequence[memref.CopyOp], Writer], Operation]
"""Lets some copies of a loop's body continue in another iteration. Returns the loop of
all iterations but the peeled one."""


def _choose(
    func: FuncOp,
    copies: Sequence[Copy],
    fits: Callable[[FuncOp], bool],
    most: int,
    may_change: Callable[[Copy], bool],
    change: Change,
    what: str,
) -> bool:
    position = {op: at for at, op in enumerate(func.walk())}
    able = sorted(filter(may_change, copies), key=lambda copy: -copy.total)
    able = _without_growth(able, most - _size(func))
    all = [position[copy.op] for copy in able]
    chosen = all if all and fits(_tried(func, all, change)) else []
    for at in all[:ROUNDS] if not chosen else ():
        if fits(_tried(func, [*chosen, at], change)):
            chosen = [*chosen, at]
    for loop, count in _change(func, chosen, change):
        remark(f"copies {what}: {count}", loop)
    return bool(chosen)


OTHERS = {
    "affine.for": "lower-affine makes it an scf.for",
    "scf.while": "no iteration knows whether another one follows",
}
"""Loops whose copies stay in their iteration, with the reason or a remedy."""


def explain_other_loops(copies: Sequence[Copy]) -> None:
    """Emits remarks on copies that could continue in another iteration if their loop
    were of another kind."""
    found: dict[Operation, int] = {}
    for copy in copies:
        loop = copy.block.parent_op()
        if loop is not None and name_of(loop) in OTHERS:
            if any(map(time_of, copy.block.ops)) and (_is_in(copy) or _is_out(copy)):
                found[loop] = found.get(loop, 0) + 1
    for loop, count in found.items():
        reason = OTHERS[name_of(loop)]
        text = "copies that stay in their iteration"
        remark(f"{text}: {count}, {name_of(loop)}: {reason}", loop)


def _size(op: Operation) -> int:
    return sum(1 for _ in op.walk())


def _without_growth(copies: Sequence[Copy], left: int) -> Sequence[Copy]:
    """The copies in loops whose peeling adds at most `left` operations; if not all,
    loops of the first copies take precedence."""
    loop_of = {copy: copy.block.parent_op() for copy in copies}
    loops = [loop for loop in dict.fromkeys(loop_of.values()) if loop]
    if _peeled(loops) > left:
        chosen: list[Operation] = []
        for loop in loops:
            if _peeled([*chosen, loop]) <= left:
                chosen.append(loop)
        loops = chosen
    return [copy for copy in copies if loop_of[copy] in loops]


def _peeled(loops: Sequence[Operation]) -> int:
    """The number of operations that peeling all of these loops adds. The peeled
    iteration of an outer loop also contains the peeled ones of its inner loops."""
    sizes = {loop: _size(loop) for loop in loops}
    inside = dict.fromkeys(loops, 0)
    total = 0
    for loop in sorted(loops, key=sizes.__getitem__):  # inner ones first
        more = sizes[loop] + inside[loop]
        total += more
        around = loop.parent_op()
        while around is not None:
            if around in inside:
                inside[around] += more
            around = around.parent_op()
    return total


def _tried(func: FuncOp, chosen: Sequence[int], change: Change) -> FuncOp:
    """The function in a copy of its module, with the chosen copies changed."""
    module: Operation = func
    while outer := module.parent_op():
        module = outer
    pairs = zip(module.walk(), module.clone().walk(), strict=True)
    (again,) = (theirs for mine, theirs in pairs if mine is func)
    assert isinstance(again, FuncOp)
    _change(again, chosen, change)
    return again


def _may_start_early(copy: Copy) -> bool:
    return _is_counted(copy.block) and _is_in(copy)


def _is_in(copy: Copy) -> bool:
    """Whether the preceding iteration can start a copy in: the target belongs to one
    iteration, and the loop does not change the source or its address."""
    block = copy.block
    if not _is_own(copy.op.destination, copy.target, block):
        return False
    others = _others(copy, copy.target)
    if not all(op is not None and copy.op.is_before_in_block(op) for op in others):
        return False
    made = copy.source.root.owner
    changes = [*copy.source.writers, *copy.source.frees]
    if isinstance(made, Operation):
        changes.append(made)
    if any(block.find_ancestor_op_in_block(op) for op in changes):
        return False
    return _address(copy.op) is not None


def _is_counted(block: Block) -> bool:
    """Whether `block` is the body of an `scf.for` that may have several iterations and
    computes something."""
    loop = block.parent_op()
    if not isinstance(loop, scf.ForOp) or not isinstance(loop.lb.type, IndexType):
        return False
    counted = constant_range(loop)
    return (counted is None or len(counted[:2]) > 1) and any(map(time_of, block.ops))


def _is_own(value: SSAValue, memory: Memref, block: Block) -> bool:
    """Whether each iteration allocates the memref and frees it."""
    alloc = value.owner
    is_new = isinstance(alloc, memref.AllocOp) and not alloc.dynamic_sizes
    return (
        is_new
        and alloc.parent is block
        and [free.parent for free in memory.frees] == [block]
    )


def _may_end_late(copy: Copy) -> bool:
    return _is_counted(copy.block) and _is_out(copy)


def _is_out(copy: Copy) -> bool:
    """Whether the next iteration can wait for a copy out: in the loop, nothing else
    accesses the target, and nothing accesses the source after the copy."""
    block = copy.block
    if not _is_own(copy.op.source, copy.source, block):
        return False
    others = _others(copy, copy.source)
    if not all(op is not None and op.is_before_in_block(copy.op) for op in others):
        return False
    if copy.source.frees[0].operands[0] is not copy.op.source:
        return False
    made = copy.target.root.owner
    changes = [*copy.target.frees, *([made] if isinstance(made, Operation) else [])]
    return not any(map(block.find_ancestor_op_in_block, changes)) and not any(
        _others(copy, copy.target)
    )


def _others(copy: Copy, memory: Memref) -> Iterator[Operation | None]:
    """For each other access of a memref, the operation of the copy's block that
    contains it; None for accesses outside of the block."""
    for op in (*memory.readers, *memory.writers):
        if op is not copy.op:
            yield copy.block.find_ancestor_op_in_block(op)


def _address(copy: memref.CopyOp) -> Sequence[Operation] | None:
    """The operations in an iteration that compute the source of a copy, in order; None
    if they depend on more than the loop's variable and values from outside."""
    block = copy.parent
    assert block is not None
    found: dict[Operation, None] = {}
    pending: list[SSAValue] = [copy.source]
    for value in pending:  # the body appends
        owner = value.owner
        if owner is block and value is not block.args[0]:
            return None
        if not isinstance(owner, Operation) or owner.parent is not block:
            continue
        if owner.regions or not (is_view(owner) or is_side_effect_free(owner)):
            return None
        found[owner] = None
        pending += owner.operands
    return [op for op in block.ops if op in found]


def _change(
    func: FuncOp, chosen: Sequence[int], change: Change
) -> Sequence[tuple[Operation, int]]:
    """Changes the chosen copies. Returns the new loops, each with its number of
    copies."""
    ops = list(func.walk())
    by_loop: dict[scf.ForOp, list[memref.CopyOp]] = {}
    for copy in (ops[at] for at in sorted(chosen, reverse=True)):  # inner ones first
        loop = copy.parent_op()
        assert isinstance(copy, memref.CopyOp)
        assert isinstance(loop, scf.ForOp)
        by_loop.setdefault(loop, []).append(copy)
    writer = Writer(func)
    found: list[tuple[Operation, int]] = []
    for loop, copies in by_loop.items():
        found.append((change(loop, copies[::-1], writer), len(copies)))
    return found[::-1]


def _end_late(
    loop: scf.ForOp, copies: Sequence[memref.CopyOp], writer: Writer
) -> Operation:
    """Lets copies end in the next iteration, and peels the first one. Returns the loop
    of the others."""
    _let_run(loop)
    body, here = loop.body.block, InsertPoint.before(loop)
    second = _second(loop, writer)
    tags = [writer.tag() for _ in copies]
    waits = [writer.wait(copy, tag) for copy, tag in zip(copies, tags, strict=True)]
    first = loop.clone()
    of_first = dict(zip(loop.walk(), first.walk(), strict=True))
    firsts = [
        _leave(of_first[copy], tag, writer)
        for copy, tag in zip(copies, tags, strict=True)
    ]
    begin = [*_run_once(first, [loop.lb, *loop.iter_args], loop), *firsts]
    lasts: list[SSAValue] = []
    for copy, tag in zip(copies, tags, strict=True):
        old = body.insert_arg(copy.source.type, len(body.args))
        old.name_hint = copy.source.name_hint
        point = InsertPoint.before(copy)
        Rewriter.insert_op([writer.wait(copy, tag), memref.DeallocOp.get(old)], point)
        lasts.append(_leave(copy, tag, writer))
    _yield_more(body, lasts)
    most = _bounded(loop, second, loop.ub, begin)
    Rewriter.insert_op(most, here)
    count = len(loop.results)
    for wait, last, value in zip(waits, lasts, most.results[count:], strict=True):
        value.name_hint = last.name_hint
        Rewriter.insert_op([wait, memref.DeallocOp.get(value)], here)
    Rewriter.replace_op(loop, [], most.results[:count])
    return most


def _let_run(loop: scf.ForOp) -> None:
    """Puts a loop into an `scf.if` that tests whether it has an iteration, unless its
    bounds show that it has one."""
    if constant_range(loop):
        return
    runs = arith.CmpiOp(loop.lb, loop.ub, "slt")
    otherwise = [scf.YieldOp(*loop.iter_args)] if loop.results else None
    inside = Block()
    guard = scf.IfOp(runs, loop.result_types, [inside], otherwise)
    Rewriter.insert_op([runs, guard], InsertPoint.before(loop))
    for result, outer in zip(loop.results, guard.results, strict=True):
        outer.name_hint = result.name_hint
        result.replace_all_uses_with(outer)
    loop.detach()
    inside.add_ops([loop, scf.YieldOp(*loop.results)])


def _second(loop: scf.ForOp, writer: Writer) -> SSAValue:
    """The loop's variable in the second iteration, if there is one."""
    if counted := constant_range(loop):
        return writer.constant(counted[1])
    second = arith.AddiOp(loop.lb, loop.step)
    Rewriter.insert_op(second, InsertPoint.before(loop))
    return second.result


def _last(loop: scf.ForOp, writer: Writer) -> SSAValue:
    """The loop's variable in the last iteration of a loop that has iterations."""
    if counted := constant_range(loop):
        return writer.constant(counted[-1])
    distance = arith.SubiOp(loop.ub, loop.lb)
    before = arith.SubiOp(distance, writer.constant(1))
    steps = arith.DivUIOp(before, loop.step)
    length = arith.MuliOp(steps, loop.step)
    last = arith.AddiOp(loop.lb, length)
    made = [distance, before, steps, length, last]
    Rewriter.insert_op(made, InsertPoint.before(loop))
    last.result.name_hint = "last"
    return last.result


def _leave(copy: Operation, tag: SSAValue, writer: Writer) -> SSAValue:
    """Replaces a copy by its start, and erases the deallocation of its source. Returns
    the source."""
    assert isinstance(copy, memref.CopyOp)
    source = copy.source
    start = writer.start(copy, source, copy.destination, tag)
    Rewriter.insert_op(start, InsertPoint.before(copy))
    for use in list(source.uses):
        if isinstance(use.operation, memref.DeallocOp):
            Rewriter.erase_op(use.operation)
    Rewriter.erase_op(copy)
    return source


def _bounded(
    loop: scf.ForOp, begin: SSAValue, end: SSAValue, values: Sequence[SSAValue]
) -> scf.ForOp:
    """The loop with other bounds and initial values."""
    made = scf.ForOp(begin, end, loop.step, values, loop.detach_region(loop.body))
    made.location = loop.location
    made.attributes = {k: v for k, v in loop.attributes.items() if k != TRIP_COUNT}
    return made


def _start_early(
    loop: scf.ForOp, copies: Sequence[memref.CopyOp], writer: Writer
) -> Operation:
    """Lets copies start in the preceding iteration, and peels the last one. Returns the
    loop of the others."""
    _let_run(loop)
    body, here = loop.body.block, InsertPoint.before(loop)
    end = _last(loop, writer)
    tags = [writer.tag() for _ in copies]
    last = loop.clone()
    of_last = dict(zip(loop.walk(), last.walk(), strict=True))
    peeled = [of_last[copy] for copy in copies]
    firsts = [
        _start(copy, loop.lb, tag, writer, here)
        for copy, tag in zip(copies, tags, strict=True)
    ]
    following = arith.AddiOp(body.args[0], loop.step)
    Rewriter.insert_op(following, InsertPoint.at_start(body))
    nexts: list[SSAValue] = []
    for copy, tag in zip(copies, tags, strict=True):
        current = body.insert_arg(copy.destination.type, len(body.args))
        current.name_hint = copy.destination.name_hint
        point = InsertPoint.before(copy)
        Rewriter.insert_op(writer.wait(copy, tag), point)
        nexts.append(_start(copy, following.result, tag, writer, point))
        _replace(copy, current)
    _yield_more(body, nexts)
    most = _bounded(loop, loop.lb, end, [*loop.iter_args, *firsts])
    Rewriter.insert_op(most, here)
    count = len(loop.results)
    for copy, tag, current in zip(peeled, tags, most.results[count:], strict=True):
        assert isinstance(copy, memref.CopyOp)
        current.name_hint = copy.destination.name_hint
        Rewriter.insert_op(writer.wait(copy, tag), InsertPoint.before(copy))
        _replace(copy, current)
    Rewriter.replace_op(loop, [], _run_once(last, [end, *most.results[:count]], loop))
    return most


def _run_once(
    loop: scf.ForOp, arguments: Sequence[SSAValue], before: Operation
) -> Sequence[SSAValue]:
    """Inserts one iteration of a loop before `before`. Returns the yielded values."""
    Rewriter.inline_block(loop.body.block, InsertPoint.before(before), arguments)
    loop.erase()
    terminator = before.prev_op
    assert terminator is not None
    yields = list(terminator.operands)
    Rewriter.erase_op(terminator)
    return yields


def _yield_more(body: Block, values: Sequence[SSAValue]) -> None:
    terminator = body.last_op
    assert terminator is not None
    terminator.operands = [*terminator.operands, *values]


def _start(
    copy: memref.CopyOp,
    counter: SSAValue,
    tag: SSAValue,
    writer: Writer,
    point: InsertPoint,
) -> SSAValue:
    """Starts the copy of the iteration in which the loop's variable is `counter`.
    Returns the new target."""
    loop, alloc = copy.parent_op(), copy.destination.owner
    assert isinstance(loop, scf.ForOp)
    mapper: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: counter}
    made = [op.clone(mapper) for op in _address(copy) or ()]
    target = alloc.clone() if isinstance(alloc, Operation) else None
    assert isinstance(target, memref.AllocOp)
    target.memref.name_hint = copy.destination.name_hint
    source = mapper.get(copy.source, copy.source)
    start = writer.start(copy, source, target.memref, tag)
    for op in (*made, target, start):
        Rewriter.insert_op(op, point)
    return target.memref


def _replace(copy: memref.CopyOp, target: SSAValue) -> None:
    """Erases a copy whose data is already in `target`."""
    address, alloc = _address(copy) or (), copy.destination.owner
    assert isinstance(alloc, memref.AllocOp)
    Rewriter.erase_op(copy)
    Rewriter.replace_op(alloc, [], [target])
    for op in reversed(address):
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
