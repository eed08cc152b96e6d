"""Tests `checkpoint_policy`: PyTorch saves the same values as the plan."""

# pyright: reportMissingImports=false

import copy
from itertools import accumulate
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr, UnknownLoc

import tensorplan
from tensorplan.passes import driver
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.rematerialize import TGraphRematerialize
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.reporting.torch_checkpoints import TorchCheckpointPolicy

LAYERS = 4


def residual_blocks() -> ModuleOp:
    """The gradient of blocks `x + down(sin(up(x)))`, as `from_torch` imports them."""
    lines: list[str] = []
    paths: dict[str, str] = {}

    def add(name: str, path: str, text: str) -> None:
        lines.append(f"%{name} = tgraph.{text}")
        paths[name] = path

    def product(name: str, path: str, operands: str, types: str) -> None:
        dimensions = (
            "lhs_contracting_dimensions = array<i64: 1>, "
            "rhs_contracting_dimensions = array<i64: 0>"
        )
        text = f"dot_general {operands} {{{dimensions}}} : {types}"
        add(name, f"{path}/aten.linear", text)

    x, up, wide, down = (
        f"tensor<{shape}xf32>" for shape in ("256x64", "64x256", "256x256", "256x64")
    )
    last = "x"
    for n in range(LAYERS):
        net = f"net.{n}"
        product(f"h{n}", f"{net}.up", f"%{last}, %u{n}", f"({x}, {up}) -> {wide}")
        add(f"a{n}", f"{net}/aten.sin", f"sine %h{n} : {wide}")
        product(f"y{n}", f"{net}.down", f"%a{n}, %d{n}", f"({wide}, {down}) -> {x}")
        add(f"x{n}", f"{net}/aten.add", f"add %{last}, %y{n} : {x}")
        last = f"x{n}"
    add("s", "/aten.pow", f"multiply %{last}, %{last} : {x}")
    over_all = '{kind = "add", dimensions = array<i64: 0, 1>}'
    add("l", "/aten.sum", f"reduce %s {over_all} : ({x}) -> tensor<f32>")
    weights = [f"%{kind}{n}" for n in range(LAYERS) for kind in "ud"]
    types = [up, down] * LAYERS
    wanted = f"{', '.join(weights)} : tensor<f32> wrt {', '.join(types)}"
    results = ", ".join(f"%g{n}" for n in range(len(weights)))
    lines += [
        f"{results} = tgraph.gradient %l wrt {wanted}",
        f"func.return {results} : {', '.join(types)}",
    ]
    arguments = (f"{w}: {type}" for w, type in zip(weights, types, strict=True))
    signature = f"(%x: {x}, {', '.join(arguments)}) -> ({', '.join(types)})"
    text = "\n".join((f"func.func @main{signature} {{", *lines, "}"))
    module = tensorplan.read(text)
    for op in module.walk():
        if op.results and (path := paths.get(op.results[0].name_hint or "")):
            op.location = NameLoc(StringAttr(path), UnknownLoc())
    return module


def planned(module: ModuleOp, budget: str) -> ModuleOp:
    """A plan that meets the budget only by rematerialization, since PyTorch has no
    tiles."""
    passes = [
        TGraphRematerialize(budget=budget) if isinstance(p, TGraphRematerialize) else p
        for p in PlanPipeline().passes()
        if not isinstance(p, TGraphTile)
    ]
    driver.run(tensorplan.context(), module, passes)
    return module


@pytest.mark.parametrize(
    ("budget", "products"),
    [("1.5MiB", [1, 2]), ("1.25MiB", [0, 1, 2]), ("1MiB", [0, 1])],
)
def test_blocks_recompute_the_same_values_as_the_plan(
    budget: str, products: list[int]
) -> None:
    found = tensorplan.checkpoint_policy(planned(residual_blocks(), budget))
    assert isinstance(found, TorchCheckpointPolicy)
    first = min(products)
    assert found.regions == [f"net.{n}" for n in range(first, 3)]
    assert found.saved == {
        **{f"net.{n}": ["aten.add"] for n in range(first, 3)},
        **{f"net.{n}.up": ["aten.addmm", "aten.mm"] for n in products},
    }
    assert '    "net.1.up": [aten.addmm, aten.mm],' in str(found).splitlines()
    compile(str(found), "policy.py", "exec")


def test_plan_without_recomputation() -> None:
    found = tensorplan.checkpoint_policy(planned(residual_blocks(), "64MiB"))
    *_, last = str(found).splitlines()
    assert last == "# The plan recomputes nothing: there is nothing to checkpoint."


@pytest.mark.filterwarnings("ignore")  # PyTorch's own warnings
def test_generated_code_lowers_pytorchs_peak() -> None:
    torch = pytest.importorskip("torch")
    import torch_models

    torch.manual_seed(0)
    plain = torch_models.Loss(torch_models.MLP())
    checkpointed = copy.deepcopy(plain)
    inputs = torch.randn(256, 64), torch.zeros(256, dtype=torch.long)
    model = tensorplan.from_torch(plain, inputs, gradients=True)
    found = tensorplan.checkpoint_policy(planned(model.module, "1.9MiB"))
    assert isinstance(found, TorchCheckpointPolicy)
    assert found.regions
    exec(str(found), {"model": checkpointed})
    most = [_peak(torch, module, inputs) for module in (plain, checkpointed)]
    assert most[1] < 0.9 * most[0]
    for want, got in zip(plain.parameters(), checkpointed.parameters(), strict=True):
        assert torch.equal(want.grad, got.grad)


def _peak(torch: Any, module: Any, inputs: Any) -> int:
    """The peak in bytes of PyTorch's allocations while it computes the gradients of a
    step."""
    profiler = torch.profiler
    cpu = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=cpu, profile_memory=True) as found:
        module(*inputs).backward()
    events = found.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    return max(accumulate(event.nbytes() for event in changes))
