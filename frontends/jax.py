"""Lowers JAX functions to StableHLO bytecode, for `read`. Imports jax when called.

Values get the names of the Python variables to which they are assigned:

    hidden = jnp.tanh(x @ w)      # step.py:5
    %4 = stablehlo.tanh %3 {tgraph.name = "hidden"} ...    loc("step.py":5:10 to :24)

JAX does not record these names, but the location of an operation spans the expression
that it computes, and `linecache` has the source, including cells of notebooks.
"""

import ast
import linecache
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache, partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast
from warnings import catch_warnings, filterwarnings

from ..dialects.diagnostics import LocatedError
from ..dialects.tgraph.base import NAME
from ..dialects.tgraph.callbacks import Callbacks
from ..support.extras import missing_extra_message
from ..support.ranges import indices
from .parameters import Parameter
from .stablehlo.custom_calls import CALLBACK, CHECKPOINT_NAME


def import_jax() -> Any:
    """Imports JAX; raises `LocatedError` if it is not installed."""
    try:
        jax = import_module("jax")
    except ImportError as error:
        raise LocatedError(
            missing_extra_message("JAX is required", "jax", error)
        ) from None
    _hide_own_frames()
    return jax


@cache
def _hide_own_frames() -> None:
    """Excludes tensorplan's own frames from the locations of operations."""
    package = Path(__file__).parents[1]
    exclude: Any = import_module("jax.extend.source_info_util").register_exclusion
    for part in ("__init__.py", "frontends", "integrations"):
        exclude(str(package / part))


def numbers_of(argnums: object) -> frozenset[int]:
    """The argument numbers in `argnums`. Raises `TypeError` unless all are integers."""
    is_one = isinstance(argnums, str) or not isinstance(argnums, Iterable)
    numbers: list[object]
    numbers = [argnums] if is_one else [*cast("Iterable[object]", argnums)]
    for number in numbers:
        if not isinstance(number, int):
            raise TypeError(f"argument number is {number!r}, expected an integer")
    return frozenset(number for number in numbers if isinstance(number, int))


def leaves_of(
    args: Sequence[Any], argnums: int | Sequence[int]
) -> dict[int, Parameter]:
    """The leaves of the arguments `argnums`, by their numbers among all leaves.

    Names are those in a function of `*args`: `args[0]['weight']`.

    Raises `LocatedError` without jax, and `ValueError` for a number without an
    argument.
    """
    jax = import_jax()
    chosen = numbers_of(argnums)
    if wrong := sorted(n for n in chosen if not 0 <= n < len(args)):
        raise ValueError(
            f"there is no argument {wrong[0]}, expected {indices(len(args))}"
        )
    leaves = jax.tree_util.tree_leaves_with_path(tuple(args))
    return {
        number: Parameter(f"args{jax.tree_util.keystr(path)}", _value(leaf))
        for number, (path, leaf) in enumerate(leaves)
        if path[0].idx in chosen
    }


def _value(leaf: Any) -> object:
    """A parameter's value: None for a `ShapeDtypeStruct`, integers for a random key."""
    jax = import_jax()
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return None
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def is_key(leaf: Any) -> bool:
    """Whether `leaf` is a typed random key, as `jax.random.key` returns."""
    dtypes: Any = import_jax().dtypes
    return dtypes.issubdtype(getattr(leaf, "dtype", bool), dtypes.prng_key)


def _has_symbols(args: Sequence[Any]) -> bool:
    """Whether an array has a symbolic size."""
    return any(
        not isinstance(size, int)
        for leaf in import_jax().tree.leaves(args)
        for size in getattr(leaf, "shape", ())
    )


class NotClosed(LocatedError):
    """A function uses values of an enclosing trace that are not its arguments."""


def _check_is_closed(traced: Any, count: int) -> None:
    """Raises `NotClosed` if the trace reads anything besides its `count` arrays."""
    jaxpr = traced.jaxpr
    if len(jaxpr.in_avals) > count or any(map(_is_tracer, jaxpr.consts)):
        raise NotClosed(
            "the function reads a value that JAX traces outside of it: pass it as an "
            "argument"
        )
    # JAX has no public names for these effects.
    kinds = {type(effect).__name__ for effect in jaxpr.effects}
    if "NamedAxisEffect" in kinds:
        raise NotClosed("the function reads an axis of jax.vmap outside of it")
    if "ErrorEffect" in kinds:
        raise NotClosed(
            "the function contains checks: use checkify.checkify to turn them "
            "into errors"
        )


