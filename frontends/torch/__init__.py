"""Imports PyTorch modules as tgraph programs (level 1), by `torch.export`.

    import_module(module, example_args)    or    import_program(exported)

Both return a model whose module has a single function `@main`. Its arguments are the
inputs, followed by the parameters and buffers of the PyTorch module, which are marked
`tgraph.parameter`. Buffers that a call changes, such as the statistics of a batch norm
or a key cache, are variables. `tgraph.name` is the name of the argument in the PyTorch
module. The values of parameters are not in the IR; they are NumPy views of the tensors'
memory.

`torch.export` returns a typed functional graph of core ATen operations, with static or
symbolic sizes and source locations. This frontend converts the operations one by one.
They are few and stable, and require only PyTorch. A detour through ONNX would require
onnxscript and lose mutable state (buffers, training). PyTorch/XLA and torch-mlir, which
produce StableHLO, are large, and each is tied to a single release of PyTorch.
Attention, linear layers, and matrix products are not decomposed (`WHOLE`), because
their decompositions are longer and hide the operation.

`import_graph` converts a forward or a backward pass of AOTAutograd, for
`torch.compile`. Operations of backward passes become `tgraph.gradient`.

The source location of an operation is its call in the module's source.

program.py      the graph: arguments, sizes, results, training, errors
call.py         one call of an ATen operation, and the helpers of all conversions
control.py      `torch.cond` and `torch.while_loop`
decompositions.py   decompositions into other ATen operations, written in PyTorch
sizes.py        symbolic sizes
elementwise.py, shaping.py, indexing.py, reducing.py, products.py, windows.py,
                matrices.py   the conversions, by family

Does not: support random numbers (dropout in training), quantized tensors,
data-dependent shapes, or other higher-order operations such as `torch.scan`. The tools
do not read `.pt2` files, because `torch.export.load` unpickles them, which runs their
code.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ...dialects.diagnostics import LocatedError
from ...model import Model
from ...support.extras import missing_extra_message

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

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
    """Imports an `ExportedProgram`, or exports a `torch.nn.Module` for `args` first.

    `dynamic` is the argument `dynamic_shapes` of `torch.export.export`. If `gradients`
    is true, the program also returns the gradient of its first result, a scalar, with
    respect to each parameter. With a `learning_rate`, the parameters are variables, and
    each run subtracts `learning_rate` times the gradient from each of them.

    Raises a `LocatedError` that lists all unsupported operations, a `LocatedError` if
    PyTorch is missing, and the errors of `torch.export.export`.
    """
    try:
        export: Any = import_module("torch.export")
    except ImportError as error:
        raise LocatedError(
            missing_extra_message("PyTorch is required", "torch", error)
        ) from None
    from .decompositions import own_decompositions
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
    table.update(own_decompositions())
    importer = Importer(source.run_decompositions(table), dynamic)
    module = importer.module(gradients=gradients, learning_rate=learning_rate)
    return Model(module, importer.parameters)


def import_graph(
    graph_module: Any, results: Iterable[Any], donated: Iterable[Any] = ()
) -> "ModuleOp":
    """Imports a functional graph of core ATen operations, as AOTAutograd produces it.

    The program's arguments are the placeholders that are tensors. Placeholders that the
    graph changes are variables. `results` are the nodes that the program returns;
    `donated` are the placeholders whose memory it may overwrite.

    Raises `UnsupportedNodes` (a `LocatedError`), which lists all unsupported
    operations.
    """
    from .program import Importer

    def specs(kind: str, nodes: Iterable[Any]) -> list[Any]:
        names = SimpleNamespace(name=kind)
        return [SimpleNamespace(kind=names, arg=n, target=n.target) for n in nodes]

    nodes = list(graph_module.graph.nodes)
    inputs = specs("USER_INPUT", [n for n in nodes if n.op == "placeholder"])
    held = [node for node in nodes if node.op == "get_attr"]
    constants = {node.target: getattr(graph_module, node.target) for node in held}
    held = [node for node in held if not hasattr(constants[node.target], "graph")]
    for node in held:
        node.meta.setdefault("val", constants[node.target])
    mutation = SimpleNamespace(name="USER_INPUT_MUTATION")
    mutations = [
        SimpleNamespace(kind=mutation, arg=copy.args[1], target=given.target)
        for given, copy in changed_inputs(graph_module).items()
    ]
    program = SimpleNamespace(
        graph=graph_module.graph,
        graph_signature=SimpleNamespace(
            input_specs=[*inputs, *specs("CONSTANT_TENSOR", held)],
            output_specs=[*specs("USER_OUTPUT", results), *mutations],
        ),
        constants=constants,
        range_constraints={},
    )
    importer = Importer(program, donated={node.name for node in donated})
    return importer.module(gradients=False, learning_rate=None)


def changed_inputs(graph_module: Any) -> dict[Any, Any]:
    """Maps each placeholder that the graph changes to the `copy_` node that writes its
    new contents. A functional graph has no other side effects."""
    copy = import_module("torch").ops.aten.copy_.default
    copies = graph_module.graph.find_nodes(op="call_function", target=copy)
    return {x.args[0]: x for x in copies if x.args[0].op == "placeholder"}
