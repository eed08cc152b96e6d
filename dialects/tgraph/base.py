"""The base of all `tgraph` operations: their two forms, declarations and syntax.

A tensor operation has two forms, and a single class implements both:

    %r = tgraph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tgraph.add %a, %b outs(%r) : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>

The first form has value semantics (levels 0 and 1). The second form writes its
destination (levels 2 and 3). In between, assign elimination gives an operation on
tensors a variable as its destination:

    %r = tgraph.add %a, %b outs(%v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

This operation computes the sum into the variable %v, of type
`!tgraph.variable<tensor<4xf32>>`; %r is the variable's new contents. If all types are
equal, the signature is a single type.

The second form may name scratch memory for the kernel, whose contents are undefined
before and after the operation (like the workspace of XLA's custom calls):

    tgraph.convolution %x, %w outs(%r) workspace(%s : memref<4096xi8>) {...} : ...

The class of each operation is the only place that declares its shape rule
(`result_types_of`, and `refine` for partially known types), its fusion pattern, the
operands that it may overwrite, and the operands of which it uses only the shape.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cache, lru_cache
from math import prod
from typing import ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ComplexType,
    DenseArrayBase,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    UnrankedMemRefType,
    VectorType,
    i8,
    i32,
    i64,
)
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import (
    Attribute,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    SSAValues,
    TypeAttribute,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    irdl_attr_definition,
    opt_operand_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException

from ...support.choices import suggest
from ..diagnostics import LocatedVerifyError
from ..memory import DestinationStyle
from ..sizes.dims import DIMS, DimsAttr, encoding_of, known_sizes, static
from ..sizes.symbolic import Symbolic, typical
from .elements import computed_type, is_stored
from .partial import PartialTypes, is_complete

AnyTensor: TypeAlias = TensorType[Attribute]
AnyMemRef: TypeAlias = MemRefType[Attribute]
Shape: TypeAlias = tuple[int, ...]
"""The same type as in `support/arrays.py`, which would load NumPy."""

LARGEST_SIZE = 2**63 - 1
"""The largest size of a dimension: sizes are 64-bit integers, as in MLIR."""


VARIABLE = "tgraph.variable"
"""Unit attribute of a memref argument that was a variable, and is read and written."""

DONATED = "tgraph.donated"
"""Unit attribute of an argument whose memory the caller gives up: the memory may be
reused after the last read. It has no effect on variables, results and parameters."""

ON_DEMAND = "tgraph.on_demand"
"""Unit attribute of a function: the caller provides the memory of each result from its
first use on, and that of each donated argument until its last use, so a plan counts
the bytes of both while they are provided."""

RESULT = "tgraph.result"
"""Integer attribute of an argument: the result that it holds after the run."""

DEVICE = "tgraph.device"
"""String attribute of an argument, result or operation: the device to place it on."""

STREAM = "tgraph.stream"
"""Integer attribute of an operation: the stream of its device that it runs on; the
first is 0."""

GROUP = "tgraph.group"
"""String attribute in place of a device: an option of tgraph-place-devices maps groups
to devices. (MXNet's ctx_group.)"""

IN_PLACE = "tgraph.in_place"
"""Unit attribute of a concatenation whose operands are computed directly into it."""

TILES = "tgraph.tiles"
"""Integer attribute of a loop: the number of tiles that it computes."""

PARAMETER = "tgraph.parameter"
"""Unit attribute of an argument that is the same in every run, such as a weight."""

PRECOMPUTED = "tgraph.precomputed"
"""Integer attribute of an argument: the result of `@precompute` that it takes."""

NAME = "tgraph.name"
"""String attribute of an argument or a result: its name in the original model."""


class Pattern(IntEnum):
    """How result elements of an operation depend on its operands' (TVM's
    OpPatternKind).

    The order matters: a fusion of two operations has at least the larger pattern.
    """

    ELEMENTWISE = 0  # result[i] depends only on operands[i]
    BROADCAST = 1  # as elementwise, with operands repeated along dimensions
    INJECTIVE = 2  # each result element depends on one operand element
    REDUCTION = 3  # many operand elements make one result element
    OUT_ELEMENTWISE_FUSABLE = 4  # complex; elementwise consumers may join it
    OPAQUE = 8  # never fused


class Kind(ABCMeta):
    """A metaclass whose `isinstance` ignores virtual subclasses. With the checks for
    these, as in xDSL's operations, `isinstance` takes a tenth of the compile time."""

    __instancecheck__ = type.__instancecheck__


@irdl_attr_definition
class VariableType(ParametrizedAttribute, TypeAttribute, metaclass=Kind):
    """Storage that holds a tensor and keeps it between runs of the function.

    `tgraph.read` and `tgraph.assign` take effect in program order.
    """

    name = "tgraph.variable"

    tensor: AnyTensor

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            position = parser.pos
            tensor = parser.parse_type()
            if not isinstance(tensor, TensorType):
                parser.raise_error(
                    f"variable holds {tensor}, expected a tensor", position
                )
        return (cast(AnyTensor, tensor),)


def element_bytes(element_type: Attribute) -> int:
    """The bytes from one element in memory to the next, as MLIR lowers memrefs to LLVM.

    These are LLVM's allocation sizes on 64-bit processors (x86-64, AArch64): an `i1`
    takes a whole byte, an `i24` four, an `index` eight, an `f80` sixteen.
    """
    return _layout_of(element_type)[0]


def has_fixed_size(element_type: Attribute) -> bool:
    """Whether elements of this type have a size in memory; those of `none` do not."""
    try:
        _layout_of(element_type)
    except VerifyException:
        return False
    return True


def have_equal_sizes(one: Attribute, other: Attribute) -> bool:
    """Whether elements of both types have the same, known size in memory."""
    is_known = has_fixed_size(one) and has_fixed_size(other)
    return is_known and element_bytes(one) == element_bytes(other)


def element_alignment(element_type: Attribute) -> int:
    """The alignment of an element in memory, in bytes, as MLIR lowers it to LLVM."""
    return _layout_of(element_type)[1]


_LARGEST_SCALAR = 16
"""The bytes of the widest scalar that is aligned to its own size."""


@cache
def _layout_of(type: Attribute) -> tuple[int, int]:
    """The allocation size and the alignment of an element, in bytes."""
    if isinstance(type, IndexType):
        return 8, 8
    if isinstance(type, FixedBitwidthType) and type.bitwidth:
        stored = _power_of_two(type.size)
        alignment = min(stored, _LARGEST_SCALAR)
        return _padded(type.size, alignment), alignment
    if isinstance(type, ComplexType):
        size, alignment = _layout_of(cast(ComplexType, type).element_type)
        return 2 * size, alignment
    if isinstance(type, VectorType):
        return _layout_of_vector(cast(VectorType[Attribute], type))
    if isinstance(type, MemRefType):  # two pointers, an offset, sizes and strides
        return 24 + 16 * type.get_num_dims(), 8
    if isinstance(type, UnrankedMemRefType):  # a rank and a pointer
        return 16, 8
    raise VerifyException(f"element type {type} has no fixed size")


def _layout_of_vector(type: VectorType[Attribute]) -> tuple[int, int]:
    """The layout of a vector: LLVM has arrays of vectors for the outer dimensions."""
    if type.get_num_scalable_dims():
        raise VerifyException(f"element type {type} has no fixed size")
    *outer, lanes = type.get_shape() or (1,)
    element = type.element_type
    bits = 64 if isinstance(element, IndexType) else _bits_of(element)
    size = (lanes * bits + 7) // 8
    alignment = _power_of_two(size)
    return prod(outer) * _padded(size, alignment), alignment


def _bits_of(type: Attribute) -> int:
    if not isinstance(type, FixedBitwidthType):
        raise VerifyException(f"element type {type} has no fixed size")
    return type.bitwidth


def _padded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _power_of_two(number: int) -> int:
    """The smallest power of two that is `number` or more."""
    return 1 << (number - 1).bit_length()


def is_static(type: AnyTensor | AnyMemRef) -> bool:
    """Whether all sizes are numbers."""
    return DYNAMIC_INDEX not in type.get_shape()


def shape_of(type: AnyTensor) -> Shape:
    """The sizes of a tensor, including symbolic ones (`dialects/sizes/symbolic.py`).

    Symbolic sizes have the operators of ints, and are typed as ints here and in all
    rules. Only an unknown size is `?` (`DYNAMIC_INDEX`).
    """
    if isinstance(type.encoding, StringAttr):  # a device: the most frequent case
        return type.get_shape()
    return cast(Shape, known_sizes(type.get_shape(), type.encoding))


def without_ones(shape: Shape) -> Shape:
    """The sizes other than 1, which alone matter for memory and strides."""
    return tuple(size for size in shape if size != 1)


def value_shape(value: SSAValue) -> Shape:
    """The sizes of a value's tensor, including symbolic ones."""
    return shape_of(tensor_type_of(value.type))


def value_element(value: SSAValue) -> Attribute:
    """The element type of a value's tensor."""
    return tensor_type_of(value.type).element_type


def value_bytes(value: SSAValue) -> int:
    """The bytes of a value's tensor, as `typical_bytes` counts them."""
    return typical_bytes(tensor_type_of(value.type))


def typical_bytes(type: AnyTensor) -> int:
    """The bytes of a tensor, with typical values for symbolic sizes.

    0 for a tensor with an unknown size, `?`, or an unknown element type, `none`.
    """
    shape = shape_of(type)
    if DYNAMIC_INDEX in shape or not has_fixed_size(type.element_type):
        return 0
    return typical(prod(shape)) * element_bytes(type.element_type)


def with_shape(type: AnyTensor, shape: Sequence[int]) -> AnyTensor:
    """`type` with another shape, on the same device."""
    encoding = type.encoding
    if isinstance(encoding, DimsAttr) or any(isinstance(s, Symbolic) for s in shape):
        encoding = encoding_of(shape, device_of(type))
    return TensorType(type.element_type, static(shape), encoding)


def with_element(type: AnyTensor, element_type: Attribute) -> AnyTensor:
    """`type` with another element type, on the same device."""
    return TensorType(element_type, type.get_shape(), type.encoding)


def tensor_type_of(type: Attribute) -> AnyTensor:
    """The tensor type of a value of tensor, variable or memref type."""
    if isinstance(type, TensorType):  # first, since it is the most frequent case
        return cast(AnyTensor, type)
    if isinstance(type, MemRefType):
        return _tensor_in(cast(AnyMemRef, type))
    if isinstance(type, VariableType):
        return type.tensor
    raise VerifyException(f"expected a tensor, a variable or a memref, got {type}")


@lru_cache(maxsize=4096)
def _tensor_in(memref: AnyMemRef) -> AnyTensor:
    return TensorType(memref.element_type, memref.get_shape(), memref.memory_space)


def device_of(type: Attribute) -> str | None:
    """The device of a value (`"cpu:0"`); None before placement."""
    encoding = tensor_type_of(type).encoding
    if isinstance(encoding, StringAttr):  # the most frequent case
        return encoding.data
    return encoding.data.device if isinstance(encoding, DimsAttr) else None


def space_of(type: AnyTensor) -> Attribute:
    """The memory space of memrefs on the tensor's device."""
    return encoding_of((), device_of(type))


def on_device(type: AnyTensor, device: str | None) -> AnyTensor:
    encoding = encoding_of(shape_of(type), device)
    return TensorType(type.element_type, type.get_shape(), encoding)


def ints(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """The attribute for a list of dimensions, sizes or strides."""
    return DenseArrayBase.from_list(i64, values)


def segments(
    inputs: Sequence[object], outs: Sequence[object], *, workspace: bool = False
) -> DenseArrayBase:
    """The property that divides an operation's operands into inputs, outs, and an
    optional workspace."""
    return _segments(len(inputs), len(outs), workspace)


@cache
def _segments(inputs: int, outs: int, workspace: bool) -> DenseArrayBase:
    return DenseArrayBase.from_list(i32, [inputs, outs, int(workspace)])


@cache
def _ends(segments: bytes) -> tuple[int, int]:
    """The ends of the inputs and of the outs among the operands."""
    inputs, outs, *_ = i32.unpack(segments, len(segments) // 4)
    return inputs, inputs + outs


_NONE = SSAValues[SSAValue]()


class OperationKind(Kind):
    """The metaclass of tensor operations. It replaces the accessors of inputs, outs and
    results, which passes use most: xDSL's take ten times as long."""

    def __setattr__(cls, name: str, value: object) -> None:
        if name in ("inputs", "outs", "res"):
            value = property(getattr(cls, f"_{name}"))
        super().__setattr__(name, value)


class TensorOpEffects(DestinationStyle):
    """No effects on tensors; otherwise reads the inputs and writes the destinations.

    A workspace is another destination: it is not read before it is written.
    """

    @classmethod
    def destinations(cls, op: Operation) -> Sequence[int]:
        assert isinstance(op, TensorOp)
        return range(op.input_count, len(op.operands))

    @classmethod
    def overwritable(cls, op: Operation) -> Sequence[int]:
        assert isinstance(op, TensorOp)
        return op.overwritable()

    @classmethod
    def get_effects(cls, op: Operation):
        assert isinstance(op, TensorOp)
        if all(isinstance(value.type, TensorType) for value in op.operands):
            return frozenset[EffectInstance]()
        count = op.input_count
        effects = {
            EffectInstance(MemoryEffectKind.WRITE, value)
            for value in op.operands[count:]
        } | {
            EffectInstance(MemoryEffectKind.READ, value)
            for index, value in enumerate(op.operands[:count])
            if isinstance(value.type, MemRefType) and index not in op.SHAPE_ONLY
        }
        return frozenset(effects)


REWRITES: dict[type, Sequence[RewritePattern]] = {}
"""The rewrites of `canonicalize`, by class of operation; rewrites.py fills this in."""


class TensorOp(
    IRDLOperation, HasCanonicalizationPatternsInterface, metaclass=OperationKind
):
    """An operation on whole tensors; the module's docstring describes its two forms."""

    inputs = var_operand_def(base(TensorType) | base(MemRefType))
    outs = var_operand_def(base(VariableType) | base(MemRefType))
    workspace = opt_operand_def(base(MemRefType))
    res = var_result_def(base(TensorType))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(TensorOpEffects())

    __hash__ = object.__hash__  # that of xDSL, without a call of a Python function

    PATTERN: ClassVar[Pattern] = Pattern.OPAQUE
    """The fusion pattern."""

    ARITY: ClassVar[int | None] = None
    """The number of inputs; None means that any number is allowed."""

    RESULTS: ClassVar[int | None] = 1
    """The number of results; None means that any number is allowed."""

    MAY_LACK_RESULTS: ClassVar[bool] = False
    """Whether it may have neither results nor destinations, only an effect."""

    SHAPE_ONLY: ClassVar[Sequence[int]] = ()
    """Inputs of which the operation uses the shape, and never reads the elements."""

    SIZED: ClassVar[Sequence[str]] = ()
    """Properties that are arrays of sizes. A symbolic size is `?` in the array; the
    attribute `tgraph.dims` has the values of all `?` in this order."""

    COMPUTES: ClassVar[bool] = False
    """Whether it computes with elements, which then must not have storage types. Other
    operations only move or convert elements."""

    DEFAULTS: ClassVar[Mapping[str, Attribute]] = {}
    """Values of properties that the custom syntax leaves out."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        found = (REWRITES[kind] for kind in cls.__mro__ if kind in REWRITES)
        return tuple(next(found, ()))

    def overwritable(self) -> Sequence[int]:
        """The inputs whose buffer the first result may take over, best first.

        A kernel may write a result element as soon as it has read the input elements
        that this element depends on. The inputs are therefore those that each result
        element reads only at its own position.
        """
        return ()

    @abstractmethod
    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        """The shape rule: returns result types for input types with known shapes.

        Raises `VerifyException` for invalid inputs.
        """

    def refine(self, types: PartialTypes) -> None:
        """The shape rule for partially known types: adds what follows to `types`.

        A subclass may also infer inputs from results. By default, results follow from
        completely known inputs. Raises `VerifyException` for inconsistent types.
        """
        inputs = [tensor_type_of(value.type) for value in self.inputs]
        if all(map(is_complete, inputs)):
            results = types.values[len(inputs) :]
            for value, type in zip(results, self.result_types_of(inputs), strict=False):
                types.check_rank(value, type.get_num_dims())
                types.set_element(value, type.element_type)
                for dim, size in enumerate(shape_of(type)):
                    types.set_size((value, dim), size)

    def sizes_in(self, name: str) -> Shape:
        """The elements of an array that is listed in `SIZED`."""
        arrays = {
            n: cast(DenseArrayBase[IntegerType], self.properties[n]).get_values()
            for n in self.SIZED
        }
        flat = tuple(number for array in arrays.values() for number in array)
        sizes = iter(known_sizes(flat, self.attributes.get(DIMS)))
        filled = {n: tuple(next(sizes) for _ in array) for n, array in arrays.items()}
        return cast(Shape, filled[name])

    def elements_computed(self) -> Sequence[Attribute]:
        """The types of the elements that the operation computes with."""
        if not self.COMPUTES:
            return ()
        types = [tensor_type_of(value.type) for value in self.inputs]
        return [type.element_type for type in (*types, *self.declared)]

    @property
    def declared(self) -> Sequence[AnyTensor]:
        """The types of the results or, on memrefs, of the destinations."""
        return [tensor_type_of(v.type) for v in (self.results or self.outs)]

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        *,
        outs: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ):
        super().__init__(
            operands=[inputs, outs, None],
            result_types=[result_types],
            properties=dict(properties or {}),
            regions=regions,
        )

    @property
    def own_properties(self) -> dict[str, Attribute]:
        """The properties, without the numbers of operands."""
        return {
            name: value
            for name, value in self.properties.items()
            if name != "operandSegmentSizes"
        }

    @property
    def input_count(self) -> int:
        """The number of operands that are inputs."""
        return self._ends[0]

    @property
    def _ends(self) -> tuple[int, int]:
        segments = self.properties["operandSegmentSizes"]
        return _ends(cast("DenseArrayBase[IntegerType]", segments).data.data)

    def _inputs(self) -> SSAValues[SSAValue]:
        end, operands = self._ends[0], self._operands
        return operands if end == len(operands) else operands[:end]

    def _outs(self) -> SSAValues[SSAValue]:
        start, end = self._ends
        return self._operands[start:end] if end > start else _NONE

    def _res(self) -> SSAValues[SSAValue]:
        return cast("SSAValues[SSAValue]", self.results)

    @property
    def result(self) -> SSAValue[AnyTensor]:
        """The only result."""
        (result,) = self.results
        return cast("SSAValue[AnyTensor]", result)

    def verify_(self) -> None:
        try:
            self._verify_form()
            types = [tensor_type_of(value.type) for value in self.inputs]
            if self.ARITY is not None and len(types) != self.ARITY:
                raise VerifyException(f"has {len(types)} inputs, expected {self.ARITY}")
            declared = self.declared
            if self.RESULTS is not None and len(declared) != self.RESULTS:
                raise VerifyException(
                    f"has {len(declared)} results, expected {self.RESULTS}"
                )
            together = (*types, *declared)
            self._verify_one_device(together)
            if any(is_stored(type.element_type) for type in together):
                self._verify_computed()
            if all(map(is_complete, together)):
                _verify_types(declared, self.result_types_of(types))
            else:
                self.refine(PartialTypes(types, declared))
        except VerifyException as e:
            raise LocatedVerifyError(f"{self.name}: {e}", self) from None

    def _verify_form(self) -> None:
        kinds = {type(value.type) for value in self.operands}
        results, outs = self.res, self.outs
        if results:
            if MemRefType in kinds:
                raise VerifyException("has tensor results and memref operands")
            if outs and len(outs) != len(results):
                raise VerifyException(
                    f"has {len(outs)} destinations, expected none or one for "
                    f"each of its {len(results)} results"
                )
            for out, result in zip(outs, results, strict=False):
                if tensor_type_of(out.type) != result.type:
                    raise VerifyException(
                        f"destination has type {out.type}, expected a variable of "
                        f"{result.type}"
                    )
        elif not outs and not self.MAY_LACK_RESULTS:
            raise VerifyException("has neither results nor destinations")
        elif not outs and len(kinds) > 1:
            raise VerifyException("has both tensors and memrefs as operands")
        elif outs and kinds != {MemRefType}:
            raise VerifyException("has no results, so all operands must be memrefs")
        elif self.workspace is not None:
            _verify_workspace(self.workspace.type, outs[0].type)

    def _verify_computed(self) -> None:
        for element in self.elements_computed():
            if is_stored(element):
                raise VerifyException(
                    f"computes with elements of type {element}, expected "
                    f"{computed_type(element)}: convert them with tgraph.convert"
                )

    def _verify_one_device(self, types: Sequence[AnyTensor]) -> None:
        devices = {device_of(type) for type in types}
        if len(devices) > 1:
            names = ", ".join(sorted(str(d or "no device") for d in devices))
            raise VerifyException(
                f"has operands and results on {names}; only tgraph.device_copy "
                "crosses devices"
            )

    # Syntax

    def print(self, printer: Printer) -> None:
        if self.inputs:
            printer.print_string(" ")
            printer.print_list(self.inputs, printer.print_operand)
        self._print_tail(printer)

    def _print_tail(self, printer: Printer, hidden: Sequence[str] = ()) -> None:
        """Prints destinations, workspace, attributes except `hidden`, and signature."""
        if self.outs:
            printer.print_string(" outs(")
            printer.print_list(self.outs, printer.print_operand)
            printer.print_string(")")
        if self.workspace is not None:
            printer.print_string(" workspace(")
            printer.print_operand(self.workspace)
            printer.print_string(" : ")
            printer.print_attribute(self.workspace.type)
            printer.print_string(")")
        attributes = {
            name: value
            for name, value in (self.properties | self.attributes).items()
            if name not in ("operandSegmentSizes", *hidden)
            and value != self.DEFAULTS.get(name)
        }
        if attributes:
            printer.print_string(" ")
            printer.print_attr_dict(attributes)
        inputs = [value.type for value in self.inputs]
        outputs = [value.type for value in (self.res or self.outs)]
        printer.print_string(" : ")
        if len({*inputs, *outputs}) == 1 and len(outputs) == 1:
            printer.print_attribute(outputs[0])
            return
        printer.print_string("(")
        printer.print_list(inputs, printer.print_attribute)
        printer.print_string(") -> ")
        if len(outputs) == 1:
            printer.print_attribute(outputs[0])
        else:
            printer.print_string("(")
            printer.print_list(outputs, printer.print_attribute)
            printer.print_string(")")

    @classmethod
    def parse(cls, parser: Parser) -> "TensorOp":
        inputs: list[UnresolvedOperand] = []
        if operand := parser.parse_optional_unresolved_operand():
            inputs.append(operand)
            while parser.parse_optional_punctuation(","):
                inputs.append(parser.parse_unresolved_operand())
        return cls._parse_tail(parser, inputs)

    @classmethod
    def _parse_tail(
        cls,
        parser: Parser,
        inputs: Sequence[UnresolvedOperand],
        properties: dict[str, Attribute] | None = None,
    ) -> "TensorOp":
        outs: Sequence[UnresolvedOperand] = ()
        if parser.parse_optional_keyword("outs"):
            outs = parser.parse_op_args_list()
        workspace = _parse_workspace(parser)
        start = parser.pos
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        parser.parse_punctuation(":")
        if parser.parse_optional_punctuation("("):
            input_types = list[Attribute]()
            if not parser.parse_optional_punctuation(")"):
                input_types.append(parser.parse_type())
                while parser.parse_optional_punctuation(","):
                    input_types.append(parser.parse_type())
                parser.parse_punctuation(")")
            parser.parse_punctuation("->")
            several: Sequence[Attribute] | None
            several = parser.parse_optional_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_type
            )
            output_types = [parser.parse_type()] if several is None else several
        else:
            type = parser.parse_type()
            input_types = [type] * len(inputs)
            output_types = [type]
        on_memrefs = any(isinstance(type, MemRefType) for type in output_types)
        if on_memrefs or not outs:
            out_types = output_types
        else:
            out_types = [VariableType(tensor_type_of(type)) for type in output_types]
        defined = cls.get_irdl_definition().properties
        given = {n: attributes.pop(n) for n in list(attributes) if n in defined}
        for name in attributes:
            if "." not in name:
                known = [n for n in defined if n != "operandSegmentSizes"]
                choices = suggest(name, known) if known else ", expected none"
                parser.raise_error(
                    f"{cls.name} has no attribute {name!r}{choices}", start, position
                )
        op = cls.create(
            operands=[
                *parser.resolve_operands(inputs, input_types, position),
                *parser.resolve_operands(
                    outs,
                    out_types[: len(outs)] if not on_memrefs else out_types,
                    position,
                ),
                *workspace,
            ],
            result_types=() if on_memrefs else output_types,
            properties={
                **(
                    stated := {**(properties or {}), **given}
                ),  # in the order of the text
                **{n: v for n, v in cls.DEFAULTS.items() if n not in stated},
                "operandSegmentSizes": segments(
                    inputs, outs, workspace=bool(workspace)
                ),
            },
            attributes=attributes,
        )
        return op


def _parse_workspace(parser: Parser) -> Sequence[SSAValue]:
    """Parses the workspace, if there is one."""
    if not parser.parse_optional_keyword("workspace"):
        return ()
    with parser.in_parens():
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        return (parser.resolve_operand(operand, parser.parse_type()),)


def _verify_types(declared: Sequence[AnyTensor], expected: Sequence[AnyTensor]) -> None:
    if len(declared) != len(expected):
        raise VerifyException(f"has {len(declared)} results, expected {len(expected)}")
    for got, want in zip(declared, expected, strict=True):
        is_same = shape_of(got) == shape_of(want)
        if not is_same or got.element_type != want.element_type:
            raise VerifyException(f"result has type {bare(got)}, expected {bare(want)}")


def _verify_workspace(type: Attribute, out: Attribute) -> None:
    workspace, space = cast(AnyMemRef, type), cast(AnyMemRef, out).memory_space
    size = workspace.get_shape()
    if len(size) != 1 or workspace != MemRefType(i8, size, memory_space=space):
        raise VerifyException(
            f"workspace has type {workspace}, expected bytes on the device of the "
            "result, such "
            f"as {MemRefType(i8, [64], memory_space=space)}"
        )
    if not is_static(workspace):
        raise VerifyException(f"workspace has type {workspace}, expected a static size")


def bare(type: AnyTensor) -> AnyTensor:
    """`type` without its device, for messages about shapes."""
    return on_device(type, None)
