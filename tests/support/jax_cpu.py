"""Runs StableHLO text with jaxlib's CPU client, the oracle for values."""

from collections.abc import Sequence

import numpy as np


def run_stablehlo(text: str, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of `@main`, in order. Does not modify `arguments`."""
    import jax
    from jax._src import xla_bridge
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax, xla_client  # pyright: ignore
    from jaxlib.mlir import ir

    backend = xla_bridge.get_backend("cpu")
    with mlir.make_ir_context():
        executable = backend.compile_and_load(
            ir.Module.parse(text),
            _jax.DeviceList(tuple(backend.local_devices()[:1])),
            xla_client.CompileOptions(),
        )
    device = backend.local_devices()[0]
    with jax.enable_x64(True):  # or JAX converts f64 to f32
        donated = [jax.device_put(np.array(a), device) for a in arguments]
    results = executable.execute_sharded(donated)
    arrays = results.disassemble_into_single_device_arrays()
    return [np.array(shards[0]) for shards in arrays]
