"""Parses MLIR text: xDSL's parser, extended to read the output of MLIR and JAX.

    parse_module(text, "model.mlir", ctx)

It differs from xDSL's own parser in that
  - every operation gets a source location, `file:line:col` of its name, as in MLIR; an
    explicit `loc(...)` takes precedence: its innermost file, line and column, or the
    start of a range;
  - `dense<0xFF800000> : tensor<f32>` is the float with these bits (xDSL 0.74 reads the
    integer's value, 4286578688.0);
  - a splat `stablehlo.constant` is stored as one element, whatever its shape;
  - types and attributes with the same text are parsed only once, which makes parsing
    about three times faster;
  - location aliases that are defined after their uses, as MLIR prints them at the end
    of the file, are ignored;
  - the layout of a memref may be an attribute of an unregistered dialect;
  - it reads the custom syntax of more memref operations (see `memref_syntax.py`);
  - affine maps may multiply and divide by symbols;
  - an operation in generic form that does not match its definition in xDSL, because the
    definition in MLIR has changed (a new property, other operands), becomes an
    unregistered operation.

Does not: read the custom syntax of dialects that xDSL lacks.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import ClassVar, TypeGuard, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyDenseElement,
    AnyFloat,
    ArrayAttr,
    CallSiteLoc,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FusedLoc,
    IndexType,
    IntAttr,
    IntegerType,
    LocationAttr,
    MemRefLayoutAttr,
    MemRefType,
    ModuleOp,
    NameLoc,
    NoneAttr,
    RankedStructure,
    StringAttr,
    TensorType,
    UnknownLoc,
    UnrankedMemRefType,
    UnregisteredAttr,
    UnregisteredOp,
)
from xdsl.dialects.func import Func
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineExpr,
    AffineMap,
)
from xdsl.irdl import AttrConstraint, IRDLOperation, base, irdl_attr_definition
from xdsl.parser import AttrParser, Parser, ParserState
from xdsl.parser.affine_parser import AffineParser
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Input, Position, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind

from ..analysis.loops import TRIP_COUNT
from ..dialects.diagnostics import name_of, remark
from ..dialects.memory import (
    ALIGNMENT,
    ARENA,
    BUFFER,
    asynchronous,
    is_done_at_its_end,
    is_view,
)
from ..dialects.sizes.dims import BOUNDS, DIMS, HINTS, REQUIRES
from ..dialects.tgraph import base as tgraph
from ..dialects.tgraph.base import LARGEST_SIZE
from ..dialects.tgraph.differentiation import MIRROR, RECOMPUTED
from ..support.choices import suggest
from .foreign import unregistered_op

MLIRS_DIALECTS = frozenset(
    "affine arith bufferization cf gpu index linalg math memref scf tensor "
    "vector".split()
)
"""Dialects of MLIR that xDSL lacks, or has incompletely, or from an older MLIR."""

_ATTRIBUTES = (
    *(ALIGNMENT, ARENA, BUFFER, BOUNDS, DIMS, HINTS, REQUIRES, MIRROR, RECOMPUTED),
    *(tgraph.DEVICE, tgraph.DONATED, tgraph.GROUP, tgraph.IN_PLACE, tgraph.NAME),
    *(tgraph.ON_DEMAND, tgraph.PARAMETER, tgraph.PRECOMPUTED, tgraph.RESULT),
    *(tgraph.STREAM, tgraph.TILES, tgraph.VARIABLE, TRIP_COUNT),
)
"""The attributes of tgraph that operations, arguments and modules may have."""

_MISTAKES = (
    ArithmeticError,
    AssertionError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)

AttributeT = TypeVar("AttributeT", bound=Attribute)


def parse_module(
    text: str, name: str, ctx: Context, *, first_line: int = 1
) -> ModuleOp:
    """Parses `text` as a module; messages call its file `name`.

    `first_line` is the line number of the text in its file. Operations of dialects that
    `ctx` does not register become `UnregisteredOp`s if `ctx` allows them. Raises xDSL's
    `ParseError`.
    """
    parser = MLIRTextParser(ctx, "\n" * (first_line - 1) + text, name)
    try:
        parser.expect_something()
        module = parser.parse_module()
        parser.tell_of_refused()
        return module
    except RecursionError:
        parser.raise_error("the program is nested too deeply")
    except VerifyException as error:  # from an attribute or type, without a location
        parser.raise_error(str(error))
    except _MISTAKES as error:  # raised by bugs in xDSL's parsers
        parser.raise_error(f"cannot parse this ({type(error).__name__}: {error})")


def parse_attribute(text: str, ctx: Context) -> Attribute:
    """Parses `text` as an attribute or type; a splat is stored as one element.

    Raises `ParseError`.
    """
    parser = MLIRTextParser(ctx, text, "attribute")
    parser.compact_splats = True
    return parser.parse_attribute()


def permissive(ctx: Context) -> Context:
    """`ctx` with `func`, and with operations of any dialect allowed, for level 0."""
    clone = _Permissive(**vars(ctx.clone()))
    clone.allow_unregistered = True
    if "func" not in clone.registered_dialect_names:
        clone.load_dialect(Func)
    return clone


class _Permissive(Context):
    """Allows unregistered attributes and types.

    Each name has a class, which takes a millisecond to define. Classes are cached in
    the process, not in each context.
    """

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        with self._registered_alone():
            found = super().get_optional_type(name)
        return found or cast(type[TypeAttribute], _unregistered(name, True))

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        with self._registered_alone():
            found = super().get_optional_attr(name)
        return found or _unregistered(name, False)

    @contextmanager
    def _registered_alone(self) -> Generator[None]:
        self.allow_unregistered = False
        try:
            yield
        finally:
            self.allow_unregistered = True


@cache
def _unregistered(name: str, is_type: bool) -> type[UnregisteredAttr]:
    return UnregisteredAttr.with_name_and_type(name, is_type)


@irdl_attr_definition(init=False)
class ForeignLayout(UnregisteredAttr, MemRefLayoutAttr):
    """A memref layout of an unregistered dialect. It is kept as it is; where the
    elements lie is unknown.
    """

    def get_affine_map(self) -> AffineMap:
        raise NotImplementedError(f"the map of {self}")


@cache
def _dense() -> AttrConstraint[RankedStructure[AnyDenseElement]]:
    """The constraint on types of dense literals, cached because it is slow to make."""
    return base(RankedStructure[AnyDenseElement])


def _is_dense(type: Attribute) -> TypeGuard[RankedStructure[AnyDenseElement]]:
    return _dense().verifies(type) and type.has_static_shape()


def _no_syntax(name: str) -> str:
    """The message about the first word of an operation whose syntax is not known."""
    if "." not in name:
        return f"expected an operation such as func.func, found {name!r}; is this MLIR?"
    return (
        f"the custom syntax of {name} is not known, expected the generic form, "
        f'"{name}"(...) : ...; mlir-opt -mlir-print-op-generic prints it'
    )


def _has_no_syntax(op_type: type[Operation]) -> bool:
    """Whether xDSL reads operations of this type in generic form only."""
    return getattr(op_type.parse, "__func__", None) is Operation.parse.__func__


def _refusal(op: Operation) -> str | None:
    """Why xDSL's definition of an operation of MLIR rejects `op`, or None."""
    if not isinstance(op, IRDLOperation) or not _is_xdsls(type(op)):
        return None
    try:
        type(op).get_irdl_definition().verify(op)
        if _hides_sizes(op):
            op.verify_()
    except VerifyException as error:
        return str(error).partition("\n")[0].rstrip(":")
    return None


