"""The main job on an example, as `python3 dev.py demo` runs it: plan, run, compare."""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLE = "examples/mlp_train_sgd.mlir"


def run(comment: str, tool: str, *arguments: str) -> None:
    """Says what comes, and runs it."""
    print(f"\n# {comment}\n$ {shlex.join((tool, *arguments))}", flush=True)
    module = f"tensorplan.tools.{tool.replace('-', '_')}"
    command = [sys.executable, "-m", module, *arguments]
    if code := subprocess.call(command):
        sys.exit(code)


def main() -> None:
    print(f"{EXAMPLE}: one training step of a small network, as JAX exports it.")
    with tempfile.TemporaryDirectory() as folder:
        reference = str(Path(folder, "reference.npz"))
        planned = str(Path(folder, "planned.mlir"))
        run(
            "Two steps, interpreted on whole tensors: what the values must be.",
            "plan-run",
            *(EXAMPLE, "--level", "reference", "--steps", "2", "--outputs", reference),
        )
        run(
            "The same in one arena, at offsets fixed at compile time.",
            "plan-run",
            *(EXAMPLE, "--steps", "2", "--expect", reference),
        )
        run(
            "The same as IR: an arena, a view for each buffer, operations on these.",
            "plan-opt",
            *(EXAMPLE, "-p", "plan-pipeline", "-o", planned),
        )
        lines = Path(planned).read_text().splitlines()
        print(*(line[:100] for line in lines[:24]), sep="\n")
        print(f"... {len(lines) - 24} more lines")


if __name__ == "__main__":
    main()
