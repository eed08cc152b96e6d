"""Writes arenas that others own: an argument, a global, or fixed addresses.

    func.func @f(%x: memref<8xf32>, %arena: memref<256xi8> {tgraph.arena = 64 : i64})
    func.func @f_arena_size() -> index                                # argument

    memref.global "private" @f_arena : memref<256xi8> = uninitialized # global
    %arena = memref.get_global @f_arena : memref<256xi8>

    %0 = llvm.inttoptr %c268435456 : i64 to !llvm.ptr                 # address
    ...
    %arena = builtin.unrealized_conversion_cast %5 : !llvm.struct<...> to memref<256xi8>

In every form, a function that other functions of the module call takes its arenas as
arguments. Each call gets an allocation that is freed right after it. plan-memory plans
the caller later, and treats this allocation like any other: the callee's frame lies in
the caller's arena, in bytes that are not live during the call, and so do the frames of
other calls. The stack frames of a program without recursion are laid out like this.
"""

from collections.abc import Sequence

from xdsl.dialects import arith, llvm, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    UnrealizedConversionCastOp,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable

from ....analysis.allocations import is_arena
from ....analysis.functions import (
    ARENA_SIZE,
    argument_attributes,
    set_argument_attributes,
)
from ....analysis.sizes import SizeReader
from ....dialects.diagnostics import LocatedError, name_of, remark
from ....dialects.memory import ARENA
from ....dialects.target_memory import target_memories
from ....dialects.tgraph.base import AnyMemRef
from .marked import marked_arena


