"""StableHLO text compiled and run by jaxlib's CPU client, for comparisons.

JAX compiles StableHLO text through its internals only, which have no types.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any


def compiled(text: str) -> Any:
    """The program, with XLA's default settings; `called` runs it."""
    bridge: Any = import_module("jax._src.xla_bridge")
    lib: Any = import_module("jax._src.lib")
    mlir: Any = import_module("jax._src.interpreters.mlir")
    ir: Any = import_module("jaxlib.mlir.ir")
    backend = bridge.get_backend("cpu")
    with mlir.make_ir_context():
        return backend.compile_and_load(
            ir.Module.parse(text),
            lib._jax.DeviceList(tuple(backend.local_devices()[:1])),
            lib.xla_client.CompileOptions(),
        )


def called(executable: Any, arguments: Sequence[Any]) -> list[Any]:
    """The results of `@main` for JAX's arrays, as such."""
    results = executable.execute_sharded(arguments)
    return [shards[0] for shards in results.disassemble_into_single_device_arrays()]
