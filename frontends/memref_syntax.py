"""The custom syntax of the memref operations that xDSL 0.74 reads in generic form only.

    memref.copy %a, %b : memref<4xf32> to memref<4xf32>
    %c = memref.cast %a : memref<4xf32> to memref<?xf32>
    %d = memref.memory_space_cast %a : memref<4xf32> to memref<4xf32, "cpu:0">
    %p = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index
    memref.global "private" constant @g : memref<2xf32> = dense<[1.0, 2.0]>

as MLIR prints them; `scf.while : () -> () {`, a loop that carries nothing; and
`scf.execute_region` and the default of `scf.index_switch` without `scf.yield`, as xDSL
and MLIR print them. The classes here only
parse: they return operations of xDSL's classes.
"""

from collections.abc import Sequence
from typing import ClassVar, TypeVar, cast

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyDenseElement,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.traits import IsTerminator

from ..dialects.tgraph.base import AnyMemRef
from .foreign import unregistered_op

CastT = TypeVar("CastT", bound=Operation)
OperationT = TypeVar("OperationT", bound=Operation)


class CopySyntax(memref.CopyOp):
    @classmethod
    def parse(cls, parser: Parser) -> memref.CopyOp:
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        destination = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_keyword("to")
        destination_type = parser.parse_type()
        op = memref.CopyOp(
            parser.resolve_operand(source, source_type),
            parser.resolve_operand(destination, destination_type),
        )
        op.attributes.update(attributes)
        return op


class CastSyntax(memref.CastOp):
    @classmethod
    def parse(cls, parser: Parser) -> memref.CastOp:
        return _parse_cast(parser, memref.CastOp)


class MemorySpaceCastSyntax(memref.MemorySpaceCastOp):
    @classmethod
    def parse(cls, parser: Parser) -> memref.MemorySpaceCastOp:
        return _parse_cast(parser, memref.MemorySpaceCastOp)


def _parse_cast(parser: Parser, op_type: type[CastT], arrow: str = "to") -> CastT:
    source = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    source_type = parser.parse_type()
    parser.parse_characters(arrow)
    operand: SSAValue = parser.resolve_operand(source, source_type)
    return op_type.create(
        operands=[operand], result_types=[parser.parse_type()], attributes=attributes
    )


class PointerSyntax(memref.ExtractAlignedPointerAsIndexOp):
    @classmethod
    def parse(cls, parser: Parser) -> memref.ExtractAlignedPointerAsIndexOp:
        return _parse_cast(parser, memref.ExtractAlignedPointerAsIndexOp, "->")


class GlobalSyntax(memref.GlobalOp):
    @classmethod
    def parse(cls, parser: Parser) -> memref.GlobalOp:
        visibility = parser.parse_optional_str_literal() or "public"
        constant = UnitAttr() if parser.parse_optional_keyword("constant") else None
        name = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        if not isinstance(type, MemRefType):
            parser.raise_error(f"{name.data} has type {type}, expected a memref")
        contents = cast(AnyMemRef, type)
        parser.parse_punctuation("=", ": a global that is defined elsewhere")
        if parser.parse_optional_keyword("uninitialized"):
            value = UnitAttr()
        else:
            parser.parse_keyword("dense")
            element = cast(AnyDenseElement, contents.element_type)
            value = parser.parse_dense_int_or_fp_elements_attr(
                TensorType(element, contents.get_shape())
            )
        attributes = parser.parse_optional_attr_dict()
        alignment = attributes.pop("alignment", None)
        op = memref.GlobalOp.get(
            name,
            contents,
            value,
            StringAttr(visibility),
            constant,
            cast(IntegerAttr[IntegerType] | None, alignment),
        )
        op.attributes.update(attributes)
        return op


class WhileSyntax(scf.WhileOp):
    @classmethod
    def parse(cls, parser: Parser) -> scf.WhileOp:
        if not parser.parse_optional_punctuation(":"):
            return scf.WhileOp.parse(parser)
        results = parser.parse_function_type().outputs
        before = parser.parse_region()
        parser.parse_characters("do")
        after = parser.parse_region()
        op = scf.WhileOp((), results.data, before, after)
        if attributes := parser.parse_optional_attr_dict_with_keyword():
            op.attributes.update(attributes.data)
        return op


class ExecuteRegionSyntax(scf.ExecuteRegionOp):
    @classmethod
    def parse(cls, parser: Parser) -> scf.ExecuteRegionOp:
        return _terminated(scf.ExecuteRegionOp.parse(parser))


