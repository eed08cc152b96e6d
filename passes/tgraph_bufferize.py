"""`tgraph-bufferize`: tensors become memrefs, each allocated, written and freed.

    func.func @f(%v: !tgraph.variable<tensor<4x8xf32, "cpu:0">>, ...)
                 -> tensor<8xf32, "cpu:0"> {
      %0 = tgraph.exponential %a : tensor<4x8xf32, "cpu:0">
      %1 = tgraph.transpose %0 {permutation = array<i64: 1, 0>} : ...
      %2 = tgraph.dot_general %1, %b ... -> tensor<8xf32, "cpu:0">
      func.return %2 : tensor<8xf32, "cpu:0">

    func.func @f(%v: memref<4x8xf32, "cpu:0"> {tgraph.variable}, ...,
                 %r: memref<8xf32, "cpu:0"> {tgraph.result = 0 : i32}) {
      %0 = memref.alloc() : memref<4x8xf32, "cpu:0">
      tgraph.exponential %a outs(%0) : memref<4x8xf32, "cpu:0">
      %1 = memref.reinterpret_cast %0 to ... : memref<8x4xf32, strided<[1, 8]>, "cpu:0">
      tgraph.dot_general %1, %b outs(%r) ...
      memref.dealloc %0 : memref<4x8xf32, "cpu:0">
      func.return

 * Variables become arguments with the attribute `tgraph.variable`; results become added
   last arguments, to be written only, with `tgraph.result = N`.
 * A result or assigned value is computed straight into its destination.
 * An operation takes over the buffer of an operand that it may overwrite
   (`TensorOp.overwritable`) and that nobody reads afterwards.
 * Reshape, transpose, slice, broadcast and reverse are views, unless no strides can say
   the result; each view is one `memref.reinterpret_cast` of its buffer.
 * A read variable is used in place. What of its contents is still needed when it is
   written is copied just before.
 * Constants that are small or not a single number are `memref.global`s; the others are
   filled in where they are needed.

Needs: level 1, placed (`tgraph-place-devices`), static shapes, one block.
Leaves: level 2: straight-line memref IR; every alloc has one dealloc, behind its last
use. Operations keep their attributes; copies and deallocs have the stream of the
operation that they serve.
Does not: share memory between buffers; that is plan-memory's.
"""

from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    UnitAttr,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tensorplan.dialects.diagnostics import LocatedError, remark
from tensorplan.dialects.tgraph.base import (
    RESULT,
    STREAM,
    VARIABLE,
    AnyTensor,
    TensorOp,
    VariableType,
    element_bytes,
    segments,
    tensor_type_of,
)
from tensorplan.dialects.tgraph.shaping import (
    ConstantOp,
    DeviceCopyOp,
    ReshapeOp,
    ViewOp,
)
from tensorplan.dialects.tgraph.structure import AssignOp, ReadOp
from tensorplan.passes.functions import (
    argument_attributes,
    is_tensor,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
    tensor_functions,
)
from tensorplan.passes.layout import Layout, memref_type
from tensorplan.passes.versions import source_of, uses_of_contents

SMALL_CONSTANT = 1024
"""Up to this size, in bytes, a constant is a global even if it is a single number."""


@dataclass(frozen=True)
class TGraphBufferize(ModulePass):
    """Turns tensors into memrefs with explicit allocation."""

    name = "tgraph-bufferize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants = _Constants(op)
        for func, block in list(tensor_functions(op)):
            _check_ready(func, block)
            _Bufferization(func, block, constants).run()


def _check_ready(func: FuncOp, block: Block) -> None:
    for op in (func, *block.ops):
        values = block.args if op is func else op.results
        for value in values:
            if not is_tensor(value.type):
                continue
            type = tensor_type_of(value.type)
            if DYNAMIC_INDEX in type.get_shape():
                raise LocatedError(f"{op.name}: {type} has no static shape", op)
            if isinstance(type.encoding, NoneAttr):
                raise LocatedError(
                    f"{op.name}: {type} has no device; run tgraph-place-devices first",
                    op,
                )