def _as_foreign(op: Operation) -> Operation:
    """Makes an operation with the parts of `op`, but without xDSL's definition."""
    operands, op.operands = list(op.operands), ()
    return unregistered_op(op.name).create(
        operands=operands,
        result_types=op.result_types,
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
        successors=op.successors,
        regions=[op.detach_region(region) for region in list(op.regions)],
    )


def _accept_indices(op: Operation) -> None:
    """Replaces each `linalg.index` in the body of an operation of linalg other than
    `linalg.generic`, where MLIR allows it and xDSL does not."""
    for inner in [op for region in op.regions for b in region.blocks for op in b.ops]:
        if inner.name == "linalg.index":
            Rewriter.replace_op(inner, _as_foreign(inner))


def _hides_sizes(op: Operation) -> bool:
    """Whether a cast's type has a `?` for a known size, as MLIR allows."""
    return isinstance(op, memref.ReinterpretCastOp) and any(
        known != DYNAMIC_INDEX == size
        for known, size in zip(
            op.static_sizes.get_values(), op.result.type.get_shape(), strict=False
        )
    )


@cache
def _is_xdsls(op_type: type[Operation]) -> bool:
    is_xdsls = op_type.__module__.startswith("xdsl.dialects.")
    return is_xdsls and op_type.dialect_name() not in ("builtin", "func")


