"""Converts blocks of StableHLO from level 0 to level 1: calls, loops, branches.

    call, composite       the body of the function is inlined
    while                 tgraph.while; values that the body yields unchanged, and
                          values from outside, are inputs that the loop does not carry
    if, case              tgraph.if; a case of several branches becomes nested ifs

`CONVERSIONS` has the converters of all other operations. Constants from outside that a
region uses are cloned into it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    NameLoc,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnknownLoc,
    UnregisteredOp,
    i1,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.diagnostics import LocatedError, name_of
from ...dialects.sizes.symbolic import Size
from ...dialects.tgraph.base import (
    NAME,
    AnyTensor,
    TensorOp,
    VariableType,
    with_element,
)
from ...dialects.tgraph.callbacks import has_side_effect
from ...dialects.tgraph.elementwise import CompareOp
from ...dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, SizeOp
from ...dialects.tgraph.structure import AssignOp, IfOp, ReadOp, WhileOp, YieldOp
from ..builder import TensorBuilder, name_hint
from ..unsupported import Unsupported, not_supported
from . import (
    custom_calls,
    elementwise,
    indexing,
    loops,
    matrices,
    normalization,
    products,
    reducing,
    shaping,
    sizes,
)
from .conversion import Conversion, Converter, Values, check_type, parts_of
from .quantized import (
    CONVERTING,
    dequantized,
    expressed,
    is_quantized,
    moves_integers,
    quantized,
    retyped,
    stored,
)
from .sizes import folded
from .symbols import (
    Demands,
    computes_sizes,
    is_assertion,
    named_by_place,
    solved,
    symbols_of,
)

CONVERSIONS: Mapping[str, Converter] = {
    **custom_calls.CONVERSIONS,
    **elementwise.CONVERSIONS,
    **indexing.CONVERSIONS,
    **loops.CONVERSIONS,
    **matrices.CONVERSIONS,
    **normalization.CONVERSIONS,
    **products.CONVERSIONS,
    **reducing.CONVERSIONS,
    **shaping.CONVERSIONS,
    **sizes.CONVERSIONS,
}

Scope = Mapping[SSAValue, SSAValue]
"""Maps the values of a block at level 0 to values at level 1."""


@dataclass
class Inliner:
    """Converts blocks into a list of operations, and inlines calls."""

    functions: Mapping[str, FuncOp]
    unsupported: dict[Operation, str] = field(default_factory=dict[Operation, str])
    """Operations that can't be converted, each with the message for it."""

    demands: Demands = field(default_factory=Demands)
    """The conditions of `shape_assertion`s."""

    _active: list[str] = field(default_factory=list[str])

    _at: LocationAttr = field(default_factory=UnknownLoc)
    """The location of the innermost call that is being inlined."""

    def argument_types(self, func: FuncOp) -> list[Attribute]:
        """The types of a function's arguments, with symbols for sizes that are `?`.

        To find the symbols, converts the start of the function up to the call that
        passes them, and discards the result.
        """
        types = [stored(type) for type in func.function_type.inputs]
        if not _has_unknown(types) or not computes_sizes(self.functions.values()):
            return types
        types = named_by_place(types)
        trial = Inliner(self.functions)
        block = Block(arg_types=types)
        scope = dict[SSAValue, SSAValue](
            zip(func.body.block.args, block.args, strict=True)
        )
        symbols: dict[str, Size] = {}
        ops: list[Operation] = []
        for op in func.body.block.ops:
            inputs = [scope[operand] for operand in op.operands]
            callee = trial._callee(op, name_of(op)) if isinstance(op, CallOp) else None
            if callee and (symbols := symbols_of(op, inputs, callee)):
                break
            if op is func.body.block.last_op:
                break
            results = trial._operation(op, scope, ops)
            scope.update(zip(op.results, results, strict=True))
        return solved(types, symbols, trial.demands.zero, func)

    def function(
        self, func: FuncOp, arguments: Values, into: list[Operation]
    ) -> Values:
        """Inlines `func` into `into` with these arguments; returns its results."""
        if len(func.body.blocks) != 1:
            raise LocatedError(
                f"@{func.sym_name.data} has {len(func.body.blocks)} blocks, expected 1",
                func,
            )
        block = func.body.block
        if not isinstance(block.last_op, ReturnOp):
            raise LocatedError(f"@{func.sym_name.data} has no func.return", func)
        self._active.append(func.sym_name.data)
        results = self.block(block, dict(zip(block.args, arguments, strict=True)), into)
        self._active.pop()
        return results

    def block(
        self, block: Block, scope: dict[SSAValue, SSAValue], into: list[Operation]
    ) -> Values:
        """Appends the operations of a block; returns the operands of its terminator.

        `scope` maps the block's arguments and values from outside; results are added to
        it.
        """
        for op in block.ops:
            if op is block.last_op:
                return [scope[operand] for operand in op.operands]
            results = self._operation(op, scope, into)
            scope.update(zip(op.results, results, strict=True))
        return ()

    def _operation(self, op: Operation, scope: Scope, into: list[Operation]) -> Values:
        name = name_of(op)
        try:
            inputs = [scope[operand] for operand in op.operands]
            conversion = Conversion(op, inputs, into, self.block, scope)
            if (sizes := folded(conversion)) is not None:
                return sizes
            if callee := self._callee(op, name):
                start, around = len(into), self._at
                self._at = _called(op.location, around)
                results = self.function(callee, inputs, into)
                self._at = around
                for inlined in into[start:]:
                    inlined.location = _called(inlined.location, op.location)
                return results
            for result in op.results:
                for type in parts_of(result.type):
                    check_type(stored(type))
            if is_assertion(op, conversion):
                self.demands.add(conversion)
                return ()
            if control := _CONTROL.get(name):
                return control(self, conversion, scope)
            if is_quantized(op):
                return _quantized(conversion, name)
            results = _converted(conversion, name)
            if results and isinstance(called := op.attributes.get(NAME), StringAttr):
                results[0].name_hint = name_hint(called.data)
            return results
        except Unsupported as reason:
            self.unsupported[op] = not_supported(_title(op), reason)
            op.location = _called(op.location, self._at)  # JAX's have none
            # Placeholder results, so that the rest of the program is checked, too.
            types = [result.type for result in op.results]
            return UnregisteredOp.create(result_types=types).results

    def _callee(self, op: Operation, name: str) -> FuncOp | None:
        """The function that the operation calls, or None."""
        if isinstance(op, CallOp):
            called = op.callee.string_value()
        elif name == "stablehlo.composite":
            symbol = Conversion(op, (), [], self.block).attribute("decomposition")
            if not isinstance(symbol, SymbolRefAttr):
                raise Unsupported("without decomposition")
            called = symbol.string_value()
        else:
            return None
        callee = self.functions.get(called)
        if callee is None or not callee.body.blocks:
            raise Unsupported(f": the module does not define @{called}")
        if called in self._active:
            raise Unsupported(f": @{called} calls itself")
        return callee


