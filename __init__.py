"""tensorplan: from tensor programs to one arena per device, at offsets fixed early.

model = tensorplan.from_jax(step, params, batch, donate_argnums=0)
planned = tensorplan.plan(model)        # its module has explicit offsets
tensorplan.report(planned)["pools"]     # bytes, lower bound, bytes without reuse
step = tensorplan.compile(planned)      # NumPy arrays in and out
loss = step(*arrays)[-1]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from .choices import one_of
from .model import Model
from .passes.options import PlanOptions
from .version import VERSION

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from .passes.plan.pipeline import PlanPipeline
    from .reporting.explanation import Explanation
    from .reporting.frontier import FrontierPoint
    from .reporting.report import Report
    from .runtime.callable import CallableProgram
    from .runtime.dynamic import DynamicExecutable
    from .runtime.executor import Executable

__version__ = VERSION

__all__ = [
    "Model",
    "compile",
    "context",
    "explain",
    "from_jax",
    "from_onnx",
    "from_stablehlo",
    "from_torch",
    "frontier",
    "load",
    "plan",
    "read",
    "report",
    "save",
]


def context() -> Context:
    """An xDSL context that knows xDSL's dialects and ours, and lets others pass."""
    from . import dialects

    return dialects.context()


def read(source: str | bytes | os.PathLike[str]) -> ModuleOp:
    """A program as it is: text or bytes, or the file at a `Path`.

    MLIR text of any registered or unregistered dialect, MLIR bytecode, a `jax.export`
    artifact, or an ONNX model, without its parameters' values. Text in pretty form of
    StableHLO and bytecode need the extra `jax`. A file may be damaged: bytecode from
    one is read by another process first, in 0.2 s.

    Raises xDSL's `ParseError`, or `LocatedError`; `OSError` for a file that cannot be
    read, `ValueError` for a name that is no `Path`.
    """
    from . import frontends

    _expect_contents(source, str | bytes | os.PathLike)
    if isinstance(source, os.PathLike):
        data, name = Path(source).read_bytes(), os.fspath(source)
    else:
        is_text = isinstance(source, str)
        data = source.encode(errors="surrogatepass") if is_text else source
        name = "program"
    return frontends.read(data, name, context(), trusted=isinstance(source, bytes))


def _expect_contents(source: object, kinds: Any) -> None:
    if isinstance(source, str) and "\0" not in source and os.path.exists(source):
        raise ValueError(f"{source!r} is a file's name, expected Path({source!r})")
    if not isinstance(source, kinds):
        texts = "text, " if issubclass(str, kinds) else ""
        found = type(source).__name__
        raise TypeError(f"source is a {found}, expected {texts}bytes or a Path")


def from_stablehlo(
    source: str | bytes | os.PathLike[str],
    *,
    parameters: Mapping[int, Any] | None = None,
    simplify: bool = True,
) -> Model:
    """A `tgraph` program from StableHLO: text, MLIR bytecode, `jax.export`, or the file
    at a `Path`; see `read`.

    A donated argument becomes a variable that holds a result of its type, or, if there
    is none, memory for other buffers. `parameters` are the arrays for arguments
    that are the same in every run, by number; see `from_jax`, also for `simplify`.
    Sizes `?` must follow from others, or be those of arguments that the program
    computes with, as `jax.export` writes them.

    Raises what `read` does, and `LocatedError` that lists all operations that are not
    supported, or types that stay unknown; `ValueError` or `TypeError` for parameters
    that do not fit.
    """
    from .frontends.parameters import Parameter, with_parameters

    given = {n: Parameter(f"args[{n}]", a) for n, a in (parameters or {}).items()}
    return _simplified(with_parameters(_from_stablehlo(source), given), simplify)


def _from_stablehlo(source: str | bytes | os.PathLike[str]) -> ModuleOp:
    from .passes import driver
    from .passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
    from .passes.tgraph.infer_shapes import TGraphInferShapes

    module = read(source)
    passes = [ConvertStablehloToTGraph(), TGraphInferShapes(require_static=True)]
    driver.run(context(), module, passes)
    return module


