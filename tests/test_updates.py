"""Tests in-place updates of parts of variables: values, copies, and predicted bytes."""

import pytest
from levels import READY, REST, inputs, modeled_bytes
from modules import parse, run
from numpy.testing import assert_array_equal
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.runtime.executor import Executable

PART = """
  %c0 = tgraph.constant<0 : i32> : tensor<i32>
  %c2 = tgraph.constant<2 : i32> : tensor<i32>
  %w = tgraph.read %v : tensor<4x8xf32>
  %p = tgraph.slice %w {start_indices = array<i64: 2, 0>,
    limit_indices = array<i64: 4, 8>, strides = array<i64: 1, 1>}
    : (tensor<4x8xf32>) -> tensor<2x8xf32>
"""
"""Reads a variable and slices its rows 2 and 3, for an update."""

PUT = """
  %u = tgraph.dynamic_update_slice %w, %n, %c2, %c0 outs(%v)
    : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
"""


def program(body: str, result: str = "%x", type: str = "tensor<2x8xf32>") -> ModuleOp:
    return parse(f"""
func.func @main(%v: !tgraph.variable<tensor<4x8xf32>>, %x: {type}) -> {type} {{
  {body}
  func.return {result} : {type}
}}""")


def planned_with_values(module: ModuleOp) -> ModuleOp:
    """Plans `module`, and compares its values with the reference interpreter, and its
    lower bound with the prediction."""
    ready = run(module, *READY[:1])
    planned = run(ready, *REST)
    want = run_reference(ready, inputs(ready))
    for got in (
        Executable(planned, sanitize=True, native=False)(*inputs(ready)),
        Executable(planned)(*inputs(ready)),
    ):
        for a, b in zip(got, want, strict=True):
            assert_array_equal(a, b)
    (pool, *_) = [*tensorplan.report(planned)["pools"], {"lower_bound_bytes": 0}]
    assert modeled_bytes(ready) == pool["lower_bound_bytes"]
    return planned


def copies(module: ModuleOp) -> int:
    text = str(module)
    return text.count("memref.copy") + text.count("dynamic_update_slice")


def test_update_is_computed_in_place() -> None:
    planned = planned_with_values(
        program(f"{PART} %n = tgraph.add %p, %x : tensor<2x8xf32> {PUT}")
    )
    assert copies(planned) == 1  # a copy of the returned argument
    assert "memref.alloc" not in str(planned)


def test_reshaped_row_is_updated_in_place() -> None:
    row = PART.replace("limit_indices = array<i64: 4,", "limit_indices = array<i64: 3,")
    body = f"""
      {row.replace("-> tensor<2x8", "-> tensor<1x8")}
      %q = tgraph.reshape %p : (tensor<1x8xf32>) -> tensor<8xf32>
      %m = tgraph.add %q, %x : tensor<8xf32>
      %n = tgraph.reshape %m : (tensor<8xf32>) -> tensor<1x8xf32>
      {PUT.replace("tensor<2x8", "tensor<1x8")}"""
    planned = planned_with_values(program(body, type="tensor<8xf32>"))
    assert copies(planned) == 1  # a copy of the returned argument
    assert "memref.alloc" not in str(planned)


NOT_IN_PLACE = {
    "the old contents are read later": f"""
        {PART} %n = tgraph.add %p, %x : tensor<2x8xf32> {PUT}
        %r = tgraph.multiply %p, %x : tensor<2x8xf32>""",
    "they are read before the update": f"""
        {PART} %n = tgraph.add %p, %x : tensor<2x8xf32>
        %r = tgraph.multiply %p, %x : tensor<2x8xf32> {PUT}""",
    "they are read elsewhere while the part is written": f"""
        {PART} %q = tgraph.slice %w {{start_indices = array<i64: 1, 0>,
          limit_indices = array<i64: 3, 8>, strides = array<i64: 1, 1>}}
          : (tensor<4x8xf32>) -> tensor<2x8xf32>
        %n = tgraph.add %q, %x : tensor<2x8xf32> {PUT}
        %r = tgraph.negate %n : tensor<2x8xf32>""",
    "the part is the result": f"""
        {PART} %n = tgraph.add %p, %x : tensor<2x8xf32> {PUT}
        %r = tgraph.reshape %n : (tensor<2x8xf32>) -> tensor<2x8xf32>""",
    "the variable was written in between": f"""
        {PART} %n = tgraph.add %p, %x : tensor<2x8xf32>
        %m = tgraph.negate %w outs(%v) : tensor<4x8xf32>
        %u = tgraph.dynamic_update_slice %m, %n, %c2, %c0 outs(%v)
          : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>)
          -> tensor<4x8xf32>
        %r = tgraph.negate %n : tensor<2x8xf32>""",
    "nobody computes it": f"""
        {PART} %n = tgraph.reverse %p {{dimensions = array<i64: 0>}} : tensor<2x8xf32>
        {PUT} %r = tgraph.negate %x : tensor<2x8xf32>""",
}