def _is_in_question(op: Operation) -> bool:
    """Whether `op` has memrefs, and its effects on them don't follow from its name."""
    if is_view(op) or is_done_at_its_end(op) or asynchronous(op):
        return False
    return any(
        isinstance(value.type, MemRefType | UnrankedMemRefType)
        for value in (*op.operands, *op.results)
    )


def innermost(location: Attribute) -> FileLineColLoc | None:
    """The innermost file, line and column of `location`; None if there is none."""
    match location:
        case FileLineColLoc():
            return location
        case NameLoc():
            return innermost(location.location)
        case CallSiteLoc():
            return innermost(location.callee)
        case FusedLoc():
            places = map(innermost, cast(ArrayAttr[Attribute], location.locations))
            return next((place for place in places if place), None)
        case _:
            return None


class _Lexer(MLIRLexer):
    # xDSL's regex takes exponential time for an unterminated string.
    _unescaped_characters_regex = re.compile(
        r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"'
    )


class _MapParser(AffineParser):
    # xDSL rejects operators on two values, as in `d0 * s0`.
    def _create_binop_expr(
        self, lhs: AffineExpr, rhs: AffineExpr, binop: MLIRToken
    ) -> AffineExpr:
        try:
            return super()._create_binop_expr(lhs, rhs, binop)
        except NotImplementedError:
            return AffineBinaryOpExpr(_OPERATORS[binop.text], lhs, rhs)


_OPERATORS = {
    "*": AffineBinaryOpKind.Mul,
    "ceildiv": AffineBinaryOpKind.CeilDiv,
    "floordiv": AffineBinaryOpKind.FloorDiv,
    "mod": AffineBinaryOpKind.Mod,
}


