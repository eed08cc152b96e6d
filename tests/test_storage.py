"""Tests that `analysis/storage` predicts exactly the bytes that the finished plan
needs.

For plans with `reuse-outputs=false`, the lower bound is computed from the plan's IR
(`tensorplan.report`), independently of the prediction. Arenas are predicted for the
default sequence, with and without workspaces. `dev.py fuzz tensor` and `models` check
predictions on further programs.
"""

from collections.abc import Callable
from itertools import compress
from pathlib import Path
from random import Random

import pytest
from judging import generate
from levels import (
    KERNELS,
    assert_within,
    has_streams,
    lower_bounds,
    planned_arenas,
    predicted_arenas,
    storage_of_program,
    stored_bytes,
)
from model_files import model_files
from random_passes import PASSES, place
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.analysis.caching import cached_by, caching
from tensorplan.analysis.functions import erase_unused, tensor_blocks
from tensorplan.analysis.memory_graph import memory_graph
from tensorplan.analysis.operations import Operations
from tensorplan.analysis.storage import at_peak, during, storage_of
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import DONATED
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.frontends.reading import read
from tensorplan.passes import driver
from tensorplan.passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.specialize.sizes import specialize
from tensorplan.passes.tgraph.eliminate_assigns import TGraphEliminateAssigns
from tensorplan.passes.tgraph.fuse import TGraphFuse, outline
from tensorplan.passes.tgraph.fusion.groups import fusions
from tensorplan.passes.tgraph.infer_shapes import TGraphInferShapes
from tensorplan.planning import deadline

HOMES = """
func.func @main(%x: tensor<64xf32, "cpu:0">,
                %v: !tgraph.variable<tensor<64xf32, "cpu:0">>)
    -> tensor<8x8xf32, "cpu:0"> {
  %w = tgraph.read %v : tensor<64xf32, "cpu:0">
  %a = tgraph.sine %x : tensor<64xf32, "cpu:0">
  %b = tgraph.tanh %a : tensor<64xf32, "cpu:0">
  %c = tgraph.slice %b {start_indices = array<i64: 8>, limit_indices = array<i64: 16>,
                        strides = array<i64: 1>}
     : (tensor<64xf32, "cpu:0">) -> tensor<8xf32, "cpu:0">
  %k = tgraph.constant<2.0 : f32> : tensor<8xf32, "cpu:0">
  %d = tgraph.multiply %c, %k : tensor<8xf32, "cpu:0">
  %e = tgraph.add %w, %x : tensor<64xf32, "cpu:0">
  %r = tgraph.reshape %e : (tensor<64xf32, "cpu:0">) -> tensor<8x8xf32, "cpu:0">
  %s = tgraph.broadcast_in_dim %d {broadcast_dimensions = array<i64: 1>}
     : (tensor<8xf32, "cpu:0">) -> tensor<8x8xf32, "cpu:0">
  %f = tgraph.add %r, %s : tensor<8x8xf32, "cpu:0">
  func.return %f : tensor<8x8xf32, "cpu:0">
}
"""

SYMBOLIC = """
func.func @main(%x: tensor<?x8xf32, #tgraph.dims<n, "cpu:0">>)
    -> tensor<?x8xf32, #tgraph.dims<n, "cpu:0">> {
  %0 = tgraph.sine %x : tensor<?x8xf32, #tgraph.dims<n, "cpu:0">>
  %1 = tgraph.exponential %x : tensor<?x8xf32, #tgraph.dims<n, "cpu:0">>
  %2 = tgraph.atan2 %1, %0 : tensor<?x8xf32, #tgraph.dims<n, "cpu:0">>
  func.return %2 : tensor<?x8xf32, #tgraph.dims<n, "cpu:0">>
}
"""


def level_1(module: ModuleOp, random: Random) -> ModuleOp:
    """A copy of the program after random passes on tensors, with devices placed."""
    driver.run(
        tensorplan.context(), module, [ConvertStablehloToTGraph(), TGraphInferShapes()]
    )
    for promise in random.choices(PASSES, k=random.randrange(7)):
        changed = module.clone()
        try:
            driver.run(tensorplan.context(), changed, [promise.make(random)])
        except LocatedError:
            continue
        module = changed
    driver.run(tensorplan.context(), module, [place(random)])
    return module


