"""The main job on an example, as `python3 dev.py demo` runs it: plan, run, compare."""

import shlex
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

EXAMPLE = "mlp_train_sgd.mlir"


def run(comment: str, folder: str, tool: str, *arguments: str) -> None:
    """Says what comes, and runs it in the folder."""
    print(f"\n# {comment}\n$ {shlex.join((tool, *arguments))}", flush=True)
    module = f"tensorplan.tools.{tool.replace('-', '_')}"
    command = [sys.executable, "-m", module, *arguments]
    if code := subprocess.call(command, cwd=folder):
        sys.exit(code)


def main() -> None:
    print(
        f"examples/{EXAMPLE}: one training step of a small network, as JAX exports it."
    )
    with tempfile.TemporaryDirectory() as folder:
        name = EXAMPLE
        program = files("tensorplan.examples").joinpath(name).read_text()
        Path(folder, name).write_text(program)
        run(
            "Two steps, interpreted on whole tensors: what the values must be.",
            folder,
            "plan-run",
            *(name, "--level", "reference", "--steps", "2", "--outputs", "out.npz"),
        )
        run(
            "The same two steps in one arena, at offsets fixed at compile time.",
            folder,
            "plan-run",
            *(name, "--steps", "2", "--expect", "out.npz"),
        )
        run(
            "The IR of that: an arena, a view for each buffer, operations on these.",
            folder,
            "plan-opt",
            *(name, "-p", "plan-pipeline", "-o", "planned.mlir"),
        )
        lines = Path(folder, "planned.mlir").read_text().splitlines()
        print(*(line[:100] for line in lines[:24]), sep="\n")
        print(f"... {len(lines) - 24} more lines")
    print("\n# docs/tutorial.md goes on from here. The tools are in .venv/bin:")
    print("$ source .venv/bin/activate")


if __name__ == "__main__":
    main()
