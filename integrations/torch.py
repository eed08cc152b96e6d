"""The backend of `torch.compile(model, backend="tensorplan")`.

AOTAutograd divides each graph of TorchDynamo into a forward and a backward pass, by the
cut with the fewest bytes to save. Each pass is a separate program. Saved tensors are
results of the forward pass and donated arguments of the backward pass. After its last
use of a saved tensor, the backward pass reuses the memory, or frees it
(torch_calls.py). In a graph without gradients, parameters and buffers are weights
(torch_weights.py). A graph with symbolic sizes is compiled for each set of sizes with
which it is called. PyTorch runs the operations that tensorplan does not support, and a
warning lists them. The other operations form as few programs as data dependences allow.
PyTorch also draws the random numbers, with its own generator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Container,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import count
from operator import getitem, is_not
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from warnings import warn

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp

from .. import compile as compiled
from .. import context
from ..dialects.diagnostics import LocatedError
from ..dialects.strides import contiguous_strides
from ..dialects.tgraph.base import ON_DEMAND
from ..frontends.torch import changed_inputs, import_graph
from ..frontends.torch.program import UnsupportedNodes
from ..passes.inference import simplify_without_values
from .torch_calls import TensorProgram, empty
from .torch_decompositions import decompositions, order_of
from .torch_weights import Weighted

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..runtime.executor import Executable
    from ..runtime.pool import Pool

Graph: TypeAlias = Any
"""`torch.fx.GraphModule`."""
Options: TypeAlias = Mapping[str, Any]
FREEZING = "freezing"
"""The option of this backend that `tensorplan.compile` does not have."""
Call: TypeAlias = Callable[[list[Any]], Sequence[Any]]
"""Runs a graph on a list of tensors and numbers, and returns its results. The call may
empty the list."""


class Roles(NamedTuple):
    """The numbers of the arguments of a graph that have a special role."""

    weights: Collection[int] = ()
    donated: Collection[int] = ()
    released: Collection[int] = ()
    """The arguments whose tensors the caller does not keep."""
    changed: Collection[int] = ()
    """The arguments that AOTAutograd changes after the call."""
    saves_none: bool = False
    """Whether no backward pass reads results, which it would copy if they had gaps."""

    def renumbered(self, given: Sequence[Any], taken: Sequence[Any]) -> Roles:
        """The roles of the arguments of a part of the graph.

        `given` are the nodes of the graph's arguments, and `taken` those of the part's
        arguments. An argument with other users is not donated to the part.
        """
        weights = {given[n] for n in self.weights}
        changed = {given[n] for n in self.changed}
        donated = {given[n] for n in self.donated if len(given[n].users) == 1}
        return Roles(
            [n for n, node in enumerate(taken) if node in weights],
            [n for n, node in enumerate(taken) if node in donated],
            changed=[n for n, node in enumerate(taken) if node in changed],
        )


def backend(
    graph: Graph, example_inputs: Sequence[Any], *, options: Options | None = None
) -> Call:
    """The backend `tensorplan` of `torch.compile`.

    `options` are the options of `tensorplan.compile`, and `freezing`, named after
    Inductor's option. With `freezing`, in graphs without gradients, kernels pack all
    weights once, and again after addresses or versions of the weights have changed.
    Changes that do not increase the version, such as `weight.data.mul_(2)`, may have no
    effect.
    """
    build = Builder(options or {})

    def compiler(
        graph: Graph, example_inputs: Sequence[Any], roles: Roles | None = None
    ) -> Call:
        # Constants of the graph are real tensors.
        with import_module("torch._subclasses.fake_tensor").unset_fake_temporarily():
            call = _call(graph, build, roles or Roles(changed=_changed_later()))
        if isinstance(call, _Program):
            build.separate |= call.separate

        def boxed(given: list[Any]) -> Sequence[Any]:
            return call(given)

        vars(boxed)["_boxed_call"] = True  # PyTorch's mark of this calling convention
        return boxed

    def inference_compiler(graph: Graph, example_inputs: Sequence[Any]) -> Call:
        roles = Roles(_weights(graph), changed=_changed_later(), saves_none=True)
        return compiler(graph, example_inputs, roles)

    def backward_compiler(graph: Graph, example_inputs: Sequence[Any]) -> Call:
        roles = _backward_roles(graph, build.separate)
        return compiler(graph, example_inputs, roles)

    aot = import_module("torch._dynamo.backends.common").aot_autograd(
        fw_compiler=compiler,
        bw_compiler=backward_compiler,
        inference_compiler=inference_compiler,
        decompositions=decompositions(),
        partition_fn=_divided_in_passes,
        keep_inference_input_mutations=True,
    )
    return aot(graph, example_inputs)


def _divided_in_passes(
    joint: Graph, inputs: Any, **options: Any
) -> tuple[Graph, Graph]:
    """The forward and the backward pass of a graph, as AOTAutograd divides it.

    Copies of values are omitted first: a value and its copy could both be saved. Such a
    copy is what PyTorch makes of a dropout with probability 0.
    """
    (output,) = joint.graph.find_nodes(op="output")
    returned = dict.fromkeys(output.all_input_nodes)
    for node in (queue := list(returned)):  # grows
        if _is_view(node) and node.args[0] not in returned:
            returned[node.args[0]] = None
            queue.append(node.args[0])
    clone = import_module("torch").ops.aten.clone.default
    for copy in joint.graph.find_nodes(op="call_function", target=clone):
        value = copy.args[0]
        layouts = [(x.meta["val"].stride(), x.meta["val"].dtype) for x in (copy, value)]
        if copy not in returned and layouts[0] == layouts[1]:
            copy.replace_all_uses_with(value)
            joint.graph.erase_node(copy)
    functorch: Any = import_module("functorch.compile")
    return functorch.min_cut_rematerialization_partition(joint, inputs, **options)


class Builder:
    """Compiles all programs of a graph: the forward and the backward pass, programs for
    different sizes, and programs between the operations that PyTorch runs. They share
    the pools of their arenas, because no two of them run at the same time."""

    def __init__(self, options: Options):
        self.freezing = options.get(FREEZING, False)
        if not isinstance(self.freezing, bool):
            raise TypeError(f"{FREEZING} is {self.freezing!r}, expected bool")
        self._options = {x: options[x] for x in options if x != FREEZING}
        self.separate: set[str] = set()
        """The names of the graph's results that share their memory with nothing else.
        """
        self._pools: list[Pool] = []

    def __call__(self, module: ModuleOp) -> Executable:
        for func in module.walk():
            if isinstance(func, FuncOp):
                func.attributes[ON_DEMAND] = UnitAttr()
        options: Options = {"pools": tuple(self._pools), **self._options}
        made = compiled(module, **options)
        run = cast("Executable", made)  # all sizes are known
        devices = {pool.device for pool in self._pools}
        self._pools += [pool for pool in run.pools if pool.device not in devices]
        return run


def _changed_later() -> Collection[int]:
    """The numbers of the arguments that the user's function changes. AOTAutograd writes
    their new contents unless the graph does."""
    metadata = _metadata()
    return metadata.mutated_inp_runtime_indices if metadata else ()


def _weights(graph: Graph) -> Collection[int]:
    """The numbers of the arguments that are parameters or buffers of a module according
    to AOTAutograd, lie densely in CPU memory, and are not changed by the graph. The
    choice affects only the run time."""
    metadata = _metadata()
    if metadata is None:
        return []
    given = _placeholders(graph)
    changed = {given[n] for n in _changed_later()}
    changed |= changed_inputs(graph).keys()
    return [
        n
        for n in metadata.static_input_indices
        if given[n] not in changed and _is_plain(given[n].meta.get("val"))
    ]


def _backward_roles(graph: Graph, separate: Collection[str]) -> Roles:
    """The roles of the arguments of a backward pass.

    Saved tensors without uses after the backward pass are released; AOTAutograd lists
    them, and refuses to run such a pass twice. They are also donated if they share
    their memory with no other argument. If the forward pass is a program, it has
    computed `separate` tensors, which PyTorch would compute as views of one tensor. The
    gradients of results are released, too.
    """
    given = _placeholders(graph)
    metadata = _metadata()
    saved: Sequence[int] = (metadata and metadata.bw_donated_idxs) or []
    storages = Counter(map(_storage, given))
    donated = [
        n
        for n in saved
        if storages[_storage(given[n])] == 1 or given[n].name in separate
    ]
    gradients = [n for n, node in enumerate(given) if "tangents" in node.name]
    return Roles(donated=donated, released=[*saved, *gradients])


def _storage(node: Any) -> Any:
    example = node.meta.get("val")
    storage = getattr(example, "untyped_storage", None)
    return storage and storage()._cdata


def _metadata() -> Any:
    """AOTAutograd's metadata of the graph that is being compiled; None if unknown."""
    torch: Any = import_module("torch")
    context = torch._guards.TracingContext.try_get()
    return context and context.fw_metadata