@pytest.mark.parametrize(
    ("target", "seed"),
    [
        *(("tensor", 37 * n) for n in range(60)),
        ("tensor", 3371),  # a loop with inputs that its regions do not use
        *(("models", n) for n in range(6)),
    ],
)
def test_prediction_equals_lower_bound_of_plan(target: str, seed: int) -> None:
    random = Random(f"storage {seed}")
    module = level_1(generate(target, seed), random)
    alignment = random.choice([1, 16, 64])
    assert stored_bytes(module, alignment) == lower_bounds(module, alignment)
    if not has_streams(module):
        how = alignment, random.choice(KERNELS)
        predicted = predicted_arenas(module, *how)
        assert predicted == planned_arenas(module, *how)
        assert_within(module, *how, sum(predicted.values()))
    storage = storage_of_program(module)
    memory = memory_graph(storage.block, 16)
    scheduled = memory.peaks(range(len(memory.ops)))
    bytes_during = during(storage, 16)
    live = {device: max(bytes) for device, bytes in bytes_during.items()}
    assert {d: bytes for d, bytes in scheduled.items() if bytes} == {
        d: bytes for d, bytes in live.items() if bytes
    }
    find = storage.block.find_ancestor_op_in_block
    for device, inner in at_peak(storage, 16).items():
        ops = zip((op for op, _ in storage.steps), bytes_during[device], strict=True)
        assert set(map(find, inner)) <= {op for op, b in ops if b == live[device]}
        assert inner


@pytest.mark.parametrize(
    ("target", "seed"),
    [*(("tensor", 29 * n) for n in range(60)), *(("models", n) for n in range(6))],
)
def test_groups_are_predicted_like_fusions(target: str, seed: int) -> None:
    random = Random(f"groups {seed}")
    module = level_1(generate(target, seed), random)
    depth = random.choice([1, 4, 256])
    mode, keeps = random.choice(["relay", "nnvm"]), random.random() < 0.5
    assert_groups_are_predicted(module, TGraphFuse(mode, depth, keeps))


@pytest.mark.parametrize("seed", range(40))
def test_large_groups_are_predicted_like_fusions(seed: int) -> None:
    random = Random(f"large groups {seed}")
    module = parsed(computed(random, 40))
    driver.run(tensorplan.context(), module, [TGraphEliminateAssigns()])
    fuse = TGraphFuse(random.choice(["relay", "nnvm"]), keep_peak=seed % 4 == 0)
    assert_groups_are_predicted(module, fuse)


FULL, HALF, ROW = "tensor<8x16xf32>", "tensor<8x16xbf16>", "tensor<16xf32>"


def computed(random: Random, size: int) -> str:
    """A program of operations that can be fused, most of which read recent values."""
    lines: list[str] = []
    values = {FULL: ["%x"], HALF: ["%h"], ROW: ["%r"]}

    def one(type: str) -> str:
        return random.choice(values[type][-4:] + random.choices(values[type]))

    def make(type: str, what: str) -> str:
        lines.append(f"%{len(lines)} = tgraph.{what}")
        values[type].append(f"%{len(lines) - 1}")
        return values[type][-1]

    while len(lines) < size:
        type = random.choice([FULL, FULL, FULL, HALF, ROW])
        match random.randrange(10):
            case 0 | 1:
                make(type, f"{random.choice(['sine', 'tanh'])} {one(type)} : {type}")
            case 2 | 3 | 4:
                name = random.choice(["add", "multiply", "atan2"])
                make(type, f"{name} {one(type)}, {one(type)} : {type}")
            case 5:
                source, target = random.sample([FULL, HALF], 2)
                make(target, f"convert {one(source)} : ({source}) -> {target}")
            case 6 | 7:  # sums of rows or columns, and a group that may contain them
                value, dimension = one(FULL), random.randrange(2)
                sums = f"tensor<{(16, 8)[dimension]}xf32>"
                values.setdefault(sums, [])
                how = f'kind = "add", dimensions = array<i64: {dimension}>'
                made = make(sums, f"reduce {value} {{{how}}} : ({FULL}) -> {sums}")
                how = f"broadcast_dimensions = array<i64: {1 - dimension}>"
                what = f"broadcast_in_dim {made} {{{how}}} : ({sums}) -> {FULL}"
                make(FULL, f"divide {value}, {make(FULL, what)} : {FULL}")
            case 8:
                element = type.split("x")[-1][:-1]
                make(type, f"constant<{len(lines)}.0 : {element}> : {type}")
            case _:
                make(FULL, f"read %w : {FULL}")
                lines.append(f"tgraph.assign %w, {one(FULL)} : {FULL}")
    types = [FULL, HALF, ROW]
    lines.append(f"func.return {', '.join(map(one, types))} : {', '.join(types)}")
    arguments = f"%x: {FULL}, %h: {HALF}, %r: {ROW}, %w: !tgraph.variable<{FULL}>"
    body = "\n".join(lines)
    return f"func.func @main({arguments}) -> ({', '.join(types)}) {{\n{body}\n}}"


