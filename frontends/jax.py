"""JAX functions → StableHLO bytecode, for `read`. Imports jax when called."""

from collections.abc import Callable, Sequence
from importlib import import_module
from io import BytesIO
from typing import Any

from ..dialects.diagnostics import LocatedError


def _jax() -> Any:
    """JAX; raises `LocatedError` where it is missing."""
    try:
        return import_module("jax")
    except ImportError as error:
        raise LocatedError(
            f"JAX is needed: pip install 'tensorplan[jax]' ({error})"
        ) from None


def flat_numbers(args: Sequence[Any], argnums: int | Sequence[int]) -> set[int]:
    """The numbers that the leaves of some arguments have among those of all.

    Raises `LocatedError` without jax.
    """
    jax = _jax()
    chosen = {argnums} if isinstance(argnums, int) else set(argnums)
    if wrong := sorted(n for n in chosen if not 0 <= n < len(args)):
        raise ValueError(
            f"there is no argument {wrong[0]}, expected 0 to {len(args) - 1}"
        )
    owners = [n for n, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
    return {leaf for leaf, owner in enumerate(owners) if owner in chosen}


def _has_symbols(args: Sequence[Any]) -> bool:
    """Whether the shape of an array has other sizes than numbers."""
    return any(
        not isinstance(size, int)
        for leaf in _jax().tree.leaves(args)
        for size in getattr(leaf, "shape", ())
    )


def lower(
    fn: Callable[..., Any], *args: Any, donate_argnums: int | Sequence[int] = ()
) -> bytes:
    """MLIR bytecode of `fn` for arguments like `args` (arrays or `ShapeDtypeStruct`s).

    The arguments numbered in `donate_argnums` are donated: they become variables that
    the results overwrite. Unused arguments are kept, so that all of `args`, flattened,
    are the program's arguments. Symbolic sizes go by `jax.export`. A function that is
    already jitted keeps its options. The bytecode holds places in the Python source,
    which messages then name.

    Raises `LocatedError` without jax.
    """
    jax = _jax()
    jitted: Any = (
        fn
        if hasattr(fn, "lower")
        else jax.jit(fn, donate_argnums=donate_argnums, keep_unused=True)
    )
    if _has_symbols(args):
        return import_module("jax.export").export(jitted)(*args).mlir_module_serialized
    lowered = jitted.lower(*args)
    bytecode = BytesIO()
    lowered.compiler_ir("stablehlo").operation.write_bytecode(bytecode)
    return bytecode.getvalue()
