"""Tests the readers of MLIR and StableHLO: they recognize formats, keep source
locations, read constants exactly, and locate errors."""

import math
import sys
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import (
    Builtin,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    NameLoc,
    UnregisteredOp,
)
from xdsl.dialects.func import Func
from xdsl.dialects.memref import MemRef
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError, name_of, path_of, place_of
from tensorplan.dialects.tgraph import TGraph
from tensorplan.frontends.mlir_text import parse_attribute, parse_module, permissive
from tensorplan.frontends.reading import read
from tensorplan.passes.driver import check

EXAMPLE = Path(__file__).parent.parent / "examples" / "mlp_train_sgd.mlir"


def context() -> Context:
    ctx = Context()
    for dialect in (Builtin, Func, MemRef, TGraph):
        ctx.load_dialect(dialect)
    return ctx


def parse(text: str, **options: int) -> ModuleOp:
    module = parse_module(text, "a.mlir", context(), **options)
    check(module)
    return module


def places(module: ModuleOp) -> list[str]:
    return [f"{name_of(op)} {place_of(op)}" for op in module.walk()]


def ops_named(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in module.walk() if name_of(op) == name]


# MLIR text

FUNCTION = """\
func.func @f(%a: memref<4xf32, "cpu:0">) -> memref<4xf32, "cpu:0"> {
  "memref.dealloc"(%a) : (memref<4xf32, "cpu:0">) -> ()
  %b = memref.alloc() : memref<4xf32, "cpu:0">
  func.return %b : memref<4xf32, "cpu:0">
}
"""


def test_operations_are_located_at_their_names() -> None:
    assert places(parse(FUNCTION))[1:] == [
        "func.func a.mlir:1:1",
        "memref.dealloc a.mlir:2:3",
        "memref.alloc a.mlir:3:8",
        "func.return a.mlir:4:3",
    ]


def test_lines_count_from_first_line() -> None:
    assert places(parse(FUNCTION, first_line=11))[-1] == "func.return a.mlir:14:3"
    with pytest.raises(ParseError) as error:
        parse(FUNCTION.replace("4xf32", "4xg32"), first_line=11)
    assert error.value.span.get_location().line == 11


def test_explicit_locations() -> None:
    text = """\
#here = loc("here.py":5:6)
module {
  func.func private @a() loc("x"("x.py":1:2))
  func.func private @b() loc(callsite(#here at "y.py":3:4))
  func.func private @c() loc(#loc7)
  func.func private @d() loc(fused["only a name", "z.py":7:8])
  func.func private @e() loc(unknown)
  func.func private @f() loc("f"("r.py":7:8 to :9))
  func.func private @g() loc(callsite("r.py":1:2 to 3:4 at "y.py":3:4))
}
#loc7 = loc("later.py":1:1)
"""
    assert [place.split()[1] for place in places(parse(text))[1:]] == [
        "x.py:1:2",
        "here.py:5:6",
        "a.mlir:5:3",
        "z.py:7:8",
        "a.mlir:7:3",
        "r.py:7:8",
        "r.py:1:2",
    ]


def constants(type: str, literal: str) -> list[float]:
    text = f'"test.op"() {{value = dense<{literal}> : {type}}} : () -> ()'
    ctx = context()
    ctx.allow_unregistered = True
    (op,) = parse_module(text, "a.mlir", ctx).ops
    value = cast(DenseIntOrFPElementsAttr[Any], op.attributes["value"])
    return list(value.get_values())


@pytest.mark.parametrize("spelled", ["#foreign.mark<1>", "!foreign.kind<2>"])
def test_unregistered_attributes_are_equal_in_different_contexts(spelled: str) -> None:
    first, second = (parse_attribute(spelled, permissive(context())) for _ in range(2))
    assert first == second
    assert str(first) == spelled


@pytest.mark.parametrize("literal", ["dense<1> : tensor<?xi32>", "dense<1> : i32"])
def test_dense_literal_needs_a_static_shape(literal: str) -> None:
    with pytest.raises(ParseError, match=r"static shape|tensor type"):
        parse_attribute(literal, context())