def _is_plain(example: Any) -> bool:
    return (
        hasattr(example, "data_ptr")
        and example.device.type == "cpu"
        and example.is_contiguous()
    )


def _placeholders(graph: Graph) -> Sequence[Any]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _call(
    graph: Graph,
    build: Builder,
    roles: Roles,
    *,
    strided: bool = False,
) -> Call:
    """Compiles `graph` as far as possible; PyTorch runs the rest. If `strided`, the
    results have the strides that PyTorch inferred for them."""
    values = [node.meta.get("val") for node in graph.graph.nodes]
    devices = {value.device.type for value in values if hasattr(value, "device")}
    if others := devices - {"cpu"}:
        warn(f"PyTorch runs a graph on {min(others)}, expected cpu", stacklevel=2)
        return _boxed(graph)
    if any(_is_symbolic(node.meta.get("val")) for node in _placeholders(graph)):
        return _BySizes(graph, build, roles, strided)
    try:
        return _Program(graph, build, roles, strided)
    except UnsupportedNodes as error:
        if not all(map(_is_for_pytorch, error.nodes)):
            what = f"operations that tensorplan does not support: {error}"
            warn(f"PyTorch runs {what}", stacklevel=2)
        return _divided(graph, _left(graph, error.nodes), build, roles)
    except LocatedError as error:
        what = f"a graph that tensorplan does not support: {error}"
        warn(f"PyTorch runs {what}", stacklevel=2)
        return _boxed(graph)