@dataclass(eq=False, slots=True)
class _Buffer:
    """A block of memory that values lie in."""

    base: SSAValue  # a memref with identity layout
    owned: bool  # allocated, and to be freed, here
    is_variable: bool = False
    last: int = -1  # the position after which no value in it is read
    views: dict[Layout, SSAValue] = field(default_factory=dict[Layout, SSAValue])
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    """A variable's: what lies in it."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tensor value lies."""

    buffer: _Buffer
    layout: Layout


class _Constants:
    """The module's `memref.global`s, one for each distinct constant."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.names: dict[tuple[Attribute, Attribute], str] = {}
        self.taken = {
            op.sym_name.data for op in module.ops if isinstance(op, memref.GlobalOp)
        }

    def name_of(self, value: Attribute, type: Attribute) -> str:
        if name := self.names.get((value, type)):
            return name
        number = len(self.names)
        while (name := f"constant_{number}") in self.taken:
            number += 1
        self.taken.add(name)
        self.names[value, type] = name
        op = memref.GlobalOp.get(StringAttr(name), type, value, constant=UnitAttr())
        Rewriter.insert_op(op, InsertPoint.at_start(self.module.body.block))
        return name


class _Bufferization:
    """Builds the memref form of one function, operation by operation."""

    def __init__(self, func: FuncOp, block: Block, constants: _Constants):
        self.func = func
        self.old = block
        self.constants = constants
        self.position = {op: index for index, op in enumerate(block.ops)}
        self.new = Block()
        self.at: Operation = func  # the operation that is being rewritten
        self.places: dict[SSAValue, _Place] = {}
        self.variables: dict[SSAValue, _Buffer] = {}
        self.globals: dict[str, _Buffer] = {}  # by the name of the constant
        self.results: list[_Buffer] = []
        self.destinations: dict[SSAValue, _Buffer] = {}
        self.owned: dict[_Buffer, None] = {}

    def run(self) -> None:
        self._arguments()
        self._results()
        for op in self.old.ops:
            self.at = op
            self._rewrite(op)
            if not isinstance(op, ReturnOp):
                self._free_dead()
        self._finish()

    # The signature

    def _arguments(self) -> None:
        self.argument_attrs = argument_attributes(self.func)
        for argument, attrs in zip(self.old.args, self.argument_attrs, strict=True):
            if not is_tensor(argument.type):
                raise LocatedError(
                    f"argument {argument.index} has type {argument.type}, expected a "
                    "tensor or a variable",
                    self.func,
                )
            buffer = self._argument(argument.type, argument.name_hint)
            if isinstance(argument.type, VariableType):
                attrs[VARIABLE] = UnitAttr()
                buffer.is_variable = True
                self.variables[argument] = buffer
            else:
                self._put(argument, buffer)

    def _argument(self, type: Attribute, name_hint: str | None) -> _Buffer:
        memref_argument = self.new.insert_arg(
            _contiguous(tensor_type_of(type)), len(self.new.args)
        )
        memref_argument.name_hint = name_hint
        return _Buffer(memref_argument, owned=False)

    def _results(self) -> None:
        """One argument for each result, and which values are computed into it."""
        terminator = self.old.last_op
        if not isinstance(terminator, ReturnOp):
            raise LocatedError("function does not end with func.return", self.func)
        taken = {
            index.value.data
            for attrs in self.argument_attrs
            if isinstance(index := attrs.get(RESULT), IntegerAttr)
        }
        number = 0
        for value, attrs in zip(
            terminator.operands, result_attributes(self.func), strict=True
        ):
            while number in taken:
                number += 1
            taken.add(number)
            self.argument_attrs.append(attrs | {RESULT: IntegerAttr(number, i32)})
            buffer = self._argument(value.type, None)
            self.results.append(buffer)
            while isinstance(value.owner, ReshapeOp):
                value = value.owner.inputs[0]
            if isinstance(value.owner, TensorOp | ReadOp):
                self.destinations.setdefault(value, buffer)

    def _finish(self) -> None:
        self.func.detach_region(0)
        self.func.add_region(Region(self.new))
        self.func.properties["function_type"] = FunctionType.from_lists(
            [argument.type for argument in self.new.args], []
        )
        set_argument_attributes(self.func, self.argument_attrs)
        set_result_attributes(self.func, [])

    # Values and buffers

    def _put(
        self, value: SSAValue, buffer: _Buffer, layout: Layout | None = None
    ) -> None:
        """Says where a value lies: in the whole buffer, unless a layout is given."""
        layout = layout or Layout.contiguous(tensor_type_of(value.type).get_shape())
        self.places[value] = _Place(buffer, layout)
        if buffer.is_variable:
            buffer.values.append(value)
        else:
            buffer.last = max(buffer.last, self._last_use(value))

    def _last_use(self, value: SSAValue) -> int:
        """The last position at which the value or a view of it is read."""
        reads = (at for at, _, _ in uses_of_contents(value, self.position))
        return max(reads, default=-1)

    def _memref(self, value: SSAValue) -> SSAValue:
        """The memref of a value; a view is made when it is first needed."""
        place = self.places[value]
        base, layout = place.buffer.base, place.layout
        if layout.is_contiguous:  # with the strides that the type implies
            layout = Layout.contiguous(layout.shape)
        tensor = tensor_type_of(value.type)
        type = memref_type(tensor.element_type, layout, tensor.encoding)
        if type == base.type:
            return base
        if layout not in place.buffer.views:
            view = memref.ReinterpretCastOp(
                base, (), (), (), (layout.offset,), layout.shape, layout.strides, type
            )
            self._emit(view)
            view.result.name_hint = value.name_hint
            place.buffer.views[layout] = view.result
        return place.buffer.views[layout]

    def _emit(self, op: Operation) -> None:
        op.location = self.at.location
        self.new.add_op(op)

    def _allocate(self, type: AnyTensor, name_hint: str | None) -> _Buffer:
        alloc = memref.AllocOp((), (), _contiguous(type))
        self._emit(alloc)
        alloc.memref.name_hint = name_hint
        buffer = _Buffer(alloc.memref, owned=True)
        self.owned[buffer] = None
        return buffer

    def _copy(
        self, source: SSAValue, target: SSAValue, serves: Operation | None = None
    ) -> None:
        copy = memref.CopyOp(source, target)
        _set_stream(copy, serves or self.at)
        self._emit(copy)

    def _free_dead(self) -> None:
        for buffer in list(self.owned):
            if buffer.last <= self.position[self.at]:
                dealloc = memref.DeallocOp.get(buffer.base)
                _set_stream(dealloc, self.at)
                self._emit(dealloc)
                del self.owned[buffer]

    # Operations

    def _rewrite(self, op: Operation) -> None:
        match op:
            case ReadOp():
                self._put(op.result, self.variables[op.variable])
            case AssignOp():
                self._assign(op)
            case ReturnOp():
                self._return(op)
            case ViewOp() if not op.outs:
                self._rewrite_view(op)
            case ConstantOp() if not op.outs:
                self._constant(op)
            case TensorOp():
                self._compute(op)
            case _:
                raise LocatedError(f"{op.name} cannot be bufferized", op)

    def _overwrite(self, variable: _Buffer) -> None:
        """Readies a variable to be written: saves what of it is still to be read."""
        needed = [value for value in variable.values if self._is_needed(value)]
        variable.values = []
        if not needed:
            return
        remark(
            "the old contents of the variable are saved: they are read later", self.at
        )
        returned = next(
            (v for v in needed if v in self.destinations and source_of(v) is v), None
        )
        if returned is None:
            type = tensor_type_of(variable.base.type)
            saved = self._allocate(type, needed[0].name_hint)
            target = saved.base
        else:
            saved = self.destinations[returned]
            self._put(returned, saved)
            target = self._memref(returned)
        self._copy(variable.base, target)
        for value in needed:
            self._put(value, saved, self.places[value].layout)

    def _is_needed(self, value: SSAValue) -> bool:
        """Whether a tensor in the variable that is written now is to be read yet."""
        now, op = self.position[self.at], self.at
        for use in value.uses:  # views that there are already answer for themselves
            at = self.position[use.operation]
            if at > now or (
                at == now
                and not (
                    isinstance(op, TensorOp)
                    and use.index in op.overwritable()
                    and self.places[value].layout.is_contiguous
                )
            ):
                return True
        return False

    def _assign(self, op: AssignOp) -> None:
        variable = self.variables[op.variable]
        place = self.places[op.value]
        if place.buffer is variable and place.layout.is_contiguous:
            return
        self._overwrite(variable)
        self._copy(self._memref(op.value), variable.base)

    def _return(self, op: ReturnOp) -> None:
        for value, buffer in zip(op.operands, self.results, strict=True):
            if self.places[value].buffer is not buffer:
                computed = source_of(value).owner
                serves = computed if isinstance(computed, Operation) else op
                self._copy(self._memref(value), buffer.base, serves)
        self._free_dead()
        self._emit(ReturnOp())

    def _rewrite_view(self, op: ViewOp) -> None:
        source = op.inputs[0]
        place = self.places[source]
        layout = place.layout.viewed(op)
        if layout is not None:
            self._put(op.result, place.buffer, layout)
            return
        # Only a reshape of a strided view comes here: it is stored in order first.
        buffer = self._allocate(tensor_type_of(source.type), op.result.name_hint)
        self._copy(self._memref(source), buffer.base)
        self._put(op.result, buffer)

    def _constant(self, op: ConstantOp) -> None:
        type = tensor_type_of(op.result.type)
        splat = op.splat
        size = prod(type.get_shape())
        bytes = size * element_bytes(type.element_type)
        if splat is not None and (
            bytes > SMALL_CONSTANT or op.result in self.destinations
        ):
            self._compute(op)
            return
        value = op.dense
        memref_of = _contiguous(type)
        name = self.constants.name_of(value, memref_of)
        if name not in self.globals:
            get = memref.GetGlobalOp(name, memref_of)
            self._emit(get)
            get.memref.name_hint = op.result.name_hint
            self.globals[name] = _Buffer(get.memref, owned=False)
        self._put(op.result, self.globals[name])

    def _compute(self, op: TensorOp) -> None:
        """An operation that writes destinations: variables, results or new buffers."""
        for variable in op.outs:
            self._overwrite(self.variables[variable])
        inputs = [self._memref(value) for value in op.inputs]
        outs: list[SSAValue] = []
        for index, result in enumerate(op.res):
            buffer = self._destination(op, index)
            self._put(result, buffer)
            outs.append(self._memref(result))
        if isinstance(op, DeviceCopyOp):
            self._copy(inputs[0], outs[0])
        else:
            self._emit(
                type(op).create(
                    operands=[*inputs, *outs],
                    properties=op.properties
                    | {"operandSegmentSizes": segments(inputs, outs)},
                    attributes=op.attributes,
                    regions=[op.detach_region(region) for region in list(op.regions)],
                )
            )

    def _destination(self, op: TensorOp, index: int) -> _Buffer:
        if op.outs:
            return self.variables[op.outs[index]]
        result = op.res[index]
        if result in self.destinations:
            return self.destinations[result]
        if index == 0 and (buffer := self._overwritten(op)):
            return buffer
        return self._allocate(tensor_type_of(result.type), result.name_hint)

    def _overwritten(self, op: TensorOp) -> _Buffer | None:
        """The buffer of an operand that the first result may take over."""
        allowed = op.overwritable()
        element = tensor_type_of(op.res[0].type).element_type
        for index in allowed:
            value = op.inputs[index]
            place = self.places[value]
            type = tensor_type_of(value.type)
            if (
                place.buffer.owned
                and place.buffer.last <= self.position[op]
                and type.element_type == element
                and place.layout.is_contiguous
                and prod(type.get_shape()) == _elements(place.buffer)
                and all(
                    self.places[other].buffer is not place.buffer
                    or (other is value and i in allowed)
                    for i, other in enumerate(op.inputs)
                )
            ):
                return place.buffer
        return None


def _set_stream(op: Operation, serves: Operation) -> None:
    if stream := serves.attributes.get(STREAM):
        op.attributes[STREAM] = stream


def _contiguous(type: AnyTensor) -> Attribute:
    layout = Layout.contiguous(type.get_shape())
    return memref_type(type.element_type, layout, type.encoding)


def _elements(buffer: _Buffer) -> int:
    return prod(tensor_type_of(buffer.base.type).get_shape())
