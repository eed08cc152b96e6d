"""Validates MLIR bytecode in another process, because MLIR may crash on damaged bytes.

Of 1,500 files with a few bytes changed, jaxlib 0.10 crashed on one and exhausted the
memory on two. The process takes 0.2 s, most of it to import jaxlib. Its program is this
file, which therefore imports nothing else at the top.
"""

# jaxlib's type stubs are incomplete.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import os
import sys
from collections.abc import Callable

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

SECONDS = 60.0
"""The longest time in seconds to read a file; 100 MB take some seconds."""

MEMORY, PER_BYTE = 4 << 30, 20
"""The bytes of address space to read a file: a constant, and a factor of its size."""

TOO_LARGE = 3  # the exit code


def context() -> ir.Context:
    """A context that registers all dialects of jaxlib and loads them on demand."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)
    sdy.register_dialect(context)  # JAX's shardings
    return context


def parser(data: bytes) -> Callable[[ir.Context], ir.Module]:
    """A function that parses MLIR bytecode or a portable artifact of StableHLO."""
    if data[5:].startswith(b"StableHLO_v"):  # magic, version, then the producer
        return lambda context: stablehlo.deserialize_portable_artifact(context, data)
    return lambda context: ir.Module.parse(data, context)


def check(data: bytes, name: str, seconds: float = SECONDS) -> None:
    """Raises `LocatedError` if the bytes are invalid, or take too much time or memory.

    This process must not parse them before: when parsing fails, MLIR may have
    overwritten memory of the process.
    """
    import inspect
    import signal
    import subprocess

    from ..dialects.diagnostics import LocatedError

    program = inspect.getsource(sys.modules[__name__])
    try:
        ended = subprocess.run(
            [sys.executable, "-c", program],
            input=data,
            capture_output=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        reason = f"MLIR did not finish reading it within {seconds:g} s"
    else:
        code = ended.returncode
        if code == 0:
            return
        if code < 0:
            reason = f"MLIR was killed by {signal.Signals(-code).name}"
        elif code == TOO_LARGE:
            reason = (
                f"MLIR requires more than {_most(data) >> 20} MiB of memory to read it"
            )
        else:
            reason = ended.stdout.decode(errors="replace").strip()
    raise LocatedError(f"{name} is not valid MLIR bytecode: {reason}")


def _most(data: bytes) -> int:
    return MEMORY + PER_BYTE * len(data)


def _read_here(data: bytes) -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_most(data), _most(data)))
    except (ImportError, ValueError):  # on Windows, or with a lower limit
        pass
    errors: list[str] = []

    def keep(diagnostic: ir.Diagnostic) -> bool:
        try:
            errors.append(diagnostic.message)
        except RuntimeError:
            errors.append("a name in it is not UTF-8")
        return True

    here = context()
    here.emit_error_diagnostics = True
    here.attach_diagnostic_handler(keep)
    try:
        parser(data)(here)
    except MemoryError:
        sys.exit(TOO_LARGE)
    except Exception as error:
        print(*(errors or [error])[:1], flush=True)
        os._exit(1)  # skips destructors: memory may be corrupt


if __name__ == "__main__":
    _read_here(sys.stdin.buffer.read())