def _boxed(graph: Callable[..., Any]) -> Call:
    return import_module("functorch.compile").make_boxed_func(graph)


def _is_for_pytorch(node: Any) -> bool:
    """Whether PyTorch always runs `node`: it draws random numbers, or it checks the
    results of linear algebra for errors."""
    torch: Any = import_module("torch")
    if node.target is torch.ops.higher_order.with_effects:
        return True
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _left(graph: Graph, refused: Sequence[Any]) -> Collection[Any]:
    """The nodes that PyTorch runs: the `refused` nodes, nodes that select one of their
    results, constants that only these nodes use, and calls of other graphs."""
    left = dict.fromkeys(refused)
    for node in graph.graph.nodes:
        inputs = node.all_input_nodes
        picks = node.target is getitem and inputs[0] in left
        calls = any(x.op == "get_attr" and "val" not in x.meta for x in inputs)
        if node.op == "call_function" and (picks or calls):
            left[node] = None
    for node in reversed(graph.graph.nodes):
        is_constant = node.op == "call_function" and not node.all_input_nodes
        if is_constant and all(user in left for user in node.users):
            left[node] = None
    return left


_VIEWS = "alias detach expand permute select slice squeeze unsqueeze view".split()


def _divided(graph: Graph, left: Collection[Any], build: Builder, roles: Roles) -> Call:
    """Divides `graph` into programs and the nodes `left`, which PyTorch runs. PyTorch
    also runs each part that consists of one operation and views."""
    passes = "torch.fx.passes"
    partitioner: Any = import_module(f"{passes}.infra.partitioner")
    support: Any = import_module(f"{passes}.operator_support")

    def is_ours(_: Any, node: Any) -> bool:
        return node.op == "call_function" and node not in left

    targets = _copied_last(graph)
    parts = partitioner.CapabilityBasedPartitioner(
        graph,
        support.create_op_support(is_ours),
        non_compute_ops=[f"torch.ops.aten.{name}.default" for name in _VIEWS],
    )
    count = len(found := parts.propose_partitions())
    parts.fuse_partitions(found, "program_")
    given = _placeholders(graph)  # after fusion, which replaces nodes
    for name in (f"program_{n}" for n in range(count)):
        (call,) = graph.graph.find_nodes(op="call_module", target=name)
        _run_in(getattr(graph, name), build, roles.renumbered(given, call.args))
    graph.recompile()

    def copying(*given: Any) -> Sequence[Any]:
        results = graph(*given)
        kept = len(results) - len(targets)
        for n, value in zip(targets, results[kept:], strict=True):
            given[n].data.copy_(value)
        return results[:kept]

    return _boxed(copying if targets else graph)