@pytest.mark.parametrize(
    ("type", "inf", "negative_inf", "nan", "one"),
    [
        ("f16", "0x7C00", "0xFC00", "0x7E00", "0x3C00"),
        ("bf16", "0x7F80", "0xFF80", "0x7FC0", "0x3F80"),
        ("f32", "0x7F800000", "0xFF800000", "0x7FC00000", "0x3F800000"),
        (
            "f64",
            "0x7FF0000000000000",
            "0xFFF0000000000000",
            "0x7FF8000000000000",
            "0x3FF0000000000000",
        ),
    ],
)
def test_hexadecimal_floats_are_bits(
    type: str, inf: str, negative_inf: str, nan: str, one: str
) -> None:
    assert constants(f"tensor<2x{type}>", inf) == [math.inf] * 2
    assert constants(f"tensor<{type}>", negative_inf) == [-math.inf]
    assert math.isnan(*constants(f"tensor<{type}>", nan))
    listed = f"[[{negative_inf}, {one}], [-2.5, 0.0]]"
    assert constants(f"tensor<2x2x{type}>", listed) == [-math.inf, 1.0, -2.5, 0.0]


def test_hexadecimal_integers_are_numbers() -> None:
    assert constants("tensor<2xi32>", "[0x10, 3]") == [16, 3]


@pytest.mark.parametrize("literal", ["0x100000000", "-0x3F800000"])
def test_float_bits_must_fit(literal: str) -> None:
    with pytest.raises(ParseError, match="expected the 32 bits of an f32"):
        constants("tensor<f32>", literal)


def test_types_with_equal_text_are_one_object() -> None:
    text = """
func.func @f(%a: memref<4xf32, strided<[2], offset: 1>, "cpu:0">,
             %b: memref<4xf32, affine_map<(d0) -> (d0)>, "cpu:0">,
             %c: memref<4xf32, strided<[2], offset: 1>, "cpu:0">,
             %d: tensor<4xf32, "a>b">, %e: tensor<4xf32, "a>b"> // c
            ) { func.return }"""
    (func,) = ops_named(parse(text), "func.func")
    a, b, c, d, e = func.regions[0].block.arg_types
    assert a is c
    assert d is e
    assert str(b) == 'memref<4xf32, affine_map<(d0) -> (d0)>, "cpu:0">'
    assert str(d) == 'tensor<4xf32, "a>b">'


def test_memref_operations_as_mlir_prints_them() -> None:
    text = """\
module {
  memref.global "private" constant @c : memref<2xf32> = dense<[1.0, 0x7F800000]> {alignment = 64 : i64}
  memref.global @u : memref<2xf32> = uninitialized
  func.func @f(%a: memref<2xf32>, %b: memref<2xf32>) {
    memref.copy %a, %b : memref<2xf32> to memref<2xf32>
    %c = memref.cast %a : memref<2xf32> to memref<?xf32>
    %d = memref.memory_space_cast %a : memref<2xf32> to memref<2xf32, "cpu:0">
    func.return
  }
}
"""  # noqa: E501
    module = parse(text)
    assert shown(parse(str(module))) == shown(module)
    constant, uninitialized = ops_named(module, "memref.global")
    assert str(constant.properties["sym_visibility"]) == '"private"'
    assert constant.properties["alignment"] == IntegerAttr(64, 64)
    assert "constant" not in uninitialized.properties
    assert str(ops_named(module, "memref.cast")[0].results[0].type) == "memref<?xf32>"


def test_index_switch_as_mlir_prints_it() -> None:
    """MLIR leaves out the `scf.yield` of the default."""
    text = (
        "func.func @f(%i: index) {\n  scf.index_switch %i \n  case 2 {\n"
        "    scf.yield\n  }\n  default {\n  }\n  func.return\n}\n"
    )
    module = parse_module(text, "a.mlir", tensorplan.context())
    check(module)
    assert len(ops_named(module, "scf.yield")) == 2


# StableHLO: every form gives the same level 0

