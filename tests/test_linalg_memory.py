"""Tests the memory effects of linalg operations: maps, iterators and bodies."""

import pytest
from plan_checks import operations
from planted import SQUARE, M, each, program, squares

from tensorplan.dialects.memory import (
    destinations,
    effects_on,
    overwritable,
    overwrites,
    says_effects,
    written_operands,
)

SAME = "affine_map<(d0) -> (d0)>"
SQUARES = "affine_map<(d0, d1) -> (d0, d1)>"


def generic(
    maps: str, types: str, ins: str, outs: str, result: str = "%in0", kinds: str = ""
) -> str:
    inputs, outputs = ins.count("%"), outs.count("%")
    names = [f"%in{n}: f32" for n in range(inputs)]
    names += [f"%out{n}: f32" for n in range(outputs)]
    kinds = kinds or ", ".join(['"parallel"'] * types.count("d"))
    taken = f"ins({ins}) " if ins else ""
    results = ", ".join([result] * outputs)
    return (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
        f"{taken}outs({outs}) {{\n^bb0({', '.join(names)}):\n"
        f"linalg.yield {results} : {', '.join(['f32'] * outputs)}\n}}"
    )


def one(maps: str, result: str = "%in0", kinds: str = "", dims: str = "d0") -> str:
    type = SQUARE if dims.count("d") == 2 else M
    x, y = ("%sx", "%sy") if type == SQUARE else ("%x", "%y")
    return generic(maps, dims, f"{x} : {type}", f"{y} : {type}", result, kinds)


# The text, and the operands that are written, that are overwritten completely, and
# that a result may overwrite in place.
OPERATIONS = {
    "elementwise": (each("x", "y"), [1], [1], [0]),
    "a payload that reads the output": (one(f"{SAME}, {SAME}", "%out0"), [1], [], [0]),
    "another map": (
        one(f"affine_map<(d0) -> (15 - d0)>, {SAME}"),
        [1],
        [1],
        [],
    ),
    "an output that is not written as a whole": (
        one(f"{SAME}, affine_map<(d0) -> (d0 floordiv 2)>"),
        [1],
        [],
        [],
    ),
    "an output that is written to one place": (
        one(f"{SAME}, affine_map<(d0) -> (0)>"),
        [1],
        [],
        [],
    ),
    "both at other places": (
        one(f"{'affine_map<(d0) -> (15 - d0)>'}, {'affine_map<(d0) -> (15 - d0)>'}"),
        [1],
        [],
        [],
    ),
    "both transposed": (
        one(
            "affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d1, d0)>",
            dims="d0, d1",
        ),
        [1],
        [1],
        [0],
    ),
    "transposed": (
        one(f"affine_map<(d0, d1) -> (d1, d0)>, {SQUARES}", dims="d0, d1"),
        [1],
        [1],
        [],
    ),
    "the diagonal": (
        one(f"{SQUARES}, affine_map<(d0, d1) -> (d0, d0)>", dims="d0, d1"),
        [1],
        [],
        [],
    ),
    "a reduction": (
        one(f"{SQUARES}, {SQUARES}", kinds='"parallel", "reduction"', dims="d0, d1"),
        [1],
        [1],
        [],
    ),
    "no input": (
        generic(SAME, "d0", "", f"%y : {M}", "%out0"),
        [0],
        [],
        [],
    ),
    "two inputs": (
        generic(
            f"affine_map<(d0) -> (15 - d0)>, {SAME}, {SAME}",
            "d0",
            f"%x, %z : {M}, {M}",
            f"%y : {M}",
        ),
        [2],
        [2],
        [1],
    ),
    "two outputs": (
        generic(f"{SAME}, {SAME}, {SAME}", "d0", f"%x : {M}", f"%y, %z : {M}, {M}"),
        [1, 2],
        [1, 2],
        [0],
    ),
    "a named one": (
        f"linalg.transpose ins(%sx : {SQUARE}) outs(%sy : {SQUARE}) permutation = "
        "[1, 0]",
        [1],
        [1],
        [],
    ),
    "a product": (
        f"linalg.matmul ins(%sx, %sx : {SQUARE}, {SQUARE}) outs(%sy : {SQUARE})",
        [2],
        [],
        [],
    ),
    "a sum": (f"linalg.add ins(%x, %z : {M}, {M}) outs(%y : {M})", [2], [2], [0, 1]),
    "one that xDSL does not know": (
        f'"linalg.unknown"(%x, %y) ({{\n^bb0(%in0: f32, %old: f32):\n'
        f'"linalg.yield"(%in0) : (f32) -> ()\n}}) {{operandSegmentSizes = '
        f"array<i32: 1, 1>}} : ({M}, {M}) -> ()",
        [1],
        [1],
        [],
    ),
    "one that does not divide its operands": (
        f'"linalg.unknown"(%x, %z, %y) ({{\n^bb0(%in0: f32, %in1: f32, %old: f32):\n'
        f'"linalg.yield"(%in0) : (f32) -> ()\n}}) : ({M}, {M}, {M}) -> ()',
        [2],
        [2],
        [],
    ),
    "one without a region": (
        '"linalg.unknown"(%x, %y) {operandSegmentSizes = array<i32: 1, 1>} : '
        f"({M}, {M}) -> ()",
        [1],
        [],
        [],
    ),
    "one whose region lacks arguments": (
        f'"linalg.unknown"(%x, %y) ({{\n^bb0(%in0: f32):\n'
        f'"linalg.yield"(%in0) : (f32) -> ()\n}}) {{operandSegmentSizes = '
        f"array<i32: 1, 1>}} : ({M}, {M}) -> ()",
        [1],
        [],
        [],
    ),
    "one with results after its outputs": (
        '"linalg.unknown"(%x, %y, %z) {operandSegmentSizes = array<i32: 1, 1, 1>} : '
        f"({M}, {M}, {M}) -> ()",
        [1],
        [],
        [],
    ),
}