def _copied_last(graph: Graph) -> Sequence[int]:
    """Replaces the copies to arguments by further results, after all others. Returns
    the numbers of these arguments."""
    changed = changed_inputs(graph)
    (output,) = graph.graph.find_nodes(op="output")
    values = [copy.args[1] for copy in changed.values()]
    for given, copy in changed.items():
        copy.replace_all_uses_with(given)
        graph.graph.erase_node(copy)
    output.args = ((*output.args[0], *values),)
    numbers = {node: n for n, node in enumerate(_placeholders(graph))}
    return [numbers[given] for given in changed]


def _run_in(part: Graph, build: Builder, roles: Roles) -> None:
    """Replaces the method `forward` of `part`, which may return a single value, by a
    program. The results have PyTorch's strides, because later operations of PyTorch may
    depend on them."""
    (output,) = part.graph.find_nodes(op="output")
    returned = output.args[0]
    if is_one := _is_node(returned):
        output.args = ((returned,),)
    inner = import_module("torch.fx").GraphModule(part, part.graph)
    call = _call(inner, build, roles, strided=True)
    expected = [node.meta["val"] for node in _placeholders(part)]
    promised = [
        (n, value.dtype, None if _is_symbolic(value) else value.shape)
        for n, value in enumerate(expected)
        if hasattr(value, "dtype")
    ]

    def forward(*given: Any) -> Any:
        for n, dtype, shape in promised:
            found = given[n].dtype, given[n].shape
            if found != (dtype, found[1] if shape is None else shape):
                sizes = "any sizes" if shape is None else tuple(shape)
                raise TypeError(
                    f"an operation that PyTorch runs returns {found[0]} of "
                    f"{tuple(found[1])}, expected {dtype} of {sizes}"
                )
        results = call(list(given))
        return results[0] if is_one else results

    part.forward = forward


def _is_symbolic(example: Any) -> bool:
    """Whether the value is a tensor with a symbolic size, or a symbolic number."""
    sizes = getattr(example, "shape", [example])
    return any(type(size).__name__.startswith("Sym") for size in sizes)


_tracing = RLock()
"""Held while a graph is specialized, because PyTorch traces one graph at a time."""