def _title(op: Operation) -> str:
    """The name of an operation, with the target of a custom call."""
    target = op.get_attr_or_prop("call_target_name")
    name = target.data if isinstance(target, StringAttr) else ""
    return f"{name_of(op)} @{name}" if name else name_of(op)


def _converted(c: Conversion, name: str) -> Values:
    if (convert := CONVERSIONS.get(name)) is None:
        raise Unsupported()
    return convert(c)


def _quantized(c: Conversion, name: str) -> Values:
    """Converts an operation on quantized elements; see quantized.py."""
    if c.op.regions:
        raise Unsupported("with a region on quantized elements")
    if moves_integers(c.op):
        return _converted(replace(c, op=retyped(c.op, stored)), name)
    b = TensorBuilder(c.into, c.op.location)
    pairs = zip(c.inputs, c.op.operands, strict=True)
    inputs = [dequantized(b, value, operand.type) for value, operand in pairs]
    results: Values = inputs
    if name not in CONVERTING:
        op = retyped(c.op, expressed)
        results = _converted(replace(c, op=op, inputs=inputs), name)
    numbers = zip(results, c.op.results, strict=True)
    return [quantized(b, value, result.type) for value, result in numbers]


# Values from outside that regions use


def _has_unknown(types: Sequence[Attribute]) -> bool:
    return any(
        isinstance(type, TensorType) and DYNAMIC_INDEX in type.get_shape()
        for type in types
    )


