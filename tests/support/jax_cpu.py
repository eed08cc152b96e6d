"""Runs StableHLO text with jaxlib's CPU client, the oracle for values."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=1)
def _compiled(text: str) -> Any:
    from jax._src import xla_bridge
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax, xla_client  # pyright: ignore
    from jaxlib.mlir import ir

    backend = xla_bridge.get_backend("cpu")
    with mlir.make_ir_context():
        return backend.compile_and_load(
            ir.Module.parse(text),
            _jax.DeviceList(tuple(backend.local_devices()[:1])),
            xla_client.CompileOptions(),
        )


def run_stablehlo(text: str, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of `@main`, in order. Does not modify `arguments`."""
    import jax

    executable = _compiled(text)
    device = jax.local_devices(backend="cpu")[0]
    with jax.enable_x64(True):  # or JAX converts f64 to f32
        donated = [jax.device_put(np.array(a), device) for a in arguments]
    results = executable.execute_sharded(donated)
    arrays = results.disassemble_into_single_device_arrays()
    return [np.array(shards[0]) for shards in arrays]