class IndexSwitchSyntax(scf.IndexSwitchOp):
    @classmethod
    def parse(cls, parser: Parser) -> scf.IndexSwitchOp:
        return _terminated(scf.IndexSwitchOp.parse(parser))


def _terminated(op: OperationT) -> OperationT:
    """Adds the `scf.yield` that the text of a region leaves out."""
    for region in op.regions:
        if region.last_block is None:
            region.add_block(Block())
        block = region.last_block
        last = block.last_op if block else None
        if block and not (last and last.has_trait(IsTerminator)):
            block.add_op(scf.YieldOp())
    return op


class _TransferSyntax(Operation):
    """The syntax of a DMA transfer, or of the wait for one."""

    ITEMS: ClassVar[str]
    """The leading operands: memrefs with indices (`m`) and numbers (`#`)."""
    STRIDES: ClassVar[Sequence[int]] = (0,)
    """The allowed numbers of trailing operands."""
    MAPS: ClassVar[Sequence[str]] = ()
    """The names of affine maps of the indices; without, the indices are operands."""

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        found: list[tuple[UnresolvedOperand, Sequence[SSAValue] | None]] = []
        maps: list[AffineMapAttr] = []
        for item in cls.ITEMS:
            if found:
                parser.parse_punctuation(",")
            operand, index = parser.parse_unresolved_operand(), None
            if item == "m" and cls.MAPS:
                of_index, index = parser.parse_affine_map_of_ssa_ids()
                maps.append(_on_dimensions(of_index))
            elif item == "m":
                index = parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, lambda: _parse_number(parser)
                )
            found.append((operand, index))
        numbers: list[SSAValue] = []
        while parser.parse_optional_punctuation(","):
            numbers.append(_parse_number(parser))
        if len(numbers) not in cls.STRIDES:
            expected = " or ".join(map(str, cls.STRIDES))
            parser.raise_error(
                f"{cls.name} has {len(numbers)} operands for strides, expected "
                f"{expected}"
            )
        attributes = parser.parse_optional_attr_dict()
        attributes |= dict(zip(cls.MAPS, maps, strict=True))
        separator = ":"
        operands: list[SSAValue] = []
        for operand, index in found:
            if index is None:
                operands.append(parser.resolve_operand(operand, IndexType()))
                continue
            parser.parse_punctuation(separator)
            separator = ","
            start, type = parser.pos, parser.parse_type()
            if not isinstance(type, MemRefType):
                message = f"{cls.name} has {type}, expected a memref"
                parser.raise_error(message, start, parser.pos)
            memref_type = cast(AnyMemRef, type)
            operands += parser.resolve_operand(operand, memref_type), *index
        return unregistered_op(cls.name).create(
            operands=[*operands, *numbers], attributes=attributes
        )


def _parse_number(parser: Parser) -> SSAValue:
    return parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())


def _on_dimensions(map: AffineMap) -> AffineMapAttr:
    """Replaces symbols by dimensions: induction variables can't be symbols."""
    dims = [AffineExpr.dimension(number) for number in range(map.num_symbols)]
    results = [x.replace_dims_and_symbols((), dims) for x in map.results]
    return AffineMapAttr(AffineMap(map.num_symbols, 0, tuple(results)))


class DmaStartSyntax(_TransferSyntax):
    name = "memref.dma_start"
    ITEMS = "mm#m"
    STRIDES = (0, 2)


class DmaWaitSyntax(_TransferSyntax):
    name = "memref.dma_wait"
    ITEMS = "m#"


class AffineDmaStartSyntax(_TransferSyntax):
    name = "affine.dma_start"
    ITEMS = "mmm#"
    STRIDES = (0, 2)
    MAPS = ("src_map", "dst_map", "tag_map")


class AffineDmaWaitSyntax(_TransferSyntax):
    name = "affine.dma_wait"
    ITEMS = "m#"
    MAPS = ("tag_map",)


_AFFINE: Sequence[type[Operation]] = (
    (AffineDmaStartSyntax, AffineDmaWaitSyntax)
    if hasattr(Parser, "parse_affine_map_of_ssa_ids")  # xDSL 0.69 has none
    else ()
)

SYNTAX: dict[str, type[Operation]] = {
    syntax.name: syntax
    for syntax in (
        CopySyntax,
        CastSyntax,
        MemorySpaceCastSyntax,
        PointerSyntax,
        GlobalSyntax,
        WhileSyntax,
        ExecuteRegionSyntax,
        IndexSwitchSyntax,
        DmaStartSyntax,
        DmaWaitSyntax,
        *_AFFINE,
    )
}
