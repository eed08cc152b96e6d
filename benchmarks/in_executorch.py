"""ExecuTorch with its own planners and with ours: bytes of its arenas, and values.

    pip install executorch==1.5.1 torch torchao    # and tensorplan
    python -W ignore benchmarks/in_executorch.py

Programs use portable operators and no backend. As is ExecuTorch's default, the arena
contains inputs and outputs. ExecuTorch's runtime runs each program: `wrong` follows the
bytes if a value differs from PyTorch's by more than 1e-4. The exit code is 1 if values
with our plan are wrong.
"""

import sys
from importlib import import_module
from typing import Any

from small_networks import models

from tensorplan.integrations.executorch import plan

torch: Any = import_module("torch")
exir: Any = import_module("executorch.exir")
passes: Any = import_module("executorch.exir.passes")
planning: Any = import_module("executorch.exir.memory_planning")
runtime: Any = import_module("executorch.extension.pybindings.portable_lib")


def measured(program: Any, inputs: Any, expected: Any, algorithm: Any) -> str:
    """The planned bytes, followed by `wrong` if the values differ from `expected`."""
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