class ArenaForms:
    """Gives the arenas of a module's functions another form than `memref.alloc`.

    form: the owner of the arenas of functions that no other calls: `argument`,
    `global`, or `address`, the base of the target's memory.
    """

    def __init__(self, module: ModuleOp, form: str) -> None:
        self._form = form
        self._calls: dict[FuncOp, list[CallOp]] = {}
        self._callees: dict[FuncOp, dict[FuncOp, None]] = {
            op: {}
            for op in module.walk()
            if isinstance(op, FuncOp) and not op.is_declaration
        }
        self._globals: dict[str, None] = {}
        """The names of the globals that are arenas."""
        self._referenced: dict[FuncOp, Operation] = {}
        """The functions that are referenced other than by a call, with a reference."""
        for op in module.walk():
            self._read(op)

    def _read(self, op: Operation) -> None:
        for attribute in (*op.properties.values(), *op.attributes.values()):
            if not isinstance(attribute, SymbolRefAttr):
                continue
            callee = SymbolTable.lookup_symbol(op, attribute)
            if not isinstance(callee, FuncOp) or callee not in self._callees:
                continue
            caller = _function_around(op)
            if isinstance(op, CallOp) and attribute is op.callee and caller:
                self._calls.setdefault(callee, []).append(op)
                self._callees[caller][callee] = None
            else:
                self._referenced[callee] = op

    def callees_first(self) -> list[FuncOp]:
        """The functions, callees before callers. Recursion may break this order."""
        done: dict[FuncOp, None] = {}
        entered: dict[FuncOp, None] = {}
        stack = list(reversed(self._callees))
        while stack:
            func = stack[-1]
            new = [f for f in self._callees[func] if f not in entered]
            if func not in entered and new:
                entered[func] = None
                stack += reversed(new)
                continue
            entered[func] = None
            done[stack.pop()] = None
        return list(done)

    def change(self, func: FuncOp) -> None:
        """Gives the arenas of a planned function their form.

        Raises `LocatedError` for arenas that cannot have it.
        """
        arenas = _arenas(func)
        if not arenas:
            return
        if func not in self._calls and self._form != "argument":
            for arena in arenas:
                _replace(arena, self._elsewhere(func, arena))
        elif reason := self._keeps_signature(func):
            remark(f"the arena of @{func.sym_name.data} is allocated: {reason}", func)
        else:
            self._take(func, arenas)

    def _keeps_signature(self, func: FuncOp) -> str | None:
        """Why a function cannot take arenas as arguments; None if it can."""
        pending, seen = list(self._callees[func]), dict[FuncOp, None]()
        for callee in pending:  # the body appends
            if callee is func:
                return "the function calls itself"
            if callee not in seen:
                seen[callee] = None
                pending += self._callees[callee]
        if other := self._referenced.get(func):
            return f"{name_of(other)} refers to the function"
        return None

    def _take(self, func: FuncOp, arenas: Sequence[memref.AllocOp]) -> None:
        """Makes a function take its arenas as arguments, and its callers pass them."""
        reader = SizeReader(func)
        taken: list[memref.AllocOp] = []
        for arena in arenas:
            if None in reader.shape(arena.memref):
                text = "its size cannot be derived from the shapes of the arguments"
                remark(f"arena is allocated: {text}", arena)
            else:
                taken.append(arena)
        if not taken:
            return
        sizes = self._add_size_function(func, taken)
        types = [arena.memref.type for arena in taken]
        alignments = [_alignment(arena) for arena in taken]
        for call in self._calls.get(func, ()):
            _lend(call, types, alignments, sizes)
        attributes = argument_attributes(func)
        entry = func.body.blocks[0]
        for arena, alignment in zip(taken, alignments, strict=True):
            argument = entry.insert_arg(arena.memref.type, len(entry.args))
            argument.name_hint = "arena"
            attributes.append({ARENA: IntegerAttr(alignment, i64)})
            _replace(arena, argument)
        func.update_function_type()
        set_argument_attributes(func, attributes)

    def _add_size_function(
        self, func: FuncOp, arenas: Sequence[memref.AllocOp]
    ) -> FuncOp:
        """Adds the function that returns the bytes of arenas."""
        name = self._new_name(func, ARENA_SIZE, NoneAttr())
        is_static = not any(arena.dynamic_sizes for arena in arenas)
        arguments = [] if is_static else list(func.function_type.inputs)
        block = Block(arg_types=arguments)
        known: dict[SSAValue, SSAValue] = dict(zip(func.args, block.args, strict=False))
        for old, new in known.items():
            new.name_hint = old.name_hint
        sizes = [_size(arena, block, known) for arena in arenas]
        block.add_op(ReturnOp(*sizes))
        made = FuncOp(
            name,
            (arguments, [IndexType()] * len(sizes)),
            Region(block),
            func.sym_visibility,
        )
        made.location = func.location
        if not is_static:
            set_argument_attributes(made, argument_attributes(func))
        Rewriter.insert_op(made, InsertPoint.after(func))
        return made

    def _elsewhere(self, func: FuncOp, arena: memref.AllocOp) -> SSAValue:
        """Memory in a global, or at an address, that replaces an allocated arena."""
        type = arena.memref.type
        if DYNAMIC_INDEX in type.get_shape():
            raise LocatedError(
                f"the arena of @{func.sym_name.data} has a symbolic size, expected a "
                f"static one for arena={self._form}: give bounds",
                func,
            )
        if self._form == "global":
            return self._in_global(func, arena)
        memory = target_memories(func).get(type.memory_space)
        if memory is None or memory.base is None:
            raise LocatedError(
                f"the arena of @{func.sym_name.data} is in memory space "
                f"{type.memory_space}, expected a memory of the target with a "
                "base address",
                func,
            )
        return _at_address(arena, memory.base)

    def _in_global(self, func: FuncOp, arena: memref.AllocOp) -> SSAValue:
        type, alignment = arena.memref.type, _alignment(arena)
        name = self._new_name(func, "_arena", type.memory_space)
        self._globals[name] = None
        made = memref.GlobalOp.get(
            StringAttr(name), type, UnitAttr(), alignment=alignment
        )
        Rewriter.insert_op(made, InsertPoint.before(func))
        get = memref.GetGlobalOp(name, type)
        get.attributes[ARENA] = IntegerAttr(alignment, i64)
        Rewriter.insert_op(get, InsertPoint.before(arena))
        return get.memref

    def _new_name(self, func: FuncOp, suffix: str, space: Attribute) -> str:
        """A function's name with a suffix, the memory space if it has a name or number,
        and further numbers until no other arena has the name."""
        name = f"{func.sym_name.data}{suffix}"
        if isinstance(space, StringAttr):
            name += f"_{space.data}"
        elif isinstance(space, IntegerAttr):
            name += f"_{space.value.data}"
        while name in self._globals:
            name += "_1"
        if other := SymbolTable.lookup_symbol(func, name):
            raise LocatedError(
                f"the module already has a symbol @{name}, expected none for the "
                f"arena of @{func.sym_name.data}",
                other,
            )
        return name


def _function_around(op: Operation) -> FuncOp | None:
    outer = op.parent_op()
    while outer is not None and not isinstance(outer, FuncOp):
        outer = outer.parent_op()
    return outer


def _arenas(func: FuncOp) -> list[memref.AllocOp]:
    """The arenas that a function allocates at its start, ordered by first buffer."""
    found: dict[memref.AllocOp, None] = {}
    for op in func.walk():
        if isinstance(op, memref.ViewOp) and isinstance(
            alloc := op.source.owner, memref.AllocOp
        ):
            if alloc.parent is func.body.blocks[0] and is_arena(alloc):
                found[alloc] = None
    return list(found)


