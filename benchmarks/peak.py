"""Bytes that models need besides arguments and results: ours, and XLA's.

    python benchmarks/peak.py tests/models/*.mlir

Ours is the arena of `plan-pipeline`; XLA's is the temporary buffer that jaxlib's CPU
compiler reports for the same StableHLO text with its default settings. Both leave
arguments and results out, and let donated arguments be overwritten.
"""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

import tensorplan


def xla_temporary_bytes(text: str) -> int:
    """What `memory_analysis` of JAX shows as temporary size."""
    # JAX compiles StableHLO text through its internals only, which have no types.
    bridge: Any = import_module("jax._src.xla_bridge")
    lib: Any = import_module("jax._src.lib")
    mlir: Any = import_module("jax._src.interpreters.mlir")
    ir: Any = import_module("jaxlib.mlir.ir")
    backend = bridge.get_backend("cpu")
    with mlir.make_ir_context():
        executable = backend.compile_and_load(
            ir.Module.parse(text),
            lib._jax.DeviceList(tuple(backend.local_devices()[:1])),
            lib.xla_client.CompileOptions(),
        )
    return int(executable.get_compiled_memory_stats().temp_size_in_bytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    columns = ("arena", "lower bound", "without reuse", "XLA temp")
    print(f"{'model':<20}" + "".join(f"{column:>16}" for column in columns))
    for file in parser.parse_args().files:
        planned = tensorplan.plan(tensorplan.from_stablehlo(file))
        pools = tensorplan.report(planned)["pools"]
        figures = [
            sum(pool["bytes"] for pool in pools),
            sum(pool["lower_bound_bytes"] for pool in pools),
            sum(pool["unshared_bytes"] for pool in pools),
            xla_temporary_bytes(file.read_text()),
        ]
        print(f"{file.stem:<20}" + "".join(f"{figure:>16,}" for figure in figures))


if __name__ == "__main__":
    main()