class _BySizes:
    """A graph with symbolic sizes, which has a program for each set of sizes."""

    def __init__(self, graph: Graph, build: Builder, roles: Roles, strided: bool):
        self._graph = graph
        self._strided = strided
        self._build = build
        self._roles = roles
        self._calls: dict[tuple[Any, ...], Call] = {}

    def __call__(self, given: list[Any]) -> Sequence[Any]:
        key = tuple(getattr(x, "shape", x) for x in given)
        if key not in self._calls:
            with _tracing:
                if key not in self._calls:  # another thread may have compiled it
                    self._calls[key] = self._made(given)
        return self._calls[key](given)

    def _made(self, given: Sequence[Any]) -> Call:
        graph = _of_sizes(self._graph, given)
        return _call(graph, self._build, self._roles, strided=self._strided)


def _of_sizes(graph: Graph, given: Sequence[Any]) -> Graph:
    """A copy of `graph`, specialized to the sizes of the arguments `given`. (Tracing it
    with `make_fx` would temporarily change `torch.nn.Module`, also for other threads.)
    """
    torch: Any = import_module("torch")
    fx: Any = import_module("torch.fx")
    fake: Any = import_module("torch._subclasses.fake_tensor")
    propagation: Any = import_module("torch.fx.passes.fake_tensor_prop")
    copied = fx.Graph()
    copied.output(copied.graph_copy(graph.graph, {}))
    made = fx.GraphModule(graph, copied)
    mode = fake.FakeTensorMode(allow_non_fake_inputs=True)
    with torch.no_grad():
        propagation.FakeTensorProp(made, mode).propagate(*given)
    numbers = {
        node: node.meta["val"]
        for node in made.graph.nodes
        if isinstance(node.meta.get("val"), bool | int | float)
    }

    def known(x: Any) -> Any:
        return numbers.get(x, x)

    for node in made.graph.nodes:
        node.args = fx.node.map_arg(node.args, known)
        node.kwargs = fx.node.map_arg(node.kwargs, known)
    for node in reversed(numbers):
        if node.op != "placeholder":
            made.graph.erase_node(node)
    return made


class _Program:
    """A graph as a compiled program, whose results are computed into new tensors.

    An argument that the graph returns is not a result of the program, nor is a view of
    an argument or of another result: PyTorch makes the view in each call. Instead of
    several views of one value, the program may return the value. A value that the graph
    returns twice is a single result. Arguments that the graph changes are the program's
    variables.
    """

    def __init__(self, graph: Graph, build: Builder, roles: Roles, strided: bool):
        given = _placeholders(graph)
        (output,) = graph.graph.find_nodes(op="output")
        own = {copy: given for given, copy in changed_inputs(graph).items()}
        returned = [own.get(x, x) for x in output.args[0]]
        distinct = dict.fromkeys(x for x in returned if _is_node(x))
        changed = {*own.values(), *(given[n] for n in roles.changed)}
        bases = {*distinct, *given} - changed
        shared: Sequence[Any] = ()
        if roles.saves_none and not strided:
            shared = _shared(distinct, bases)
        views = _views(distinct, {*bases, *shared})
        computed = [
            *(x for x in distinct if x not in given and x not in views),
            *shared,
        ]
        viewed = {view.base for view in views.values()}
        self.separate = {x.name for x in computed if x not in viewed}
        """The names of the results that share their memory with nothing else."""
        # Numbers and None, which the graph returns as they are.
        self._constants = [x for x in returned if not _is_node(x)]
        numbers = {node: n for n, node in enumerate((*given, *computed))}
        self._count = len(given)
        constants = count(len(numbers))
        numbers |= zip(views, count(len(numbers) + len(self._constants)))
        self._returned = [
            numbers[x] if _is_node(x) else next(constants) for x in returned
        ]
        self._views = [
            (numbers[node], numbers[view.base], view) for node, view in views.items()
        ]
        self._tensors = [n for n, node in enumerate(given) if _is_tensor(node)]
        with _taken_in_order(graph) as orders:
            with graph.graph.inserting_before(output):
                self._stored = [_Stored(node, strided) for node in computed]
            try:
                nodes = [result.node for result in self._stored]
                donated = [given[n] for n in roles.donated if given[n] not in viewed]
                program = import_graph(graph, nodes, donated)
            finally:
                for result in self._stored:
                    result.erase()
        self._orders = [(self._tensors.index(n), orders[n]) for n in orders]
        makers = [empty(*result.layout) for result in self._stored]
        self._have_gaps = any(result.has_gaps for result in self._stored)
        chosen = [k for k, n in enumerate(self._tensors) if n in roles.weights]
        released = [k for k, n in enumerate(self._tensors) if n in roles.released]
        if chosen and not build.freezing:
            simplify_without_values(context(), program)
        self._run = (
            Weighted(program, chosen, build, makers)
            if chosen and build.freezing
            else TensorProgram(build(program), makers, released)
        )
        kept = {*self._returned, *(base for _, base, _ in self._views)}
        self._kept = sorted(n for n in kept if n < len(given))

    def __call__(self, given: list[Any]) -> Sequence[Any]:
        values = {n: given[n] for n in self._kept}
        tensors = [given[n] for n in self._tensors]
        given.clear()
        for n, order in self._orders:
            tensors[n] = tensors[n].permute(order)
        results = self._run(tensors)
        if self._have_gaps:
            pairs = zip(self._stored, results, strict=True)
            results = [stored.finished(result) for stored, result in pairs]
        values |= enumerate([*results, *self._constants], self._count)
        for number, base, view in self._views:
            values[number] = view.of(values[base])
        return [values[n] for n in self._returned]