@pytest.mark.thorough
@pytest.mark.parametrize("file", model_files())
def test_groups_of_models_are_predicted(file: Path) -> None:
    module = read(file.read_bytes(), file.name, tensorplan.context())
    placed, rest = before_bufferization()
    driver.run(tensorplan.context(), module, placed)
    names = [p.name for p in rest]
    driver.run(tensorplan.context(), module, rest[: names.index("tgraph-fuse")])
    assert_groups_are_predicted(module, TGraphFuse())


def assert_groups_are_predicted(module: ModuleOp, fuse: TGraphFuse) -> None:
    """Asserts that predictions for groups equal those for the resulting fusions."""
    for block in tensor_blocks(module):
        erase_unused(block)
        function, grouping = fuse.choose(block)
        groups = list(fusions(function, grouping))
        is_left = Operations(block, groups).is_left
        predicted = {
            device: list(compress(bytes, is_left))
            for device, bytes in during(storage_of(block, groups), 64).items()
        }
        for fused in fusions(function, grouping):
            outline(fused)
        erase_unused(block)
        assert predicted == during(storage_of(block), 64)


@pytest.mark.thorough
@pytest.mark.parametrize("file", model_files())
def test_models_are_predicted(file: Path) -> None:
    module = read(file.read_bytes(), file.name, tensorplan.context())
    for stage in before_bufferization():
        driver.run(tensorplan.context(), module, stage)
        assert stored_bytes(module, 64) == lower_bounds(module, 64)
    for kernels in KERNELS:
        how = 64, kernels
        assert predicted_arenas(module, *how) == planned_arenas(module, *how)


def before_bufferization() -> list[list[ModulePass]]:
    """The passes of the default sequence on tensors: until devices are placed, and
    after."""
    passes = list(PlanPipeline().passes())
    names = [p.name for p in passes]
    placed = names.index("tgraph-place-devices") + 1
    return [passes[:placed], passes[placed : names.index("tgraph-bufferize")]]


PRODUCT = """
func.func @main(%x: tensor<8x4x6xf64, "cpu:0">, %w: tensor<6x8x5xf64, "cpu:0"> {MARK})
    -> tensor<4x5xf64, "cpu:0"> {
  %0 = tgraph.negate %x : tensor<8x4x6xf64, "cpu:0">
  %1 = tgraph.dot_general %0, %w {
      lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
      lhs_contracting_dimensions = array<i64: 0, 2>,
      rhs_contracting_dimensions = array<i64: 1, 0>}
      : (tensor<8x4x6xf64, "cpu:0">, tensor<6x8x5xf64, "cpu:0">)
      -> tensor<4x5xf64, "cpu:0">
  %2 = tgraph.negate %1 : tensor<4x5xf64, "cpu:0">
  func.return %2 : tensor<4x5xf64, "cpu:0">
}
"""


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("mark", ["", "{tgraph.parameter}"])
def test_home_of_parameters(kernels: str, mark: str) -> None:
    module = parsed(PRODUCT.replace("{MARK}", mark))
    how = 64, kernels
    assert predicted_arenas(module, *how) == planned_arenas(module, *how)
    storage = storage_of_program(module)
    home = storage.places[storage.block.args[1]].buffer.home
    assert (home.value == "parameter") is bool(mark)


def test_homes_of_values() -> None:
    storage = storage_of_program(parsed(HOMES))
    places = {v.name_hint or "": place for v, place in storage.places.items()}
    homes = {name: place.buffer.home.value for name, place in places.items()}
    assert homes == {
        **{"x": "argument", "w": "variable", "k": "constant"},
        **{"a": "own", "b": "own", "c": "own", "d": "own", "s": "own"},
        **{"e": "own", "r": "own", "f": "result"},
    }
    assert places["b"].buffer is places["a"].buffer  # overwritten in place
    assert places["c"].buffer is places["a"].buffer  # a view of it
    assert places["c"].layout.offset == 8
    assert places["e"].buffer is places["r"].buffer is not places["d"].buffer


@pytest.mark.parametrize("n", [None, 1, 40])
def test_symbolic_sizes_are_predicted(n: int | None) -> None:
    module = parsed(SYMBOLIC)
    if n is not None:
        specialize(module, {"n": n})
    predicted = stored_bytes(module, 64)
    assert predicted == lower_bounds(module, 64)
    assert predicted["cpu:0"] > 0