@pytest.mark.parametrize("why", NOT_IN_PLACE)
def test_updates_that_need_a_copy(why: str) -> None:
    planned = planned_with_values(program(NOT_IN_PLACE[why], "%r"))
    assert "dynamic_update_slice" in str(planned)


OVERLAPPING = """
  %c0 = tgraph.constant<0 : i32> : tensor<i32>
  %c16 = tgraph.constant<16 : i32> : tensor<i32>
  %p = tgraph.slice %w {start_indices = array<i64: 0>, limit_indices = array<i64: 32>,
    strides = array<i64: 1>} : (tensor<64xf32>) -> tensor<32xf32>
  %m = tgraph.negate %p : tensor<32xf32>
  %u = tgraph.dynamic_update_slice %w, %m, %c0 OUTS
    : (tensor<64xf32>, tensor<32xf32>, tensor<i32>) -> tensor<64xf32>
  %q = tgraph.slice %u {start_indices = array<i64: 16>, limit_indices = array<i64: 48>,
    strides = array<i64: 1>} : (tensor<64xf32>) -> tensor<32xf32>
  %n = tgraph.abs %q : tensor<32xf32>
  %t = tgraph.dynamic_update_slice %u, %n, %c16 OUTS
    : (tensor<64xf32>, tensor<32xf32>, tensor<i32>) -> tensor<64xf32>
"""
"""Two updates of overlapping parts."""


def test_part_read_after_the_next_update_is_kept() -> None:
    body = OVERLAPPING + "%r = tgraph.negate %m : tensor<32xf32>"
    planned_with_values(
        parse(f"""
func.func @main(%v: !tgraph.variable<tensor<64xf32>>) -> tensor<32xf32> {{
  %w = tgraph.read %v : tensor<64xf32>
  {body.replace("OUTS", "outs(%v)")}
  func.return %r : tensor<32xf32>
}}""")
    )
    planned_with_values(
        parse(f"""
func.func @main(%w: tensor<64xf32>) -> (tensor<64xf32>, tensor<32xf32>) {{
  {body.replace("OUTS", "")}
  func.return %t, %r : tensor<64xf32>, tensor<32xf32>
}}""")
    )


@pytest.mark.parametrize("start", ["", "negate"])
def test_updates_outside_of_variables_are_in_place(start: str) -> None:
    """An argument that the caller keeps is first copied into the result."""
    body = OVERLAPPING.replace("OUTS", "")
    if start:
        body = "%w = tgraph.negate %x : tensor<64xf32>" + body
    planned = planned_with_values(
        parse(f"""
func.func @main({"%x" if start else "%w"}: tensor<64xf32>) -> tensor<64xf32> {{
  {body}
  func.return %t : tensor<64xf32>
}}""")
    )
    assert copies(planned) == (not start)
    assert "memref.alloc" not in str(planned)


def test_variable_is_written_after_the_first_update() -> None:
    """The result then contains the old contents and the first part, so nothing else is
    saved."""
    body = f"""
  %w = tgraph.read %v : tensor<64xf32>
  {OVERLAPPING}
  %z = tgraph.negate %t outs(%v) : tensor<64xf32>
"""
    first = body.replace("OUTS", "outs(%v)", 1).replace("OUTS", "")
    before, after = first.split("%t =")
    rest = "%z = tgraph.negate %x outs(%v) : tensor<64xf32>\n  %t ="
    for put in (first, before + rest + after.split("%z =")[0]):
        planned = planned_with_values(
            parse(f"""
func.func @main(%v: !tgraph.variable<tensor<64xf32>>, %x: tensor<64xf32>)
    -> tensor<64xf32> {{
  {put}
  func.return %t : tensor<64xf32>
}}""")
        )
        assert copies(planned) == 1
        assert "memref.alloc" not in str(planned)


JOINED = """
  %c0 = tgraph.constant<0 : i32> : tensor<i32>
  %a = tgraph.negate %x : tensor<2x8xf32>
  %b = tgraph.multiply %x, %x : tensor<2x8xf32>
  %c = tgraph.concatenate %a, %b {dimension = 0 : i64, tgraph.in_place}
    : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
"""
UPDATE = """
  %y = tgraph.dynamic_update_slice %c, %p, START, %c0
    : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
"""
NEW = "%p = tgraph.abs %x : tensor<2x8xf32>"
READ = "%r = tgraph.add %a, %x : tensor<2x8xf32>"
OWN = "%z = tgraph.negate %y : tensor<4x8xf32>"


@pytest.mark.parametrize("start", ["%c0", "%i"])
@pytest.mark.parametrize(
    ("body", "result"),
    [
        (NEW + UPDATE + READ, "%y"),
        (NEW + READ + UPDATE, "%y"),
        (NEW + UPDATE + READ + OWN, "%z"),
        (NEW + READ + UPDATE + OWN, "%z"),
        (NEW + UPDATE + OWN + READ.replace("%x :", "%p :"), "%z"),
    ],
)
def test_part_of_a_concatenation_is_read_after_its_update(
    body: str, result: str, start: str
) -> None:
    planned_with_values(
        parse(f"""
func.func @main(%x: tensor<2x8xf32>, %i: tensor<i32>)
    -> (tensor<4x8xf32>, tensor<2x8xf32>) {{
  {JOINED} {body.replace("START", start)}
  func.return {result}, %r : tensor<4x8xf32>, tensor<2x8xf32>
}}""")
    )


