"""ExecuTorch with its own planners and with ours: bytes of its arenas, and values.

    pip install executorch==1.5.1 torch torchao    # besides tensorplan
    python -W ignore benchmarks/in_executorch.py

Portable operators, no backend; inputs and outputs are in the arena, as by default. The
lower bound is the largest sum of live bytes. The values of each program are compared
with PyTorch's, in ExecuTorch's runtime: `wrong` if they are off by more than 1e-4. The
exit code is 1 if those with our plan are.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

from tensorplan.integrations.executorch import plan

torch: Any = import_module("torch")
exir: Any = import_module("executorch.exir")
passes: Any = import_module("executorch.exir.passes")
planning: Any = import_module("executorch.exir.memory_planning")
runtime: Any = import_module("executorch.extension.pybindings.portable_lib")

SUPPORT = Path(__file__).parent.parent / "tests/support/torch_models.py"
MODELS = run_path(str(SUPPORT))


class Inception(torch.nn.Module):
    """Two blocks of four branches."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)
        Conv: Any = torch.nn.Conv2d
        self.stem = Conv(3, 32, 3, padding=1)
        self.branches = torch.nn.ModuleList(
            torch.nn.Sequential(Conv(32, 8 * n, 1), Conv(8 * n, 8, k, padding=k // 2))
            for n, k in ((1, 1), (2, 3), (3, 5), (4, 7))
        )

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.stem(x))
        for _ in range(2):
            x = torch.relu(torch.cat([branch(x) for branch in self.branches], 1))
        return x.mean((2, 3))


class Dense(torch.nn.Module):
    """A block of DenseNet."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)
        sizes = range(16, 16 + 6 * 12, 12)
        Conv: Any = torch.nn.Conv2d
        self.layers = torch.nn.ModuleList(Conv(n, 12, 3, padding=1) for n in sizes)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = torch.cat([x, torch.relu(layer(x))], 1)
        return x


class Branches(torch.nn.Module):
    """The results of two conditions are live at a time."""

    def forward(self, x: Any, p: Any, q: Any) -> Any:
        def one(x: Any) -> Any:
            return (x * 2).sin() + x.cos()

        def other(x: Any) -> Any:
            return (x - 1).tanh() * x

        return torch.cond(p, one, other, (x,)) + torch.cond(q, one, other, (x,))


def models() -> dict[str, Callable[[], Any]]:
    shared = {name: lambda name=name: MODELS["make"](name) for name in MODELS["MODELS"]}
    image, yes, no = torch.randn(1, 16, 16, 16), torch.tensor(True), torch.tensor(False)
    return shared | {
        "inception": lambda: (Inception(), (torch.randn(1, 3, 32, 32),)),
        "densenet_block": lambda: (Dense(), (image,)),
        "two_conditions": lambda: (Branches(), (torch.randn(64), yes, no)),
    }


def measured(program: Any, inputs: Any, expected: Any, algorithm: Any) -> str:
    """The bytes, and whether the values are wrong."""
    checks = exir.EdgeCompileConfig(_check_ir_validity=False)
    config = exir.ExecutorchBackendConfig(
        memory_planning_pass=passes.MemoryPlanningPass(algorithm)
    )
    executable = exir.to_edge(program, compile_config=checks).to_executorch(config)
    (method,) = executable.executorch_program.execution_plan
    results = runtime._load_for_executorch_from_buffer(executable.buffer).forward(
        inputs
    )
    is_right = torch.allclose(results[0], expected, rtol=1e-4, atol=1e-4)
    total = sum(method.non_const_buffer_sizes)
    return f"{total:,}" if is_right else f"{total:,} wrong"


def main() -> int:
    suite = planning.MemoryPlanningAlgorithmSuite
    algorithms = {
        "naive": suite([planning.naive]),
        "greedy": suite([planning.greedy]),
        "tensorplan": plan,
    }
    print(f"{'model':16}", *(f"{name:>16}" for name in algorithms))
    is_wrong = False
    for name, make in models().items():
        torch.manual_seed(0)
        module, inputs = make()
        with torch.no_grad():
            module, expected = module.eval(), module(*inputs)
        first = torch.utils._pytree.tree_leaves(expected)[0]
        program = torch.export.export(module, inputs)
        cells = [measured(program, inputs, first, a) for a in algorithms.values()]
        print(f"{name:16}", *(f"{cell:>16}" for cell in cells), flush=True)
        is_wrong |= "wrong" in cells[-1]
    return is_wrong


if __name__ == "__main__":
    sys.exit(main())
