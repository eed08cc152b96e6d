"""Compiles and runs StableHLO text with jaxlib's CPU client, for comparisons.

Only untyped internals of JAX compile StableHLO text.
"""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # keeps XLA's log out of tables


def compiled(text: str, settings: Mapping[str, str] | None = None) -> Any:
    """The compiled program; `settings` override XLA's defaults. `called` runs it."""
    bridge: Any = import_module("jax._src.xla_bridge")
    lib: Any = import_module("jax._src.lib")
    mlir: Any = import_module("jax._src.interpreters.mlir")
    ir: Any = import_module("jaxlib.mlir.ir")
    backend = bridge.get_backend("cpu")
    options = lib.xla_client.CompileOptions()
    options.env_option_overrides = list((settings or {}).items())
    with mlir.make_ir_context():
        return backend.compile_and_load(
            ir.Module.parse(text),
            lib._jax.DeviceList(tuple(backend.local_devices()[:1])),
            options,
        )


def called(executable: Any, arguments: Sequence[Any]) -> list[Any]:
    """The results of `@main`. Arguments and results are JAX arrays."""
    results = executable.execute_sharded(arguments)
    return [shards[0] for shards in results.disassemble_into_single_device_arrays()]