class _View(NamedTuple):
    """A result that is a view of an argument or of another result.

    steps: the functions from the base to the view, each of a tensor or, if PyTorch
        splits a tensor, of a list of tensors.
    """

    base: Any
    steps: Sequence[Callable[[Any], Any]]

    def of(self, tensor: Any) -> Any:
        for step in self.steps:
            tensor = step(tensor)
        return tensor


def _views(nodes: Iterable[Any], bases: Container[Any]) -> Mapping[Any, _View]:
    """The nodes that PyTorch computes from one of `bases` by views alone. PyTorch may
    compute with their strides and offsets in the memory of the base."""
    found: dict[Any, _View] = {}
    for node in nodes:
        steps: list[Callable[[Any], Any]] = []
        base = node
        while _is_view(base):
            steps.append(_step(base))
            base = base.args[0]
        if steps and base in bases:
            found[node] = _View(base, steps[::-1])
    return found


def _shared(nodes: Iterable[Any], bases: Container[Any]) -> Sequence[Any]:
    """The values of which several of `nodes` are views, without those that are views of
    `bases`, if the views of a value have as many elements as the value."""
    found: dict[Any, list[int]] = {}
    for node in nodes:
        base = node
        while _is_view(base) and (base is node or base not in bases):
            base = base.args[0]
        if base not in bases and _is_tensor(base):
            found.setdefault(base, []).append(node.meta["val"].numel())
    return [
        base
        for base, counts in found.items()
        if len(counts) > 1 and sum(counts) >= base.meta["val"].numel()
    ]


def _step(node: Any) -> Callable[[Any], Any]:
    function, (_, *arguments), options = node.target, node.args, node.kwargs
    return lambda base: function(base, *arguments, **options)


def _is_view(node: Any) -> bool:
    """Whether the result of `node` shares the memory of its first operand in any
    layout."""
    if node.target is getitem:
        return _is_view(node.args[0])
    torch: Any = import_module("torch")
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    if node.target is torch.ops.aten.as_strided.default:
        return False
    aliases = [argument.alias_info for argument in node.target._schema.arguments[:1]]
    return any(alias is not None and not alias.is_write for alias in aliases)