def _check_calls_nothing(traced: Any) -> None:
    """Raises `LocatedError` for callbacks, which `jax.export` does not support."""
    calls = r"\b(pure_callback|io_callback|debug_callback|debug_print)\["
    if found := re.search(calls, str(traced.jaxpr)):
        raise LocatedError(
            f"the function calls Python ({found[1]}), expected no callbacks with "
            "symbolic sizes: jax.export does not support them"
        )


def _is_tracer(value: object) -> bool:
    return isinstance(value, import_jax().core.Tracer)


def settings() -> Hashable:
    """The settings on which JAX's traces depend, such as whether it has 64 bits."""
    return _read_settings()()


@cache
def _read_settings() -> Callable[[], Hashable]:
    jax = import_jax()
    try:
        return import_module("jax._src.config").trace_context
    except (AttributeError, ImportError):  # another version of JAX
        return lambda: jax.config.jax_enable_x64


def current_trace() -> object:
    """A token of the current trace: calls within one trace return equal tokens."""
    return import_module("jax.extend.core").get_opaque_trace_state()


_is_lowering = ContextVar("_is_lowering", default=False)


def is_lowering() -> bool:
    """Whether a function is being traced for a program, which includes its callees."""
    return _is_lowering.get()


class Lowered(NamedTuple):
    """A function as MLIR bytecode, with the Python functions that it calls."""

    bytecode: bytes
    callbacks: Callbacks


def lower(
    fn: Callable[..., Any], *args: Any, donate_argnums: int | Sequence[int] = ()
) -> Lowered:
    """Lowers `fn` for arguments like `args` (arrays or `ShapeDtypeStruct`s).

    The arguments numbered in `donate_argnums` are donated: they become variables that
    results overwrite, or memory for other buffers. Unused arguments are kept, so the
    arguments of the program are all leaves of `args`. Symbolic sizes require
    `jax.export`. A function that is already jitted keeps its options. The bytecode
    contains locations in the Python source, for messages. Without symbolic sizes, it
    also contains the names of variables and those given to `checkpoint_name`.

    Raises `LocatedError` without jax.
    """
    jax = import_jax()
    jitted: Any = (
        fn
        if hasattr(fn, "lower")
        else jax.jit(fn, donate_argnums=donate_argnums, keep_unused=True)
    )
    around = _is_lowering.set(True)
    try:
        if _has_symbols(args):
            try:
                exported = import_module("jax.export").export(jitted)(*args)
                return Lowered(exported.mlir_module_serialized, ())
            except (NotImplementedError, RuntimeError):
                _check_calls_nothing(jitted.trace(*args))
                raise
        with catch_warnings():
            filterwarnings("ignore", "Some donated buffers were not usable")
            lowered = _lowered(jitted, args)
    finally:
        _is_lowering.reset(around)
    module = lowered.compiler_ir("stablehlo")
    _name_values(module)
    _mark_donors(module, [leaf.donated for leaf in jax.tree.leaves(lowered.args_info)])
    bytecode = BytesIO()
    module.operation.write_bytecode(bytecode)
    return Lowered(bytecode.getvalue(), _callbacks(lowered, module))


def _callbacks(lowered: Any, module: Any) -> Callbacks:
    """The functions that `jax.debug.print`, `jax.pure_callback` and the like call.

    JAX has no public name for them. A function that JAX orders by a token takes and
    returns one.
    """
    functions = list(lowered._lowering.compile_args["host_callbacks"])
    if functions:
        for number in _ordered(module):
            functions[number] = _without_token(functions[number])
    return functions