def from_jax(
    fn: Callable[..., Any],
    *args: Any,
    donate_argnums: int | Sequence[int] = (),
    parameter_argnums: int | Sequence[int] = (),
    simplify: bool = True,
) -> Model:
    """A `tgraph` program from a JAX function, traced for arguments like `args`.

    Sizes may be symbolic (`jax.export.symbolic_shape`). The arguments that
    `donate_argnums` names become variables, as under `jax.jit`, or, where no result has
    their type, memory for other buffers: arrays given for them are overwritten.
    Those in `parameter_argnums` are the same in every run, like weights in inference:
    compiled programs take their arrays from here, not from calls, and bring them to the
    fastest layout, once. One that is a `ShapeDtypeStruct` is given in calls, or by
    `bind` (see `Executable`).

    With `simplify`, batch norms become a scale and a shift, scales go into weights, and
    what depends on parameters alone is computed here: parameters are those that are
    left, and `precomputed.0`, .... That reorders floating-point operations: values
    differ by rounding. Parameters without values are left as they are.

    Raises `ValueError` for numbers that are in both, or that no argument has;
    `LocatedError` as `from_stablehlo` does, or if jax is missing; and what `fn` and
    JAX raise.
    """
    from .frontends.jax import leaves_of, lower
    from .frontends.parameters import with_parameters

    parameters = leaves_of(args, parameter_argnums)
    if both := parameters.keys() & leaves_of(args, donate_argnums).keys():
        raise ValueError(
            f"array {min(both)} is in donate_argnums and in parameter_argnums, "
            "expected one"
        )
    module = _from_stablehlo(lower(fn, *args, donate_argnums=donate_argnums))
    return _simplified(with_parameters(module, parameters), simplify)


def _simplified(model: Model, simplify: bool) -> Model:
    if not simplify:
        return model
    from .passes.inference import simplified

    return simplified(context(), model)


def from_onnx(
    source: bytes | os.PathLike[str],
    *,
    sizes: Mapping[str, int] | None = None,
    simplify: bool = True,
) -> Model:
    """A `tgraph` program from an ONNX model (opset 13 to 23), and its parameters.

    The module's arguments are the model's inputs, then its parameters. `sizes` are
    those of the dimensions that the model leaves open; `simplify` as for `from_jax`.
    Takes the extra `onnx`.

    Raises `LocatedError` that lists all operations that are not supported, `OSError`
    for a file that cannot be read, `ValueError` for a name that is no `Path`.
    """
    from .frontends.onnx import import_model

    _expect_contents(source, bytes | os.PathLike)
    _expect_sizes(sizes)
    is_file = isinstance(source, os.PathLike)
    data, name = (
        (Path(source).read_bytes(), os.fspath(source)) if is_file else (source, "onnx")
    )
    return _simplified(import_model(data, name, sizes), simplify)


def _expect_sizes(sizes: Any) -> None:
    if not isinstance(sizes, Mapping | None):
        raise TypeError(f"sizes are {sizes!r}, expected a mapping of names to integers")
    for name, size in cast("Mapping[Any, Any]", sizes or {}).items():
        if not isinstance(size, int):
            raise TypeError(f"size {name!r} is {size!r}, expected an integer")


def from_torch(
    source: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: Any = None,
    gradients: bool = False,
    learning_rate: float | None = None,
    simplify: bool = True,
) -> Model:
    """A `tgraph` program from a PyTorch module, and its parameters.

    `source` is exported for `args`, or is a `torch.export.ExportedProgram`. The
    program's arguments are the inputs, then parameters and buffers, as views of the
    module's own memory. Buffers that a run changes are variables, whose new contents
    come after the other results. `dynamic` is `torch.export`'s `dynamic_shapes`;
    `simplify` as for `from_jax`, but not for training. Takes the extra `torch`.

    For training, of a module whose first result is the loss: with `gradients`, the
    gradients by the parameters are further results; with `learning_rate`, parameters
    are variables, and a run is a step of stochastic gradient descent.

    Raises `LocatedError` that lists all operations that are not supported, and what
    `torch.export.export` raises.
    """
    from .frontends.torch import import_program

    model = import_program(
        source,
        args,
        kwargs,
        dynamic=dynamic,
        gradients=gradients,
        learning_rate=learning_rate,
    )
    return _simplified(model, simplify)