@contextmanager
def _taken_in_order(graph: Graph) -> Generator[Mapping[int, Sequence[int]]]:
    """A context in which `graph` takes its arguments with their dimensions in memory
    order. Yields the order of each argument, by number, whose dimensions are not in
    memory order. Arguments that the graph changes remain as they are."""
    permute = import_module("torch").ops.aten.permute.default
    given, changed = _placeholders(graph), changed_inputs(graph)
    first = next(node for node in graph.graph.nodes if node.op != "placeholder")
    orders: dict[int, Sequence[int]] = {}
    views: dict[Any, Any] = {}
    try:
        for n, node in enumerate(given):
            value = node.meta.get("val")
            if not _is_tensor(node) or value.is_contiguous() or node in changed:
                continue
            order = order_of(value)
            if list(order) == sorted(order):
                continue
            taken = value.permute(order)
            back = [order.index(dim) for dim in range(len(order))]
            with graph.graph.inserting_before(first):
                view = graph.graph.call_function(permute, (node, back))
            view.meta["val"], node.meta["val"] = value, taken
            node.replace_all_uses_with(view, partial(is_not, view))
            orders[n], views[node] = order, view
        yield orders
    finally:
        for node, view in views.items():
            node.meta["val"] = view.meta["val"]
            view.replace_all_uses_with(node)
            graph.graph.erase_node(view)


class _Stored:
    """A result of the graph in the layout that the program computes: dense, with the
    dimensions in memory order. The tensor that the caller gets is a view of it.

    layout: the sizes, strides and type of the tensor that the caller gets.
    node: the value that the program computes, after operations added to the graph.
    strided: whether gaps between rows of PyTorch's result are kept.
    """

    def __init__(self, node: Any, strided: bool):
        self._added: list[Any] = []
        self.node = node
        value: Any = node.meta["val"]
        self.layout = tuple(value.shape), tuple(value.stride()), value.dtype
        self._gaps: Sequence[int] | None = None
        if value.is_contiguous():
            return
        aten = import_module("torch").ops.aten
        broadcast = [
            d
            for d, (size, stride) in enumerate(
                zip(value.shape, value.stride(), strict=True)
            )
            if stride == 0 and size > 1
        ]
        for d in broadcast:
            self._add(aten.slice.Tensor, d, 0, 1)
        order = order_of(self.node.meta["val"])
        self._add(aten.permute.default, order)
        stored = self.node.meta["val"]
        if strided and not stored.is_contiguous():
            self._gaps = self.layout[1]
        dense = dict(zip(order, contiguous_strides(stored.shape), strict=True))
        strides = (0 if d in broadcast else dense[d] for d in range(len(order)))
        self.layout = self.layout[0], tuple(strides), value.dtype

    def _add(self, function: Any, *arguments: Any) -> None:
        node = self.node.graph.call_function(function, (self.node, *arguments))
        node.meta["val"] = function(self.node.meta["val"], *arguments)
        self._added.append(node)
        self.node = node

    def erase(self) -> None:
        """Removes the added operations from the graph."""
        for node in reversed(self._added):
            node.graph.erase_node(node)

    @property
    def has_gaps(self) -> bool:
        """Whether `finished` copies the tensor that the program has computed."""
        return self._gaps is not None

    def finished(self, tensor: Any) -> Any:
        """The result with PyTorch's gaps between rows: a copy of `tensor`, which the
        program has computed, or `tensor` itself if there are none."""
        if self._gaps is None:
            return tensor
        result = tensor.new_empty_strided(tensor.shape, self._gaps)
        own = [slice(0, 1) if stride == 0 else slice(None) for stride in self._gaps]
        result[own] = tensor[own]
        return result


def _is_node(returned: Any) -> bool:
    """Whether `returned` is a node, rather than a number or None."""
    return hasattr(returned, "meta")


def _is_tensor(node: Any) -> bool:
    return hasattr(node.meta.get("val"), "dtype")