GENERIC = """\
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
  ^bb0(%a: tensor<2xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<2xf32>}> : () -> tensor<2xf32>
    %1 = "stablehlo.maximum"(%a, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = "func.call"(%1) <{callee = @main}> : (tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%2) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""  # noqa: E501

PRETTY = """\
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %cst = stablehlo.constant dense<0xFF800000> : tensor<2xf32>
  %0 = stablehlo.maximum %a, %cst : tensor<2xf32>
  %1 = func.call @main(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
"""


@pytest.fixture
def without_jaxlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("tensorplan.frontends.stablehlo.reading", raising=False)
    monkeypatch.setitem(sys.modules, "tensorplan.frontends.stablehlo.reading", None)


def level_0(data: str | bytes) -> ModuleOp:
    module = read(data.encode() if isinstance(data, str) else data, "a.mlir", context())
    check(module)
    return module


def shown(module: ModuleOp) -> str:
    """The text of a module with values named `%0, %1, ...`, without the attributes of
    arguments and results."""
    for op in module.walk():
        op.properties.pop("arg_attrs", None)
        op.properties.pop("res_attrs", None)
        for value in (*op.results, *(a for r in op.regions for a in r.block.args)):
            value.name_hint = None
    return str(module)


@pytest.mark.usefixtures("without_jaxlib")
def test_generic_text_needs_no_jaxlib() -> None:
    module = level_0(GENERIC)
    (constant,) = ops_named(module, "stablehlo.constant")
    assert isinstance(constant, UnregisteredOp)
    assert place_of(constant) == "a.mlir:4:10"
    value = cast(DenseIntOrFPElementsAttr[Any], constant.properties["value"])
    assert list(value.iter_values()) == [-math.inf]  # a splat is one element
    assert "dense<0xff800000> : tensor<2xf32>" in str(value)


@pytest.mark.usefixtures("without_jaxlib")
@pytest.mark.parametrize("data", [PRETTY.encode(), b"ML\xefR\x06rest"])
def test_error_without_jaxlib_names_the_extra(data: bytes) -> None:
    with pytest.raises(LocatedError, match=r"pip install '\.\[jax\]'"):
        read(data, "a.mlir", context())


def test_readers_agree(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("jaxlib")
    pretty, generic = level_0(PRETTY), level_0(GENERIC)
    request.getfixturevalue("without_jaxlib")
    with pytest.raises(LocatedError):
        level_0(PRETTY)
    by_xdsl = level_0(GENERIC)
    assert shown(pretty) == shown(generic) == shown(by_xdsl)
    assert places(generic)[1:] == places(by_xdsl)[1:]


def test_calls_in_regions_of_stablehlo_verify() -> None:
    text = GENERIC.replace(
        '%2 = "func.call"(%1)',
        """%2 = "stablehlo.while"(%1) ({
    ^bb1(%x: tensor<2xf32>):
      %y = "stablehlo.constant"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
      "stablehlo.return"(%y) : (tensor<i1>) -> ()
    }, {
    ^bb1(%x: tensor<2xf32>):
      %y = "func.call"(%x) <{callee = @main}> : (tensor<2xf32>) -> tensor<2xf32>
      "stablehlo.return"(%y) : (tensor<2xf32>) -> ()
    }) : (tensor<2xf32>) -> tensor<2xf32>
    %3 = "func.call"(%2)""",
    )
    assert ops_named(level_0(text), "stablehlo.while")


@pytest.mark.usefixtures("without_jaxlib")
@pytest.mark.parametrize(
    "text",
    [
        "// stablehlo.add\nfunc.func @f() { func.return }",
        'func.func @f() attributes {why = "stablehlo.add"} { func.return }',
    ],
)
def test_comments_and_strings_do_not_make_text_stablehlo(text: str) -> None:
    assert ops_named(level_0(text), "func.func")


def test_byte_order_mark_is_ignored() -> None:
    text = b"func.func @f() { func.return }"
    assert str(read(b"\xef\xbb\xbf" + text, "a.mlir", context())) == str(
        read(text, "a.mlir", context())
    )


def test_bytes_of_no_known_format_are_refused() -> None:
    with pytest.raises(LocatedError, match=r"a\.mlir is neither MLIR text, nor"):
        read(b"\xff\xfe\x00", "a.mlir", context())


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (PRETTY.replace("maximum", "maximal"), 3, 8, "custom op 'stablehlo.maximal'"),
        (PRETTY.replace("%cst :", "%no :"), 3, 30, "use of undeclared SSA value name"),
        (PRETTY.replace("return %1", "return %cst, %1"), 5, 10, "got 2 operands"),
    ],
)
def test_errors_of_jaxlib_have_locations(
    text: str, line: int, column: int, message: str
) -> None:
    pytest.importorskip("jaxlib")
    with pytest.raises(ParseError, match=message) as error:
        level_0(text)
    assert error.value.span.get_location() == ("a.mlir", line, column)


@pytest.mark.parametrize("trusted", [False, True])
def test_broken_bytecode_is_refused(trusted: bool) -> None:
    """Bytecode from a file is read in another process first; trusted bytecode is read
    in this process."""
    pytest.importorskip("jaxlib")
    broken = b"ML\xefR\x06MLIR\x00"
    expected = "^a.mlir: " if trusted else "^a.mlir is not valid MLIR bytecode: .+"
    with pytest.raises(LocatedError, match=expected):
        read(broken, "a.mlir", context(), trusted=trusted)


def test_time_limit_for_bytecode() -> None:
    pytest.importorskip("jaxlib")
    from tensorplan.frontends import bytecode

    with pytest.raises(
        LocatedError, match=r"MLIR did not finish reading it within 0.001 s"
    ):
        bytecode.check(b"ML\xefR", "a.mlir", seconds=0.001)


def test_every_form_of_a_jax_model() -> None:
    jax: Any = pytest.importorskip("jax")
    from jax import export

    def model(x: Any) -> Any:
        return jax.nn.relu(x @ x).sum(0)

    x = jax.ShapeDtypeStruct((3, 3), "float32")
    lowered = jax.jit(model).lower(x)
    module = lowered.compiler_ir("stablehlo")
    bytecode = BytesIO()
    module.operation.write_bytecode(bytecode)
    expected = shown(level_0(lowered.as_text()))
    assert "stablehlo.maximum" in expected
    assert shown(level_0(bytecode.getvalue())) == expected
    generic = module.operation.get_asm(print_generic_op_form=True)
    assert shown(level_0(generic)) == expected
    assert shown(level_0(lowered.as_text(debug_info=True))) == expected

    exported = export.export(jax.jit(model))(x)
    (dot,) = ops_named(
        level_0(exported.mlir_module_serialized), "stablehlo.dot_general"
    )
    assert isinstance(dot.location, NameLoc)
    assert isinstance(dot.location.location, FileLineColLoc)
    assert dot.location.location.filename.data == __file__
    assert path_of(dot) == "jit(model)/dot_general"
    pytest.importorskip("flatbuffers")
    artifact = level_0(bytes(exported.serialize(vjp_order=1)))
    assert shown(artifact) == shown(level_0(exported.mlir_module_serialized))


def test_constants_are_read_bit_by_bit() -> None:
    jax: Any = pytest.importorskip("jax")
    import numpy as np

    arrays = [
        np.arange(1000, dtype=np.float32),
        np.array([True, False, True]),
        np.array([[1, -2], [3, 4]], np.int8),
        np.array([1.5, np.inf], np.float16),
        np.array([1.5, -np.inf], jax.numpy.bfloat16),
    ]
    text = jax.jit(lambda: arrays).lower().as_text()
    found = ops_named(level_0(text), "stablehlo.constant")
    for array, op in zip(arrays, found, strict=True):
        value = cast(DenseIntOrFPElementsAttr[Any], op.properties["value"])
        stored = array * np.uint8(255) if array.dtype == bool else array
        assert value.data.data == stored.tobytes()
        assert value.get_shape() == array.shape


def test_example_can_be_printed_and_parsed() -> None:
    pytest.importorskip("jaxlib")
    module = level_0(EXAMPLE.read_bytes())
    assert len(ops_named(module, "stablehlo.dot_general")) > 3
    assert shown(level_0(str(module))) == shown(module)


def test_splats_are_not_expanded() -> None:
    pytest.importorskip("jaxlib")
    text = PRETTY.replace("2xf32", "99999x99999xf32")
    (constant,) = ops_named(level_0(text), "stablehlo.constant")
    value = cast(DenseIntOrFPElementsAttr[Any], constant.properties["value"])
    assert len(value.data.data) == 4
    assert isinstance(next(iter(value.iter_attrs())), FloatAttr)