def test_part_of_a_result_is_not_overwritten() -> None:
    update = UPDATE.replace("%c,", "%a,").replace("4x8", "2x8").replace("%p", "%q")
    update = update.replace("2x8xf32>, tensor<i32>", "1x8xf32>, tensor<i32>", 1)
    planned_with_values(
        parse(
            f"""
func.func @main(%x: tensor<2x8xf32>, %g: tensor<1x8xf32>)
    -> (tensor<4x8xf32>, tensor<2x8xf32>) {{
  {JOINED} %q = tgraph.abs %g : tensor<1x8xf32>
  {update.replace("START", "%c0")}
  %z = tgraph.negate %y : tensor<2x8xf32>
  func.return %c, %z : tensor<4x8xf32>, tensor<2x8xf32>
}}""".replace("x8x", "x16x")
        )
    )


def test_updated_value_is_computed_in_the_result() -> None:
    types = "(tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>)"
    module = parse(f"""
func.func @main(%x: tensor<4x8xf32>, %i: tensor<i32>, %p: tensor<2x8xf32>)
    -> tensor<4x8xf32> {{
  %0 = tgraph.negate %x : tensor<4x8xf32>
  %1 = tgraph.dynamic_update_slice %0, %p, %i, %i : {types} -> tensor<4x8xf32>
  %2 = tgraph.dynamic_update_slice %1, %p, %i, %i : {types} -> tensor<4x8xf32>
  func.return %2 : tensor<4x8xf32>
}}""")
    assert "memref.alloc" not in str(planned_with_values(module))


def test_starts_are_clamped() -> None:
    body = f"{PART} %n = tgraph.add %p, %x : tensor<2x8xf32> {PUT}"
    body = body.replace("constant<2 :", "constant<9 :")
    assert copies(planned_with_values(program(body))) == 1


def test_updated_parts_are_read_after_the_next_update() -> None:
    planned_with_values(
        program(
            f"""{PART} %n = tgraph.add %p, %x : tensor<2x8xf32> {PUT}
            %o = tgraph.slice %u {{start_indices = array<i64: 0, 0>,
              limit_indices = array<i64: 2, 8>, strides = array<i64: 1, 1>}}
              : (tensor<4x8xf32>) -> tensor<2x8xf32>
            %m = tgraph.subtract %o, %x : tensor<2x8xf32>
            %t = tgraph.dynamic_update_slice %u, %m, %c0, %c0 outs(%v)
              : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>)
              -> tensor<4x8xf32>
            %r = tgraph.multiply %n, %m : tensor<2x8xf32>""",
            "%r",
        )
    )


UPDATES = """
  %w = tgraph.read %v : tensor<64x64xf32>
  %g = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 0>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
  %n = tgraph.add %w, %g outs(%v) : tensor<64x64xf32>
"""


def sliced(body: str) -> tuple[int, int]:
    """The modeled bytes before and after `tgraph-tile`. Compares values."""
    module = parse(f"""
func.func @main(%v: !tgraph.variable<tensor<64x64xf32>>, %x: tensor<8x64xf32>)
    -> tensor<8x64xf32> {{
  {body}
  func.return %r : tensor<8x64xf32>
}}""")
    ready = run(module, *READY[:1])
    cut = run(ready, TGraphTile(max_slowdown=100.0, reuse_outputs=False))
    want = run_reference(ready, inputs(ready))
    planned = run(cut, *REST)
    for got in (
        run_reference(cut, inputs(ready)),
        Executable(planned, sanitize=True, native=False)(*inputs(ready)),
    ):
        for a, b in zip(got, want, strict=True):
            assert_array_equal(a, b)
    pools = tensorplan.report(planned)["pools"]
    assert modeled_bytes(cut) == sum(pool["lower_bound_bytes"] for pool in pools)
    return modeled_bytes(ready), modeled_bytes(cut)


def test_variable_is_updated_in_tiles() -> None:
    before, after = sliced(f"{UPDATES} %r = tgraph.negate %x : tensor<8x64xf32>")
    assert after == before // 8


@pytest.mark.parametrize(
    "reader",
    [
        "%r = tgraph.dot_general %x, %w",  # the old contents, later
        "%r = tgraph.dot_general %x, %n",  # the new contents
    ],
)
def test_whole_variable_is_read_after_tiled_updates(reader: str) -> None:
    sliced(f"""{UPDATES} {reader} {{lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>}}
      : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>""")


def test_tiles_that_read_the_whole_variable_are_not_made() -> None:
    before, after = sliced("""
      %w = tgraph.read %v : tensor<64x64xf32>
      %g = tgraph.dot_general %w, %w {lhs_contracting_dimensions = array<i64: 1>,
        rhs_contracting_dimensions = array<i64: 0>}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %n = tgraph.add %w, %g outs(%v) : tensor<64x64xf32>
      %r = tgraph.negate %x : tensor<8x64xf32>""")
    assert after == before
