"""JAX functions → StableHLO bytecode, for `read`. Imports jax when called."""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, cast


def lower(
    fn: Callable[..., Any], *args: Any, donate_argnums: int | Sequence[int] = ()
) -> bytes:
    """MLIR bytecode of `fn` for arguments like `args` (arrays or `ShapeDtypeStruct`s).

    The arguments numbered in `donate_argnums` are donated: they become variables that
    the results overwrite. Unused arguments are kept, so that all of `args`, flattened,
    are the program's arguments. A function that is already jitted keeps its options.
    The bytecode holds places in the Python source, which messages then name.

    Raises `ImportError` without jax.
    """
    import jax

    jit = cast(Callable[..., Any], jax.jit)  # pyright: ignore[reportUnknownMemberType]
    jitted: Any = (
        fn
        if hasattr(fn, "lower")
        else jit(fn, donate_argnums=donate_argnums, keep_unused=True)
    )
    lowered = jitted.lower(*args)
    bytecode = BytesIO()
    lowered.compiler_ir("stablehlo").operation.write_bytecode(bytecode)
    return bytecode.getvalue()
