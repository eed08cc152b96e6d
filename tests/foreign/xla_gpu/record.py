"""Records the dumps in this folder: `python tests/foreign/xla_gpu/record.py`. Needs JAX
on a GPU.

The recorded dumps are of JAX 0.11.2 on an H200, with shortened paths and with the line
numbers of another script. `scan` runs two operations asynchronously; `attention` calls
cuDNN, with workspaces; `transposed` is seed 20004063 of the random programs in
`tests/fuzz/foreign_programs.py`: one result of a fusion transposes an operand that
another result updates in place.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp

FOLDER = Path(__file__).parent
ENDINGS = ("", "-buffer-assignment", "-live-range")
SEED = 20_004_063


def scan(c: Any, xs: Any) -> Any:
    return jax.lax.scan(lambda c, x: (jnp.tanh(c @ x), c.sum(0)), c, xs)


def attended(q: Any, k: Any, v: Any) -> Any:
    options = {"is_causal": True, "implementation": "cudnn"}
    found = jax.nn.dot_product_attention(q, k, v, **options)
    return found.astype(jnp.float32).sum()


def programs() -> Iterator[tuple[str, Any, Any, Any]]:
    yield "scan", scan, [jnp.ones((64, 64)), jnp.ones((10, 64, 64))], ()
    heads = [jnp.ones((2, 256, 8, 64), jnp.bfloat16)] * 3
    yield "attention", jax.grad(attended, (0, 1, 2)), heads, ()
    sys.path[:0] = [str(FOLDER.parents[1] / name) for name in ("fuzz", "support")]
    import foreign_programs

    arguments = foreign_programs._arguments(SEED)
    yield "transposed", foreign_programs.program(SEED), arguments, 0


if __name__ == "__main__":
    for name, function, arguments, donated in programs():
        with TemporaryDirectory() as folder:
            options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
            lowered = jax.jit(function, donate_argnums=donated).lower(*arguments)
            lowered.compile(compiler_options=options)
            for ending in ENDINGS:
                for path in Path(folder).glob(f"*gpu_after_optimizations{ending}.txt"):
                    text = path.read_text().replace(str(Path(__file__)), "record.py")
                    (FOLDER / f"jit_{name}{ending}.txt").write_text(text)