def _ordered(module: Any) -> set[int]:
    """The numbers of the callbacks that take a token."""
    ir, found = import_module("jaxlib.mlir.ir"), set[int]()

    def visit(op: Any) -> Any:
        if op.name == "stablehlo.custom_call" and re.fullmatch(
            CALLBACK, ir.StringAttr(op.attributes["call_target_name"]).value
        ):
            config = op.attributes["mhlo.backend_config"]
            if any(str(value.type) == "!stablehlo.token" for value in op.operands):
                found.add(ir.IntegerAttr(config["index"]).value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _without_token(
    function: Callable[..., Sequence[object]],
) -> Callable[..., Sequence[object]]:
    return lambda *arrays: function(None, *arrays)[1:]


def _lowered(jitted: Any, args: Sequence[object]) -> Any:
    """Lowers a function, with the names of `checkpoint_name` if JAX supports that."""
    traced = jitted.trace(*args)
    _check_is_closed(traced, len(import_jax().tree.leaves(args)))
    try:
        parameters = {"_private_parameters": _keeping_names()}
        return traced.lower(**parameters)
    except (AttributeError, ImportError, TypeError):  # another version of JAX
        return traced.lower()


@cache
def _keeping_names() -> Any:
    """Lowering rules that turn `jax.ad_checkpoint.checkpoint_name` into a custom call,
    because JAX drops the names.

    JAX has no public way to override the lowering of one primitive for one program.
    """
    mlir, ir = import_module("jax.interpreters.mlir"), import_module("jaxlib.mlir.ir")
    named = partial(import_module("jax.ad_checkpoint").checkpoint_name, name="")
    (eqn,) = import_jax().make_jaxpr(named)(0.0).eqns

    def lowering(_: Any, value: Any, *, name: str) -> Any:
        attributes = {"call_target_name": CHECKPOINT_NAME, "backend_config": name}
        call = ir.Operation.create(
            "stablehlo.custom_call",
            results=[value.type],
            operands=[value],
            attributes={k: ir.StringAttr.get(v) for k, v in attributes.items()},
        )
        return call.results

    rules = ((eqn.primitive, lowering),)
    return mlir.LoweringParameters(override_lowering_rules=rules)


def _mark_donors(module: Any, are_donated: Sequence[bool]) -> None:
    """Marks all donated arguments: JAX marks only those for which it finds a result."""
    ir = import_module("jaxlib.mlir.ir")
    main = ir.SymbolTable(module.operation)["main"]
    with module.context:
        attributes: list[dict[str, Any]] = [
            {named.name: named.attr for named in given} for given in main.arg_attrs
        ]
        arrays = [given for given in attributes if "jax.token" not in given]
        if len(arrays) != len(are_donated):  # JAX dropped unused arguments
            return
        for given, is_donated in zip(arrays, are_donated, strict=True):
            if is_donated and "tf.aliasing_output" not in given:
                given["jax.buffer_donor"] = ir.BoolAttr.get(True)
        main.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attributes])


_Span: TypeAlias = tuple[int, int, int, int]
"""The span of an expression: first line and column, last line and column."""


def _name_values(module: Any) -> None:
    """Names the values that are assigned to a variable after the variable.

    Of the operations of one expression, those used by other expressions get the name.
    Operations of gradients, which have the locations of the primal expressions, get
    none.
    """
    ir = import_module("jaxlib.mlir.ir")
    with module.context:
        for symbol in module.body.operations:  # a function, or a mesh without a body
            blocks = [block for region in symbol.regions for block in region]
            for op in (op.operation for block in blocks for op in block):
                at = _place(op.location, ir)
                name = at and _assignments(at[0]).get(at[1])
                users = (use.owner for r in op.results for use in r.uses)
                places = (_place(user.location, ir) for user in users)
                if name and any(place not in (at, None) for place in places):
                    op.attributes[NAME] = ir.StringAttr.get(name)


def _place(location: Any, ir: Any) -> tuple[str, _Span] | None:
    """The file and span of an operation's expression; None for gradients."""
    if isinstance(location, ir.FileLineColLoc):
        at = location
        return at.filename, (at.start_line, at.start_col, at.end_line, at.end_col)
    if isinstance(location, ir.CallSiteLoc):
        return _place(location.callee, ir)
    if isinstance(location, ir.NameLoc) and "transpose(" not in location.name_str:
        return _place(location.child_loc, ir)
    return None


@cache
def _assignments(file: str) -> Mapping[_Span, str]:
    """Maps the span of each expression that is assigned to one variable to its name."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return dict(_assigned(tree))


def _assigned(tree: ast.AST) -> Iterator[tuple[_Span, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
            target, value = node.target, node.value
        else:
            continue
        start, end = (value.lineno, value.col_offset), value.end_lineno
        if isinstance(target, ast.Name) and end and value.end_col_offset:
            yield (*start, end, value.end_col_offset), target.id