P = ParamSpec("P")
Given = TypeVar("Given", bound=PlanOptions)
Program = TypeVar("Program", bound="ModuleOp | Model")
Result = TypeVar("Result")


def _takes(
    kind: Callable[P, Given],
) -> Callable[
    [Callable[[Program, Given], Result]], Callable[Concatenate[Program, P], Result]
]:
    """Makes a function of a program and options one of a program and keywords.

    These are the fields of `kind`, a class of options. So people and type checkers see
    each name, type and default as it is there.
    """

    def decorate(
        function: Callable[[Program, Given], Result],
    ) -> Callable[Concatenate[Program, P], Result]:
        @wraps(function)
        def taking(program: Program, *args: P.args, **options: P.kwargs) -> Result:
            _module_of(program)
            _expect_options(options, cast("type[Given]", kind))
            return function(program, kind(*args, **options))

        own = signature(function)
        keywords = signature(kind).parameters.values()
        shown = own.replace(parameters=[own.parameters["program"], *keywords])
        setattr(taking, "__signature__", shown)  # noqa: B010
        return taking

    return decorate


def _expect_options(options: Mapping[str, Any], kind: type[PlanOptions]) -> None:
    known = get_type_hints(kind)
    for name, value in options.items():
        if name not in known:
            raise TypeError(f"option is {one_of(name, known)}")
        if not _fits(value, known[name]):
            raise TypeError(f"{name} is {value!r}, expected {_name_of(known[name])}")


def _fits(value: Any, hint: Any) -> bool:
    """Whether an option has a type that it may have; a sequence stands for a tuple."""
    if get_origin(hint) is tuple:
        return isinstance(value, Sequence) and not isinstance(value, str)
    kinds = get_args(hint) or (hint,)
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _name_of(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)


@_takes(PlanOptions)
def plan(program: Program, options: PlanOptions) -> Program:
    """The program with all buffers in arenas, one per device: of a `Model` a `Model`,
    of a module a module. `program` stays as it is.

    The options are those of the pass `plan-pipeline`: `strategy`, `alignment` (bytes),
    `device`; `bounds` or `hints` for symbolic sizes; `workspaces="native"` to plan what
    this machine's kernels take while they run, too. The plan is checked.

    Raises `TypeError` for an option that there is not or a value of another type,
    `ValueError` for another bad value, `LocatedError` for IR that can't be planned.
    """
    if isinstance(program, Model):
        return replace(program, module=_planned(program.module, options))
    return _planned(program, options)


def _planned(module: ModuleOp, options: PlanOptions) -> ModuleOp:
    from .passes import driver

    planned = module.clone()
    driver.run(context(), planned, [_pipeline(options)])
    return planned


def _pipeline(options: PlanOptions) -> PlanPipeline:
    from .passes.plan.pipeline import PlanPipeline

    return PlanPipeline(**options.shared(PlanPipeline))


def _module_of(program: object) -> ModuleOp:
    from xdsl.dialects.builtin import ModuleOp

    module = program.module if isinstance(program, Model) else program
    if not isinstance(module, ModuleOp):
        found = f"program is a {type(module).__name__}, expected a ModuleOp or a Model"
        raise TypeError(f"{found} (tensorplan.read gives a ModuleOp)")
    return module


def report(program: ModuleOp | Model) -> Report:
    """The figures of a planned program: its pools' sizes in bytes, its operations.

    Raises `LocatedError` for IR that is not valid.
    """
    from .passes import driver
    from .reporting.report import report

    module = _module_of(program)
    driver.check(module)
    return report(module)


@dataclass(frozen=True, kw_only=True)
class _ExplainOptions(PlanOptions):
    limit: float = 60.0


@_takes(_ExplainOptions)
def explain(program: ModuleOp | Model, options: _ExplainOptions) -> Explanation:
    """Why the planned program's arenas are as large as they are, and what would help.

    Prints as text: what is live at each peak, what made it and waits for it, why it is
    not in place of something else; then other ways of planning, each tried on a copy.
    `program` stays as it is. `options` as for `plan`; after `limit` seconds of CPU time
    nothing more is tried.

    Raises what `plan` does.
    """
    from .reporting.explanation import explain

    module = _module_of(program)
    return explain(context(), module, _pipeline(options), limit=options.limit)