class MLIRTextParser(Parser):
    def __init__(self, ctx: Context, text: str, name: str):
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(_Lexer(Input(text, name)))
        self._file = StringAttr(name)
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._starts: list[Position] = []
        self._is_custom = False
        self.compact_splats = False
        self._refused: dict[str, list[tuple[Operation, str]]] = {}
        self._memo: dict[tuple[str, str], Attribute] = {}

    # Locations

    def parse_operation(self) -> Operation:
        op = super().parse_operation()
        start = self._starts.pop()
        op.location = innermost(op.location) or self._place(start)
        if op.regions:
            self._check_operands(op, start)
        return op

    def _check_operands(self, op: Operation, start: Position) -> None:
        """Rejects operands that are defined only in a region of the operation.

        xDSL resolves such forward references in the region, but the operation keeps the
        placeholders.
        """
        references = self.forward_ssa_references.values()
        pending = {value for values in references for value in values.values()}
        for index, operand in enumerate(op.operands):
            if isinstance(operand, ForwardDeclaredValue) and operand not in pending:
                self.raise_error(
                    f"{name_of(op)}: operand {index} is used before it is defined",
                    start,
                )

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        self._starts.append(self.pos)
        self._is_custom = self._current_token.kind is MLIRTokenKind.BARE_IDENT
        return results

    def _place(self, position: Position) -> FileLineColLoc:
        line = bisect_left(self._newlines, position)
        before = self._newlines[line - 1] if line else -1
        return FileLineColLoc(self._file, IntAttr(line + 1), IntAttr(position - before))

    def _parse_location(self) -> LocationAttr:
        token = self._current_token
        if (
            token.kind is MLIRTokenKind.HASH_IDENT
            and token.text not in self.attribute_aliases
        ):
            self._consume_token()
            return UnknownLoc()
        location = super()._parse_location()
        if isinstance(location, FileLineColLoc) and self.parse_optional_keyword("to"):
            self.parse_optional_integer(False, False)
            self.parse_punctuation(":")
            self.parse_integer(False, False)
        return location

    # Operations that xDSL lacks, or has incompletely

    def _get_op_by_name(self, name: str) -> type[Operation]:
        self.compact_splats = name == "stablehlo.constant"
        if not self._is_custom and self._is_missing(name):
            return unregistered_op(name)
        if self._is_custom and name.startswith(("affine.", "memref.", "scf.")):
            from .memref_syntax import SYNTAX

            if name in SYNTAX:
                return SYNTAX[name]
        op_type = super()._get_op_by_name(name)
        is_foreign = issubclass(op_type, UnregisteredOp)
        if self._is_custom and (is_foreign or _has_no_syntax(op_type)):
            end = self._starts[-1] + len(name)
            self.raise_error(_no_syntax(name), self._starts[-1], end)
        return unregistered_op(name) if is_foreign else op_type

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        op = super()._parse_generic_operation(op_type)
        if name_of(op).startswith("linalg.") and name_of(op) != "linalg.generic":
            _accept_indices(op)
        if isinstance(op, UnregisteredOp):
            if self._is_missing(name_of(op)):
                self._note_refused(op, "xDSL has none")
            return op
        reason = _refusal(op)
        if reason is None:
            return op
        foreign = _as_foreign(op)
        self._note_refused(foreign, reason)
        return foreign

    def _parse_attribute_entry(self) -> tuple[str, Attribute]:
        start = self._current_token.span
        name, value = super()._parse_attribute_entry()
        if name.startswith("tgraph.") and name not in _ATTRIBUTES:
            known = suggest(name, _ATTRIBUTES)
            self.raise_error(f"attribute {name} is not known{known}", start)
        return name, value

    def _is_missing(self, name: str) -> bool:
        """Whether the operation `name` is of a dialect of MLIR, and xDSL lacks it."""
        if name.partition(".")[0] not in MLIRS_DIALECTS:
            return False
        op_type = self.ctx.get_optional_op(name)
        return op_type is None or issubclass(op_type, UnregisteredOp)

    def _lacks_attribute(self, name: str) -> bool:
        """Whether the attribute `name` is of a dialect of MLIR, and xDSL lacks it."""
        is_mlirs = name.partition(".")[0] in MLIRS_DIALECTS and "." in name
        return is_mlirs and self.ctx.get_optional_attr(name) is None

    def _note_refused(self, op: Operation, reason: str) -> None:
        self._refused.setdefault(name_of(op), []).append((op, reason))

    def expect_something(self) -> None:
        """Rejects text that has only spaces and comments."""
        if self._current_token.kind is MLIRTokenKind.EOF:
            self.raise_error(
                "the program is empty, expected an operation such as func.func"
            )

    def tell_of_refused(self) -> None:
        """Emits one remark for each name of rejected operations on memrefs."""
        for name, refused in self._refused.items():
            found = [(op, reason) for op, reason in refused if _is_in_question(op)]
            if not found:
                continue
            op, reason = found[0]
            times = f", {len(found)} times" if found[1:] else ""
            remark(
                f"{name} does not match the definition in xDSL ({reason}){times}: its "
                "effects on memrefs are unknown",
                op,
            )

    # Types

    def parse_affine_map(self) -> AffineMap:
        return _MapParser(self._parser_state).parse_affine_map()

    def parse_shape_dimension(self, allow_dynamic: bool = True) -> int:
        span = self._current_token.span
        size = super().parse_shape_dimension(allow_dynamic)
        if size > LARGEST_SIZE:
            self.raise_error(
                f"dimension has size {size}, expected at most {LARGEST_SIZE}", span
            )
        return size

    # Constants

    class _TensorLiteralElement(
        AttrParser._TensorLiteralElement  # pyright: ignore[reportPrivateUsage]
    ):
        def to_type(
            self,
            parser: AttrParser,
            type: AnyFloat | IntegerType | IndexType | ComplexType,
        ) -> int | float | tuple[int, int] | tuple[float, float]:
            if isinstance(type, AnyFloat) and "0x" in self.span.text:
                return self._float_of_bits(parser, type)
            return super().to_type(parser, type)

        def _float_of_bits(self, parser: AttrParser, type: AnyFloat) -> float:
            bits = self.value
            assert isinstance(bits, int)
            if self.is_negative or bits >= 1 << type.bitwidth:
                parser.raise_error(
                    f"float constant is {self.span.text}, expected the "
                    f"{type.bitwidth} bits of an {type}",
                    self.span,
                )
            return type.unpack(bits.to_bytes(type.compile_time_size, "little"), 1)[0]

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        following = self.lexer.input.at(self._current_token.span.end)
        if not self.compact_splats or type is not None or following in (*'[">', None):
            return super().parse_dense_int_or_fp_elements_attr(type)
        self.parse_punctuation("<", " in dense attribute")
        element = self._parse_tensor_literal_element()
        self.parse_punctuation(">", " in dense attribute")
        self.parse_punctuation(":", " in dense attribute")
        type = self._parse_dense_literal_type()
        scalar = TensorType(cast(AnyFloat, type.element_type), ())
        value = cast(float, element.to_type(self, type.element_type))
        one = DenseIntOrFPElementsAttr.from_list(scalar, [value])
        return DenseIntOrFPElementsAttr(type, one.data)

    def _parse_dense_literal_type(self) -> RankedStructure[AnyDenseElement]:
        start = self.pos
        type = self.parse_type()
        if _is_dense(type):
            return type
        self._resume_from(start)
        return super()._parse_dense_literal_type()  # raises an error

    # Memoized text

    _BRACKETED: ClassVar = re.compile(
        r"""\w*+<(?:->|[^<>"]|"[^"]*+"
            |<(?:->|[^<>"]|"[^"]*+"|<(?:->|[^<>"])*+>)*+>)*+>""",
        re.VERBOSE,
    )
    _BLANK: ClassVar = re.compile(r"(?:\s|//[^\n]*)*+")

    def _memoized(
        self, name: str, parse: Callable[[], AttributeT | None]
    ) -> AttributeT | None:
        """Returns `parse()`, or its cached result for the same text `x<...>`."""
        content = self.lexer.input.content
        match = self._BRACKETED.match(content, self.pos)
        if match is None or match.end() - match.start() > 1000:
            return parse()
        key = (name, match.group())
        if (known := self._memo.get(key)) is not None:
            self._resume_from(match.end())
            return cast(AttributeT, known)
        result = parse()
        blank = self._BLANK.match(content, match.end())
        if result is not None and blank and blank.end() == self.pos:
            self._memo[key] = result
        return result

    def _parse_optional_builtin_parametrized_type(self) -> TypeAttribute | None:
        parse = super()._parse_optional_builtin_parametrized_type
        if self._current_token.text not in ("tensor", "memref"):
            return parse()
        return self._memoized("type", parse)

    def _parse_optional_builtin_parametrized_attr(self) -> Attribute | None:
        parse = super()._parse_optional_builtin_parametrized_attr
        if self._current_token.text not in ("array", "strided", "affine_map"):
            return parse()
        return self._memoized("attribute", parse)

    def _parse_dialect_symbol_body(self) -> str:
        """The body, or a blank if it is empty: for an empty body, xDSL would print no
        brackets, but MLIR requires those of `#stablehlo.dot<>`.
        """
        return super()._parse_dialect_symbol_body() or " "

    def _parse_memref_attrs(self) -> MemRefType | UnrankedMemRefType:
        shape, element = self.parse_shape()
        given: list[Attribute] = []
        most = 1 if shape is None else 2
        while len(given) < most and self.parse_optional_punctuation(","):
            given.append(self.parse_attribute())
        if shape is None:
            return UnrankedMemRefType.from_type(element, *given)
        layout, *space = given or [NoneAttr()]
        if isinstance(layout, UnregisteredAttr) and space:
            layout = ForeignLayout(
                layout.attr_name, layout.is_type, layout.is_opaque, layout.value
            )
        if isinstance(layout, MemRefLayoutAttr | NoneAttr):
            return MemRefType(element, shape, layout, *space)
        if space:
            self.raise_error("Expected a MemRef layout attribute")
        return MemRefType(element, shape, memory_space=layout)

    def _parse_extended_type_or_attribute(
        self, attr_or_dialect_name: str, is_type: bool
    ) -> TypeAttribute:
        if not is_type and self._lacks_attribute(attr_or_dialect_name):
            foreign = _unregistered(attr_or_dialect_name, False)
            is_empty = self._current_token.kind is not MLIRTokenKind.LESS
            body = "" if is_empty else self._parse_dialect_symbol_body()
            attribute = foreign(attr_or_dialect_name, False, False, body)
            return cast(TypeAttribute, attribute)
        parse = super()._parse_extended_type_or_attribute
        result = self._memoized(
            ("!" if is_type else "#") + attr_or_dialect_name,
            lambda: parse(attr_or_dialect_name, is_type),
        )
        return cast(TypeAttribute, result)
