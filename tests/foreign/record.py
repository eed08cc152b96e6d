"""Records the dumps in this folder: `python tests/foreign/record.py`, with jaxlib.

The recorded dumps are of jaxlib 0.10.2 on a CPU. Other versions may plan differently.
Tests read the recorded files and compile nothing.
"""

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FOLDER = Path(__file__).parent / "xla"
ENDINGS = ("", "-buffer-assignment", "-live-range")


def shift(x: Any) -> Any:
    """openxla/xla issue 49176: updates an array by a shifted slice of itself."""
    base = x + 1
    return base.at[1:].set(base[:-1]).reshape((1, *base.shape))


def windows(x: Any, source: Any, target: Any) -> Any:
    """Updates an array in place by another window of the same array."""
    base = x + 1
    window = jax.lax.dynamic_slice(base, (source, 0), (3, 16))
    updated = jax.lax.dynamic_update_slice(base, window * 2, (target, 0))
    return updated.reshape((1, *base.shape))


def steps(x: Any, y: Any, n: Any) -> Any:
    """A loop around a branch, whose result is in the memory of an argument."""

    def body(i: Any, carried: Any) -> Any:
        total, last = carried
        new = jax.lax.cond(i > n, lambda v: jnp.sort(v), lambda v: v @ v, last)
        return total.at[i].set(new[0]), new

    return jax.lax.fori_loop(0, 4, body, (x, y))


def main() -> None:
    x, y = jnp.zeros((8, 16), jnp.int32), jnp.ones((16, 16), jnp.int32)
    jax.jit(shift).lower(x).compile()
    jax.jit(windows).lower(x, 1, 2).compile()
    jax.jit(steps, donate_argnums=0).lower(x, y, 2).compile()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"
        import jax
        import jax.numpy as jnp

        main()
        for ending in ENDINGS:
            name = f"*.jit_*.cpu_after_optimizations{ending}.txt"
            for path in Path(folder).glob(name):
                program = path.name.split(".")[1]
                target = FOLDER / f"{program}{ending}.txt"
                if program.removeprefix("jit_") in ("shift", "windows", "steps"):
                    shutil.copyfile(path, target)
                    text = target.read_text().replace(str(Path(__file__)), "record.py")
                    target.write_text(text.replace(sys.argv[0], "record.py"))
