"""PyTorch modules → tgraph (level 1), by `torch.export`.

    import_module(module, example_args)    or    import_program(exported)

gives the module, with one function `@main`. Its arguments are the inputs, then what the
PyTorch module holds: parameters, and buffers, marked `tgraph.parameter`. Buffers that a
call changes (a batch norm's statistics, a cache of keys) are variables. Each has its
name in the PyTorch module as `tgraph.name`. The values stay outside; they are NumPy's
views of the tensors' own memory.

`torch.export` gives a functional graph of core ATen operations with static or symbolic
sizes, typed, and with places in the source. These are converted one by one: they are
few, stable, and all that they need is PyTorch itself. By way of ONNX would take
onnxscript, and lose what changes (buffers, training); PyTorch/XLA and torch-mlir, which
give StableHLO, are large, and tied to one release of PyTorch each. Attention, linear
layers and matrix products are taken whole (`WHOLE`), as what they decompose into is
longer and hides what they are.

An operation's place is where the module's source calls it.

program.py      the graph: arguments, sizes, results, training, errors
call.py         one call of an ATen operation, and what conversions share
sizes.py        symbolic sizes
elementwise.py, shaping.py, indexing.py, reducing.py, products.py, windows.py
                the conversions, by family

Does not: random numbers (dropout in training), complex and quantised tensors, shapes
that depend on values, `torch.cond` and other higher-order operations. Files (`.pt2`)
are not read by the tools: `torch.export.load` unpickles, which runs what is in them.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ...dialects.diagnostics import LocatedError
from ...model import Model

WHOLE = ("linear", "matmul", "scaled_dot_product_attention")
"""ATen operations that are not decomposed."""


def import_program(
    source: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: Any = None,
    gradients: bool = False,
    learning_rate: float | None = None,
) -> Model:
    """The program of a `torch.nn.Module` for `args`, or of an `ExportedProgram`.

    `dynamic` is what `torch.export.export` calls `dynamic_shapes`. With `gradients`,
    the gradients of the first result, a scalar, are further results, one for each
    parameter; with `learning_rate`, each parameter is a variable that a run lowers by
    that times its gradient.

    Raises `LocatedError` that lists all operations that are not supported, or if
    PyTorch is missing, and what `torch.export.export` raises.
    """
    try:
        export: Any = import_module("torch.export")
    except ImportError as error:
        raise LocatedError(
            f"PyTorch is needed: pip install 'tensorplan[torch]' ({error})"
        ) from None
    from .program import Importer

    if not isinstance(source, export.ExportedProgram):
        source = export.export(source, tuple(args), kwargs, dynamic_shapes=dynamic)
    elif args or kwargs or dynamic:
        raise ValueError(
            "an exported program includes its arguments, expected no args or kwargs"
        )
    if gradients and learning_rate is not None:
        raise ValueError("gradients and learning_rate are both given, expected one")
    aten: Any = import_module("torch").ops.aten
    table: Any = export.default_decompositions()
    for name in WHOLE:
        table.pop(getattr(aten, name).default, None)
    importer = Importer(source.run_decompositions(table), dynamic)
    module = importer.module(gradients=gradients, learning_rate=learning_rate)
    return Model(module, importer.parameters)