def _captured(*regions: Region) -> Iterator[SSAValue]:
    """The values from outside that operations in the regions use, each once."""
    inside: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    for region in regions:
        for block in _blocks(region):
            inside.update(block.args)
            inside.update(result for op in block.ops for result in op.results)
    for region in regions:
        for op in region.walk():
            for operand in op.operands:
                if operand not in inside and operand not in seen:
                    seen.add(operand)
                    yield operand


def _blocks(region: Region) -> Iterator[Block]:
    for block in region.blocks:
        yield block
        for op in block.ops:
            for inner in op.regions:
                yield from _blocks(inner)


def _constant(value: SSAValue) -> list[TensorOp] | None:
    """The operations that compute `value` if it is a constant, or else None."""
    owner = value.owner
    if isinstance(owner, ConstantOp | SizeOp):
        return [owner]
    if isinstance(owner, BroadcastInDimOp):
        made = _constant(owner.inputs[0])
        return made and [*made, owner]
    return None


class _Enclosed:
    """A new block, with a mapping of values from outside to values in it."""

    def __init__(self, carried: Sequence[AnyTensor], outside: Values):
        """`outside`: values at level 1 that become arguments after the carried ones."""
        types = [*map(VariableType, carried), *(v.type for v in outside)]
        self.block = Block(arg_types=types)
        self.ops: list[Operation] = []
        self.variables = self.block.args[: len(carried)]
        self._arguments = dict[SSAValue, SSAValue](
            zip(outside, self.block.args[len(carried) :], strict=True)
        )

    def value(self, outside: SSAValue) -> SSAValue:
        """The argument for a value from outside, or a clone of a constant."""
        if outside not in self._arguments:
            made: list[SSAValue] = []
            for op in _constant(outside) or ():
                copy = type(op).create(
                    operands=made,
                    result_types=[r.type for r in op.results],
                    properties=op.properties,
                    location=op.location,
                )
                self.ops.append(copy)
                made = list[SSAValue](copy.results)
            self._arguments[outside] = made[0]
        return self._arguments[outside]

    def region(self, *yields: SSAValue) -> Region:
        self.block.add_ops([*self.ops, YieldOp(*yields)])
        return Region(self.block)


def _called(inner: LocationAttr, call: LocationAttr) -> LocationAttr:
    """The location of an operation in a function that is called at `call`."""
    if isinstance(inner, UnknownLoc):
        return call
    if not isinstance(inner, NameLoc):
        return inner
    path, place = inner.desc.data, inner.location
    around: Attribute = call
    if isinstance(call, NameLoc):
        path, around = f"{call.desc.data}/{path}", call.location
    return NameLoc(StringAttr(path), around if isinstance(place, UnknownLoc) else place)


def _passed(values: Values) -> Values:
    """The values that become arguments of the region, each once: all but constants."""
    return [v for v in dict.fromkeys(values) if _constant(v) is None]


# Loops and branches


def _while(inliner: Inliner, c: Conversion, scope: Scope) -> Values:
    condition, body = c.op.regions
    end = body.block.last_op
    assert end is not None
    numbers = range(len(c.inputs))
    carried = [k for k in numbers if end.operands[k] is not body.block.args[k]]
    unchanged = [k for k in numbers if k not in carried and _is_used(c.op, k, end)]
    captured = list(_captured(condition, body))
    outside = [*(c.inputs[k] for k in unchanged), *(scope[v] for v in captured)]
    inputs = [*(c.inputs[k] for k in carried), *_passed(outside)]
    types = [cast(AnyTensor, c.inputs[k].type) for k in carried]
    regions: list[Region] = []
    for region in (condition, body):
        new = _Enclosed(types, inputs[len(carried) :])
        arguments = region.block.args
        inner = dict(zip(arguments, c.inputs, strict=True))  # for unused arguments
        inner |= {arguments[k]: new.value(c.inputs[k]) for k in unchanged}
        inner |= {value: new.value(scope[value]) for value in captured}
        for variable, k in zip(new.variables, carried, strict=True):
            if arguments[k].uses:
                read = ReadOp(variable)
                new.ops.append(read)
                inner[arguments[k]] = read.result
        results = inliner.block(region.block, inner, new.ops)
        if region is condition:
            regions.append(new.region(*results))
            continue
        for variable, k in zip(new.variables, carried, strict=True):
            new.ops.append(AssignOp(variable, results[k]))
        regions.append(new.region())
    loop = WhileOp(inputs, result_types=types, regions=regions)
    loop.location = c.op.location
    c.into.append(loop)
    results = dict(zip(carried, loop.res, strict=True))
    return [results.get(k, c.inputs[k]) for k in numbers]


