"""Tests the placement and the inference of devices, with random programs and models."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from executables import assert_same, counted
from hypothesis import given
from hypothesis import strategies as st
from model_files import model_files
from programs import Program, programs
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.analysis.functions import is_tensor, set_argument_attributes
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import DEVICE, GROUP, TensorOp, device_of
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.shaping import ConstantOp, DeviceCopyOp
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.dialects.tgraph.structure import OnDeviceOp
from tensorplan.passes import driver
from tensorplan.passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.infer_devices import TGraphInferDevices
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices
from tensorplan.runtime.executor import Executable

DEVICES = ("cpu:0", "cpu:1", "cpu:2")
GROUPS = ("first=cpu:0", "second=cpu:1", "third=cpu:2")

placements = st.lists(st.sampled_from([None, None, *DEVICES]), min_size=1, max_size=40)
"""A device or None for each operation, repeated cyclically."""


def body(module: ModuleOp) -> Block:
    (func,) = (op for op in module.ops if isinstance(op, FuncOp))
    return func.body.block


def computing(module: ModuleOp) -> Iterator[TensorOp]:
    return (op for op in body(module).ops if isinstance(op, TensorOp))


def with_devices(program: Program, chosen: list[str | None]) -> ModuleOp:
    """The program with tgraph.device on some operations and tensor arguments."""
    module = program.module.clone()
    block = body(module)
    func = block.parent_op()
    assert isinstance(func, FuncOp)
    named = [chosen[n % len(chosen)] for n in range(len(block.args) + len(block.ops))]
    set_argument_attributes(
        func,
        [
            {} if device is None else {DEVICE: StringAttr(device)}
            for device, _ in zip(named, block.args, strict=False)
        ],
    )
    for device, op in zip(named[len(block.args) :], computing(module), strict=False):
        if device:
            op.attributes[DEVICE] = StringAttr(device)
    return module


def run(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    copy = module.clone()
    driver.run(tensorplan.context(), copy, passes)
    return copy


def assert_sound(module: ModuleOp) -> None:
    """Asserts that every tensor has a device, and that each value has at most one copy
    for each target device, directly after it, and no copies back."""
    block = body(module)
    for value in (*block.args, *(r for op in block.ops for r in op.results)):
        assert device_of(value.type) if is_tensor(value.type) else True
    copies = [op for op in block.ops if isinstance(op, DeviceCopyOp)]
    made = Counter((op.inputs[0], op.result.type) for op in copies)
    assert not made or max(made.values()) == 1
    for copy in copies:
        assert copy.result.uses
        assert copy.inputs[0].type != copy.result.type
        before: Operation | Block | None = copy.prev_op
        while isinstance(before, DeviceCopyOp) and before is not copy.inputs[0].owner:
            before = before.prev_op
        assert (before or block) is copy.inputs[0].owner
        if isinstance(source := copy.inputs[0].owner, DeviceCopyOp):
            assert source.inputs[0].type != copy.result.type


@pytest.mark.thorough
@given(programs(), placements)
def test_placed_programs_are_sound_and_have_the_same_values(
    program: Program, chosen: list[str | None]
) -> None:
    placed = run(with_devices(program, chosen), TGraphPlaceDevices(default="cpu:0"))
    assert_sound(placed)
    want = run_reference(program.module, counted(program.module))
    assert_same(run_reference(placed, counted(placed)), want)
    again = run(placed, TGraphPlaceDevices())
    assert str(again) == str(placed)


@given(programs(), placements)
def test_operations_are_placed_on_their_named_devices(
    program: Program, chosen: list[str | None]
) -> None:
    module = with_devices(program, chosen)
    placed = run(module, TGraphPlaceDevices(default="cpu:0"))
    ops = (op for op in computing(placed) if not isinstance(op, DeviceCopyOp))
    for before, after in zip(computing(module), ops, strict=True):
        if isinstance(device := before.attributes.get(DEVICE), StringAttr):
            assert device_of(after.result.type) == device.data


@pytest.mark.thorough
@given(programs(), placements)
def test_planned_programs_on_several_devices_have_the_same_values(
    program: Program, chosen: list[str | None]
) -> None:
    planned = run(with_devices(program, chosen), PlanPipeline())
    want = run_reference(program.module, counted(program.module))
    execute = Executable(planned, sanitize=True, native=False)  # bit for bit
    assert_same(execute(*counted(program.module)), want)


@pytest.mark.thorough
@given(programs(), placements, st.booleans())
def test_annotated_programs_are_sound_and_have_the_same_values(
    program: Program, chosen: list[str | None], by_inference: bool
) -> None:
    module = program.module.clone()
    for n, op in enumerate(list(computing(module))):
        if device := chosen[n % len(chosen)]:
            annotation = OnDeviceOp(op.result, device)
            block = body(module)
            block.insert_op_after(annotation, op)
            op.result.replace_uses_with_if(
                annotation.result, lambda use: not isinstance(use.operation, OnDeviceOp)
            )
    want = run_reference(program.module, counted(program.module))
    assert_same(run_reference(module, counted(module)), want)
    passes = TGraphPlaceDevices(default="cpu:0"), TGraphInferDevices(fallback="cpu:0")
    placed = run(module, passes[by_inference])
    assert_sound(placed)
    assert_same(run_reference(placed, counted(placed)), want)
    again = run(placed, TGraphInferDevices())
    assert str(again) == str(placed)


@pytest.mark.thorough
@given(programs(), placements)
def test_inference_agrees_with_placement(
    program: Program, chosen: list[str | None]
) -> None:
    """Inference finds all devices from the copies, and from the devices of arguments
    and constants."""
    placed = run(with_devices(program, chosen), TGraphPlaceDevices(default="cpu:0"))
    module = placed.clone()
    block = body(module)
    func = block.parent_op()
    assert isinstance(func, FuncOp)
    set_argument_attributes(func, [on(argument) for argument in block.args])
    for op in computing(module):
        if isinstance(op, DeviceCopyOp) or not op.operands:
            op.attributes |= on(op.result)
    text = str(module)
    for device in DEVICES:
        text = text.replace(f', "{device}">', ">")
    unplaced = Parser(tensorplan.context(), text).parse_module()
    assert str(run(unplaced, TGraphInferDevices())) == str(placed)


def on(value: SSAValue) -> dict[str, Attribute]:
    """The attribute that names the device of a value."""
    device = device_of(value.type)
    assert device
    return {DEVICE: StringAttr(device)}


@pytest.mark.thorough
@pytest.mark.parametrize("path", model_files())
def test_models_split_by_groups_have_the_same_values(path: Path) -> None:
    """Consecutive operations are in different groups, on different devices."""
    program = run(tensorplan.from_stablehlo(path).module, ConvertStablehloToTGraph())
    rng = np.random.default_rng(0)
    arguments = [
        np.abs(rng.standard_normal(i.shape) * 0.1).astype(i.dtype)
        if np.issubdtype(i.dtype, np.floating)
        else rng.integers(0, 10, i.shape).astype(i.dtype)
        for i in signature(program).inputs
    ]
    whole = Executable(run(program, PlanPipeline()), native=False)
    want = whole(*[a.copy() for a in arguments])
    ops = [op for op in computing(program) if not isinstance(op, ConstantOp)]
    for n, op in enumerate(ops):
        group = "second" if n % 2 else "first"
        op.attributes[GROUP] = StringAttr(group)
    planned = run(program, PlanPipeline(groups=GROUPS))
    halves = Executable(planned, sanitize=True, native=False)
    assert '"cpu:0"' in str(planned)
    assert '"cpu:1"' in str(planned)
    assert all(pool.bytes for pool in halves.pools)
    got = halves(*[a.copy() for a in arguments])
    for a, b in zip(got, want, strict=True):  # sums are in another order
        assert np.max(np.abs(a - b)) <= 2e-6 * np.max(np.abs(b))


@pytest.mark.thorough
def test_time_per_operation() -> None:
    """The time per operation is bounded, also if a device propagates through a long
    chain of arguments."""
    count = 2000
    lines = ["%0 = tgraph.abs %a0 : tensor<4xf32>"]
    for n in range(1, count):
        lines.append(f"%{n} = tgraph.add %a{n}, %a{n - 1} : tensor<4xf32>")
    arguments = ", ".join(f"%a{n}: tensor<4xf32>" for n in range(count))
    for named in (1, count - 1):
        text = [*lines]
        text[named] = text[named].replace(" :", ' {tgraph.device = "cpu:1"} :')
        module = Parser(
            tensorplan.context(),
            f"func.func @main({arguments}) {{\n" + "\n".join(text) + "\nfunc.return }",
        ).parse_module()
        for pass_ in (TGraphPlaceDevices(), TGraphInferDevices()):
            copy = module.clone()
            start = process_time()
            driver.run(tensorplan.context(), copy, [pass_], verify=False)
            assert process_time() - start < count * 300e-6  # several times the usual
            assert {on(op.result)[DEVICE] for op in computing(copy)} == {
                StringAttr("cpu:1")
            }


def test_plans_for_missing_devices_cannot_run() -> None:
    text = "func.func @main(%x: {0}) -> {0} {{ func.return %x : {0} }}"
    static = Parser(tensorplan.context(), text.format("tensor<4xf32>")).parse_module()
    with pytest.raises(ValueError, match="device is 'cuda:0', expected cpu:0, cpu:1"):
        tensorplan.compile(static, device="cuda:0")
    planned = tensorplan.plan(static, device="cuda:0")
    assert tensorplan.report(planned)["pools"] == []
    with pytest.raises(LocatedError, match="is on cuda:0, expected cpu:0, cpu:1"):
        tensorplan.compile(planned)
    size = "tensor<?xf32, #tgraph.dims<n>>"
    dynamic = Parser(tensorplan.context(), text.format(size)).parse_module()
    with pytest.raises(LocatedError, match="is on tpu:3, expected cpu:0, cpu:1"):
        tensorplan.compile(tensorplan.plan(dynamic, device="tpu:3"))