def parsed(text: str) -> ModuleOp:
    return parse_module(text, "program.mlir", tensorplan.context())


def test_loops_are_measured_on_each_device() -> None:
    """The flag of a loop is not counted for another device's loop."""
    loop = """
      %x{0} = tgraph.sine %a{0} : tensor<16xf32, "cpu:{0}">
      %r{0} = tgraph.while %x{0} : tensor<16xf32, "cpu:{0}"> {{
      ^bb0(%v: !tgraph.variable<tensor<16xf32, "cpu:{0}">>):
        %0 = tgraph.constant<false> : tensor<i1, "cpu:{0}">
        tgraph.yield %0 : tensor<i1, "cpu:{0}">
      }} do {{
      ^bb0(%v: !tgraph.variable<tensor<16xf32, "cpu:{0}">>):
        tgraph.yield
      }}
      %y{0} = tgraph.cosine %r{0} : tensor<16xf32, "cpu:{0}">"""
    types = 'tensor<16xf32, "cpu:0">', 'tensor<16xf32, "cpu:1">'
    module = parsed(
        f"func.func @main(%a0: {types[0]}, %a1: {types[1]}) -> ({', '.join(types)}) {{"
        + "".join(loop.format(device) for device in (0, 1))
        + f"\n      func.return %y0, %y1 : {', '.join(types)}\n    }}"
    )
    memory = memory_graph(storage_of_program(module).block, 64)
    live = memory.peaks(range(len(memory.ops)))
    assert live == {"cpu:0": 128, "cpu:1": 128}


def branching() -> ModuleOp:
    type, flag = 'tensor<16xf32, "cpu:0">', 'tensor<i1, "cpu:0">'
    return parsed(f"""
      func.func @main(%p: {flag}, %x: {type}) -> {type} {{
        %a = tgraph.sine %x : {type}
        %r = tgraph.if %p, %a : ({flag}, {type}) -> {type} {{
        ^bb0(%b: {type}):
          %0 = tgraph.cosine %b : {type}
          %1 = tgraph.atan2 %0, %b : {type}
          %2 = tgraph.atan2 %1, %b : {type}
          tgraph.yield %2 : {type}
        }} else {{
        ^bb0(%b: {type}):
          tgraph.yield %b : {type}
        }}
        func.return %r : {type}
      }}
    """)


def test_buffer_of_one_branch_is_dead_in_the_other() -> None:
    module = branching()
    assert stored_bytes(module, 64) == lower_bounds(module, 64) == {"cpu:0": 128}


def _inner(block: Block) -> Operation:
    """The operation before the terminator of a branch."""
    assert block.last_op is not None
    branch = block.last_op.operands[0].owner
    assert isinstance(branch, Operation)
    return list(branch.regions[0].block.ops)[-2]


def _donate(block: Block) -> None:
    func = block.parent_op()
    assert isinstance(func, FuncOp)
    func.arg_attrs = ArrayAttr([DictionaryAttr({DONATED: UnitAttr()})] * 2)


def _read_twice(block: Block) -> None:
    op = _inner(block)
    op.operands = [op.operands[0]] * 2


def _repeat(block: Block) -> None:
    op = _inner(block)
    assert op.parent is not None
    op.parent.insert_op_before(op.clone(), op)


def _mark(block: Block) -> None:
    _inner(block).attributes["tgraph.in_place"] = UnitAttr()


@pytest.mark.parametrize("change", [_donate, _read_twice, _repeat, _mark])
def test_changed_block_is_analyzed_again(
    change: Callable[[Block], None],
) -> None:
    module = branching()
    block = next(tensor_blocks(module))
    with caching():
        storage, graph = storage_of(block), memory_graph(block, 64)
        assert graph is memory_graph(block, 64)
        assert graph is not memory_graph(block, 128)
        assert storage is graph.storage is storage_of(block)
        assert storage_of(next(tensor_blocks(module.clone()))) is not storage
        change(block)
        assert storage_of(block) is not storage
        assert memory_graph(block, 64) is not graph
    assert storage_of(block) is not storage_of(block)


def test_results_are_cached_unless_the_deadline_passed() -> None:
    asked: list[int] = []

    def ask() -> int:
        asked.append(0)
        return len(asked)

    assert [cached_by("key", ask) for _ in range(2)] == [1, 2]
    with caching():
        with deadline.within(-1):
            assert cached_by("key", ask) == 3
        assert [cached_by("key", ask) for _ in range(2)] == [4, 4]
        assert cached_by("other", ask) == 5