def _is_used(loop: Operation, number: int, end: Operation) -> bool:
    """Whether a region uses an argument other than by yielding it unchanged."""
    return any(
        use.operation is not end or use.index != number
        for region in loop.regions
        for use in region.block.args[number].uses
    )


def _if(inliner: Inliner, c: Conversion, scope: Scope) -> Values:
    """The first region if the operand, an i1, is true, or else the second."""
    if _is_nothing(inliner, c):
        return ()
    return _branch(inliner, c, c.op.regions, c.inputs[0], scope, c.into)


def _case(inliner: Inliner, c: Conversion, scope: Scope) -> Values:
    """The region with the operand's number, or the last one if there is none."""
    if _is_nothing(inliner, c):
        return ()
    return _choose(inliner, c, 0, c.inputs[0], scope, c.into)


def _is_nothing(inliner: Inliner, c: Conversion) -> bool:
    """Whether the operation has no results and no effects.

    JAX writes branches without results; what their regions compute is unused.
    """
    if c.op.results:
        return False
    within: list[Operation] = [c.op]
    for op in within:  # functions that are called are appended
        for inner in op.walk():
            if name_of(inner) in _WITH_EFFECTS:
                return False
            if isinstance(inner, CallOp):
                callee = inliner.functions.get(inner.callee.string_value())
                if callee is None:
                    return False
                if callee not in within:
                    within.append(callee)
    return True


_WITH_EFFECTS = {
    f"stablehlo.{name}"
    for name in ("composite", "custom_call", "infeed", "outfeed", "recv", "send")
}


def _choose(
    inliner: Inliner,
    c: Conversion,
    number: int,
    index: SSAValue,
    scope: Scope,
    into: list[Operation],
) -> Values:
    """Branches to one of the regions from `number` on."""
    regions = c.op.regions[number:]
    if len(regions) == 1:
        return inliner.block(regions[0].block, {**scope}, into)
    type = cast(AnyTensor, index.type)
    element = cast(IntegerType, type.element_type)
    constant = ConstantOp(IntegerAttr(number, element), type)
    compare = CompareOp(
        (index, constant.result),
        result_types=(with_element(type, i1),),
        properties={"direction": StringAttr("EQ")},
    )
    into += [constant, compare]

    def others(scope: Scope, index: SSAValue, into: list[Operation]) -> Values:
        return _choose(inliner, c, number + 1, index, scope, into)

    return _branch(inliner, c, regions, compare.result, scope, into, (index, others))


Others = Callable[[Scope, SSAValue, list[Operation]], Values]


def _branch(
    inliner: Inliner,
    c: Conversion,
    regions: Sequence[Region],
    predicate: SSAValue,
    scope: Scope,
    into: list[Operation],
    others: tuple[SSAValue, Others] | None = None,
) -> Values:
    """Branches to the first or the second region. The second branch is the result of
    `others` for an index, if it is given.
    """
    captured = list(_captured(*regions))
    outside = [scope[value] for value in captured]
    if others:
        outside.append(others[0])
    passed = _passed(outside)
    new_regions: list[Region] = []
    for number, region in enumerate(regions[:2]):
        new = _Enclosed((), passed)
        inner = {value: new.value(scope[value]) for value in captured}
        if number and others:
            yields = others[1](inner, new.value(others[0]), new.ops)
        else:
            yields = inliner.block(region.block, inner, new.ops)
        new_regions.append(new.region(*yields))
    types = [stored(result.type) for result in c.op.results]
    branch = IfOp((predicate, *passed), result_types=types, regions=new_regions)
    branch.location = c.op.location
    if types or has_side_effect(branch):
        into.append(branch)
    return branch.res


_CONTROL: Mapping[str, Callable[[Inliner, Conversion, Scope], Values]] = {
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
}

KNOWN = {*_CONTROL, *CONVERSIONS, "stablehlo.composite", "stablehlo.return"}
"""The names of operations that are supported, at least in some forms."""