@dataclass(frozen=True, kw_only=True)
class _FrontierOptions(PlanOptions):
    points: int = 20


@_takes(_FrontierOptions)
def frontier(
    program: ModuleOp | Model, options: _FrontierOptions
) -> Sequence[FrontierPoint]:
    """Plans of the program with ever fewer bytes, which take ever more time: those than
    which none that is found takes less time and no more bytes.

    Each has its `bytes` (of the largest arena, as it is planned), its `time`
    (nanoseconds of a run, estimated from types), the `change` that lowers the peak, and
    the `budget` with which `plan`, given the same other options, makes this plan.
    `program` stays as it is. There are `points` at most, fewer where no more are found.

    Raises what `plan` does, `ValueError` for a budget or fewer than two points, and
    `LocatedError` for a program that is not on tensors, or whose sizes are not known.
    """
    from .reporting.frontier import frontier

    module = _module_of(program)
    return frontier(context(), module, _pipeline(options), options.points)


@dataclass(frozen=True, kw_only=True)
class _RunOptions(PlanOptions):
    workspaces: str = "native"


@_takes(_RunOptions)
def compile(
    program: ModuleOp | Model, options: _RunOptions
) -> Executable | DynamicExecutable:
    """A callable that runs the program's `@main`; it is planned first if need be, with
    the workspaces of the kernels that run it.

    Takes NumPy arrays (or what DLPack or `__array_interface__` can make one) and
    returns the results as a list, in the order of the program's signature. The
    parameters of a `Model` are given already (`bind`): calls take the other arguments.
    A variable that is passed as a NumPy array is updated in place. Symbolic sizes are
    those of the arrays of each call. Options as for `plan`; a planned program stays as
    it is. `threads` are those that a call uses, as for `Executable`: by default one for
    each processor that the process may run on.

    Raises what `plan` does, and `LocatedError` for devices that are no processors
    (`cpu:0`, `cpu:1`, ...): these can be planned for, not run. Raises one that is a
    `MemoryError`, too, for more memory than there is.
    """
    from .analysis.allocations import is_planned
    from .checking.plan_check import check_plan
    from .passes import driver
    from .passes.specialize.sizes import specialized
    from .runtime.dynamic import DynamicExecutable, is_dynamic
    from .runtime.executor import Executable
    from .runtime.runnable import RUNNABLE, is_runnable

    if not is_runnable(options.device):
        raise ValueError(f"device is {options.device!r}, expected {RUNNABLE} to run")
    module = _module_of(program)
    if replace(options, threads=None) == _RunOptions() and is_planned(module):
        driver.check(module)
        check_plan(module)
        planned = module.clone()
    else:
        planned = _planned(module, options)
    run = (
        DynamicExecutable(planned, specialized, threads=options.threads)
        if is_dynamic(planned)
        else Executable(planned, threads=options.threads)
    )
    if isinstance(program, Model):
        run.bind(program.inputs())
    return run


def save(
    executable: Executable | DynamicExecutable, path: str | os.PathLike[str]
) -> None:
    """Writes a compiled program to a file, which `load` runs without its IR: planned,
    with its machine code and its parameters. See `Executable.save`.

    Raises `TypeError` for a program with symbolic sizes, else what that does.
    """
    from .runtime.executor import Executable

    if not isinstance(executable, Executable):
        found = type(executable).__name__
        raise TypeError(f"a {found} can't be saved, expected an Executable")
    executable.save(Path(path))


def load(path: str | os.PathLike[str]) -> CallableProgram:
    """A program that `save` has written: called as it was, in a fraction of a second,
    and without xDSL. The file is for the same version of tensorplan and of oneDNN, and
    for processors with the same instructions.

    A file is trusted as a shared library is: what it has is run. Raises `OSError` where
    it cannot be read, and `ValueError` if it is damaged, or not for here.
    """
    from .runtime.saved.reading import load

    return load(Path(path))
