"""JAX functions → StableHLO bytecode, for `read`. Imports jax when called."""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, cast


def flat_numbers(args: Sequence[Any], argnums: int | Sequence[int]) -> set[int]:
    """The numbers that the leaves of some arguments have among those of all."""
    import jax

    chosen = {argnums} if isinstance(argnums, int) else set(argnums)
    if wrong := sorted(n for n in chosen if not 0 <= n < len(args)):
        raise ValueError(
            f"there is no argument {wrong[0]}, expected 0 to {len(args) - 1}"
        )
    tree: Any = jax.tree
    owners = [n for n, arg in enumerate(args) for _ in tree.leaves(arg)]
    return {leaf for leaf, owner in enumerate(owners) if owner in chosen}


def _has_symbols(args: Sequence[Any]) -> bool:
    """Whether the shape of an array has other sizes than numbers."""
    import jax

    leaves: Any = jax.tree.leaves(args)
    return any(
        not isinstance(size, int)
        for leaf in leaves
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

    Raises `ImportError` without jax.
    """
    import jax

    jit = cast(Callable[..., Any], jax.jit)  # pyright: ignore[reportUnknownMemberType]
    jitted: Any = (
        fn
        if hasattr(fn, "lower")
        else jit(fn, donate_argnums=donate_argnums, keep_unused=True)
    )
    if _has_symbols(args):
        from jax.export import export

        return export(jitted)(*args).mlir_module_serialized
    lowered = jitted.lower(*args)
    bytecode = BytesIO()
    lowered.compiler_ir("stablehlo").operation.write_bytecode(bytecode)
    return bytecode.getvalue()