def _alignment(arena: memref.AllocOp) -> int:
    return arena.alignment.value.data if arena.alignment else 1


def _replace(arena: memref.AllocOp, value: SSAValue) -> None:
    """Replaces an allocated arena by memory of another owner. Erases deallocations."""
    for use in list(arena.memref.uses):
        if isinstance(use.operation, memref.DeallocOp):
            Rewriter.erase_op(use.operation)
    computed = list(arena.dynamic_sizes)
    value.name_hint = arena.memref.name_hint
    Rewriter.replace_op(arena, (), [value])
    for size in computed:
        _erase_unused(size)


def _erase_unused(value: SSAValue) -> None:
    op = value.owner
    if isinstance(op, Operation) and not any(result.uses for result in op.results):
        operands = list(op.operands)
        Rewriter.erase_op(op)
        for operand in operands:
            _erase_unused(operand)


def _size(
    arena: memref.AllocOp, block: Block, known: dict[SSAValue, SSAValue]
) -> SSAValue:
    """The bytes of an arena, computed in another block, where `known` has values."""
    if arena.dynamic_sizes:
        (size,) = arena.dynamic_sizes
        return _copied(size, block, known)
    (count,) = arena.memref.type.get_shape()
    op = arith.ConstantOp(IntegerAttr(count, IndexType()))
    block.add_op(op)
    return op.result


def _copied(value: SSAValue, block: Block, known: dict[SSAValue, SSAValue]) -> SSAValue:
    """Copies the operations that compute `value` into a block. Returns its copy."""
    pending = [value]
    while pending:
        current = pending[-1]
        op = current.owner
        assert isinstance(op, Operation)
        unknown = [v for v in op.operands if v not in known]
        if current not in known and not unknown:
            copy = op.clone(value_mapper=known)
            block.add_op(copy)
        pending += unknown
        if not unknown:
            pending.pop()
    return known[value]


def _lend(
    call: CallOp,
    types: Sequence[AnyMemRef],
    alignments: Sequence[int],
    sizes: FuncOp,
) -> None:
    """Allocates the arenas that a callee takes for one call, and passes them."""
    counts: Sequence[SSAValue] = ()
    if any(DYNAMIC_INDEX in type.get_shape() for type in types):
        ask = CallOp(
            sizes.sym_name.data, list(call.operands), [IndexType()] * len(types)
        )
        Rewriter.insert_op(ask, InsertPoint.before(call))
        counts = ask.results
    for number, (type, alignment) in enumerate(zip(types, alignments, strict=True)):
        given = [counts[number]] if DYNAMIC_INDEX in type.get_shape() else []
        name = f"{call.callee.string_value()}_arena"
        frame = marked_arena(type, alignment, name, given)
        frame.location = call.location
        Rewriter.insert_op(frame, InsertPoint.before(call))
        Rewriter.insert_op(memref.DeallocOp.get(frame.memref), InsertPoint.after(call))
        call.operands = [*call.operands, frame.memref]


def _at_address(arena: memref.AllocOp, address: int) -> SSAValue:
    """A memref of an arena's type that begins at an address, made from a descriptor as
    in MLIR's conversion to LLVM."""
    type = arena.memref.type
    pointer_type = llvm.LLVMPointerType()
    pair = llvm.LLVMArrayType(1, i64)
    struct = llvm.LLVMStructType.from_type_list(
        [pointer_type, pointer_type, i64, pair, pair]
    )
    (size,) = type.get_shape()
    constants = [arith.ConstantOp(IntegerAttr(n, i64)) for n in (address, 0, size, 1)]
    at, first, count, stride = (op.result for op in constants)
    pointer = llvm.IntToPtrOp(at)
    descriptor: Operation = llvm.UndefOp(struct)
    ops: list[Operation] = [*constants, pointer, descriptor]
    for position, value in (
        ((0,), pointer.output),
        ((1,), pointer.output),
        ((2,), first),
        ((3, 0), count),
        ((4, 0), stride),
    ):
        place = DenseArrayBase.from_list(i64, position)
        descriptor = llvm.InsertValueOp(place, descriptor.results[0], value)
        ops.append(descriptor)
    cast = UnrealizedConversionCastOp.get(descriptor.results, [type])
    cast.attributes[ARENA] = IntegerAttr(_alignment(arena), i64)
    for op in (*ops, cast):
        Rewriter.insert_op(op, InsertPoint.before(arena))
    return cast.results[0]
