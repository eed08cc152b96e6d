"""Tests quantized element types of StableHLO: values and errors."""

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

PAIR = "!quant.uniform<i8:f32:0, {0.1:-30,0.5:-20}>"
"""A type from StableHLO's own test of quantized operations."""

TENTHS, HALVES = "!quant.uniform<i8:f32, 0.1:-30>", "!quant.uniform<i8:f32, 0.5:-20>"


def program(arguments: str, body: str, result: str) -> str:
    return f"""func.func @main({arguments}) -> {result} {{
  {body}
  "func.return"(%r) : ({result}) -> ()
}}"""


def run(text: str, *inputs: np.ndarray) -> np.ndarray:
    (result,) = tensorplan.compile(tensorplan.from_stablehlo(text), threads=1)(*inputs)
    return result


KINDS = {
    "i8:f32, 0.5:3": [3, 4, 4, -128, 127, 127, -128],
    "u8:f32, 0.5": [0, 1, 2, 0, 255, 255, 0],
    "i8<-127:127>:f32, 5.0e-01": [0, 1, 2, -127, 127, 127, -127],
    "i16:f32, 0.5:-1": [-1, 0, 0, -2001, 1999, 32767, -32768],
    "i4:f32, 0.5": [0, 1, 2, -8, 7, 7, -8],
}


def test_rounding_and_saturation() -> None:
    """Values are rounded to the nearest integer, ties to even, after the zero point is
    added."""
    x = np.array([0, 0.5, 0.75, -1000, 1000, np.inf, -np.inf], np.float32)
    kinds = [f"tensor<7x!quant.uniform<{kind}>>" for kind in KINDS]
    lines = [
        f'%{number} = "stablehlo.uniform_quantize"(%x) : (tensor<7xf32>) -> {kind}'
        for number, kind in enumerate(kinds)
    ]
    listed = ", ".join(kinds)
    values = ", ".join(f"%{number}" for number in range(len(kinds)))
    text = f"""func.func @main(%x: tensor<7xf32>) -> ({listed}) {{
  {chr(10).join(lines)}
  "func.return"({values}) : ({listed}) -> ()
}}"""
    got = tensorplan.compile(tensorplan.from_stablehlo(text), threads=1)(x)
    assert [list(map(int, numbers)) for numbers in got] == list(KINDS.values())
    assert [str(numbers.dtype) for numbers in got] == [
        *("int8", "uint8", "int8", "int16", "int4")
    ]


def test_scale_per_index_of_a_dimension() -> None:
    other = "!quant.uniform<i8:f32:0, {0.1:-20,0.2:-30}>"
    body = (
        f'%0 = "stablehlo.uniform_quantize"(%q) : (tensor<2x{PAIR}>) -> '
        f"tensor<2x{other}>\n"
        f'  %r = "stablehlo.bitcast_convert"(%0) : (tensor<2x{other}>) -> tensor<2xi8>'
    )
    text = program(f"%q: tensor<2x{PAIR}>", body, "tensor<2xi8>")
    assert run(text, np.array([10, 10], np.int8)).tolist() == [20, 45]
    rows = "!quant.uniform<i8:f32:0, {0.5, 2.0:1}>"
    body = (
        f'%r = "stablehlo.uniform_dequantize"(%q) : (tensor<2x3x{rows}>) -> '
        "tensor<2x3xf32>"
    )
    text = program(f"%q: tensor<2x3x{rows}>", body, "tensor<2x3xf32>")
    got = run(text, np.array([[1, 2, 3], [1, 2, 3]], np.int8))
    assert got.tolist() == [[0.5, 1, 1.5], [0, 2, 4]]


def test_operations_compute_on_dequantized_values() -> None:
    """Data movement keeps stored integers. A product may have floats on one side."""
    body = (
        f'%0 = "stablehlo.reshape"(%a) : (tensor<2x{TENTHS}>) -> tensor<1x2x{TENTHS}>\n'
        f'  %1 = "stablehlo.add"(%0, %b) : (tensor<1x2x{TENTHS}>, '
        f"tensor<1x2x{HALVES}>) -> tensor<1x2x{HALVES}>\n"
        f'  %r = "stablehlo.bitcast_convert"(%1) : (tensor<1x2x{HALVES}>) -> '
        "tensor<1x2xi8>"
    )
    arguments = f"%a: tensor<2x{TENTHS}>, %b: tensor<1x2x{HALVES}>"
    text = program(arguments, body, "tensor<1x2xi8>")
    a, b = np.array([-20, -10], np.int8), np.array([[-14, -12]], np.int8)
    assert run(text, a, b).tolist() == [[-12, -8]]
    text = str(tensorplan.from_stablehlo(text))
    assert "tgraph.reshape %arg0 : (tensor<2xi8>) -> tensor<1x2xi8>" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"func.func @main(%x: tensor<2x{TENTHS}>) -> tensor<2xf32> {{\n"
            "  %0 = stablehlo.uniform_dequantize %x : "
            f"(tensor<2x{TENTHS}>) -> tensor<2xf32>\n}}",
            "has quantized types, which are read in generic form only",
        ),
        (
            program(
                "%x: tensor<2x!quant.any<i8:f32>>",
                '%r = "stablehlo.abs"(%x) : (tensor<2x!quant.any<i8:f32>>) -> '
                "tensor<2x!quant.any<i8:f32>>",
                "tensor<2x!quant.any<i8:f32>>",
            ),
            "argument 0 is not supported with elements of type !quant.any<i8:f32>",
        ),
        (
            program(
                f"%x: tensor<2x{TENTHS}>, %y: tensor<{TENTHS}>",
                '%r = "stablehlo.reduce"(%x, %y) ({ ^bb0(%a: tensor<i8>):\n'
                '  "stablehlo.return"(%a) : (tensor<i8>) -> () }) '
                "{dimensions = array<i64: 0>} : "
                f"(tensor<2x{TENTHS}>, tensor<{TENTHS}>) -> tensor<{TENTHS}>",
                f"tensor<{TENTHS}>",
            ),
            "stablehlo.reduce is not supported with a region on quantized elements",
        ),
    ],
)
def test_unsupported_types_are_refused(text: str, message: str) -> None:
    with pytest.raises(LocatedError) as error:
        tensorplan.from_stablehlo(text)
    assert message in str(error.value)