READ_THEIR_OUTPUT = [
    OPERATIONS[name][0]
    for name in (
        "a payload that reads the output",
        "no input",
        "a product",
        "one without a region",
        "one whose region lacks arguments",
        "one with results after its outputs",
    )
]


@pytest.mark.parametrize(
    ("text", "written", "whole", "over"), OPERATIONS.values(), ids=OPERATIONS
)
def test_operations(
    text: str, written: list[int], whole: list[int], over: list[int]
) -> None:
    op, *_ = operations(program(squares("x", "y", "z"), text), "linalg.")
    assert list(written_operands(op)) == written
    assert list(destinations(op)) == whole
    assert list(overwritable(op)) == over
    assert says_effects(op)
    for index, value in enumerate(op.operands):
        reads = index not in written or text in READ_THEIR_OUTPUT
        if list(op.operands).count(value) == 1:
            assert effects_on(op, value) == (reads, index in written)
            assert overwrites(op, value) is (index in whole)


def test_a_named_operation_without_maps_is_elementwise_by_its_name() -> None:
    """MLIR 22 writes linalg.negf without maps, and xDSL does not know it."""
    segments = "{operandSegmentSizes = array<i32: 1, 1>}"
    for name, over in (("negf", [0]), ("softmax", [])):
        text = f'"linalg.{name}"(%x, %y) {segments} : ({M}, {M}) -> ()'
        (op,) = operations(program(text), "linalg.")
        assert list(overwritable(op)) == over


MAPS = f"indexing_maps = [{SAME}, {SAME}]"
KINDS = 'iterator_types = ["parallel"]'
STATED = {
    "maps and iterators": (f"{MAPS}, {KINDS}", [0]),
    "no maps": (KINDS, []),
    "no iterators": (MAPS, []),
    "one map": (f"indexing_maps = [{SAME}], {KINDS}", []),
}


@pytest.mark.parametrize(("stated", "over"), STATED.values(), ids=STATED)
def test_maps_and_iterators_of_an_unknown_operation(
    stated: str, over: list[int]
) -> None:
    segments = "operandSegmentSizes = array<i32: 1, 1>"
    text = f'"linalg.unknown"(%x, %y) <{{{segments}, {stated}}}> : ({M}, {M}) -> ()'
    (op,) = operations(program(text), "linalg.")
    assert list(overwritable(op)) == over
    (op,) = operations(program(text.replace("linalg.", "other.")), "other.")
    assert list(overwritable(op)) == []
    assert list(written_operands(op)) == []
    assert not says_effects(op)


def test_operations_in_a_payload_have_no_effects() -> None:
    text = each("x", "y").replace("%new =", "%i = linalg.index 0 : index\n%new =")
    _, index, end = operations(program(text), "linalg.")
    for op in (index, end):
        assert list(written_operands(op)) == []
        assert list(overwritable(op)) == []


def test_one_memory_as_input_and_output() -> None:
    op, *_ = operations(program(each("x", "x")), "linalg.generic")
    assert effects_on(op, op.operands[0]) == (True, True)
    assert not overwrites(op, op.operands[0])
