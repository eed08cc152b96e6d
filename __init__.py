"""tensorplan places the buffers of a tensor program in one memory arena per device.

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
    overload,
)

from .model import Model
from .passes.options import PlanOptions
from .support.choices import one_of
from .version import VERSION

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from .integrations.jax import Jitted
    from .passes.plan.pipeline import PlanPipeline
    from .reporting.checkpoints import CheckpointPolicy
    from .reporting.explanation import Explanation
    from .reporting.frontier import FrontierPoint
    from .reporting.report import Report
    from .reporting.torch_checkpoints import TorchCheckpointPolicy
    from .runtime.callable import CallableProgram
    from .runtime.dynamic import DynamicExecutable
    from .runtime.executor import Executable
    from .tools.views.notebook import View

__version__ = VERSION

__all__ = [
    "Model",
    "checkpoint_policy",
    "compile",
    "context",
    "explain",
    "from_jax",
    "from_onnx",
    "from_stablehlo",
    "from_tflite",
    "from_torch",
    "frontier",
    "jit",
    "load",
    "plan",
    "read",
    "report",
    "save",
    "view",
]


def context() -> Context:
    """Returns an xDSL context with the dialects of xDSL and tensorplan, which allows
    unregistered dialects.
    """
    from . import dialects

    return dialects.context()


def read(source: str | bytes | os.PathLike[str]) -> ModuleOp:
    """Reads a program without converting it, from text, bytes, or the file at a `Path`.

    The source is MLIR text of any dialect, registered or not, MLIR bytecode, a
    `jax.export` artifact, or an ONNX or LiteRT model, without the values of its
    parameters.
    StableHLO in custom syntax and bytecode require the extra `jax`. Because a file may
    be damaged, another process reads its bytecode first, which takes 0.2 s.

    Raises xDSL's `ParseError`, `LocatedError`, `OSError` for a file that cannot be
    read, and `ValueError` for a file name that is not a `Path`.
    """
    from .frontends import reading

    _expect_contents(source)
    if isinstance(source, os.PathLike):
        data, name = Path(source).read_bytes(), os.fspath(source)
    else:
        is_text = isinstance(source, str)
        data = source.encode(errors="surrogatepass") if is_text else source
        name = "program"
    return reading.read(data, name, context(), trusted=isinstance(source, bytes))


def _expect_contents(source: object) -> None:
    if isinstance(source, str) and "\0" not in source and os.path.exists(source):
        raise ValueError(f"{source!r} is a file name, expected Path({source!r})")
    if not isinstance(source, str | bytes | os.PathLike):
        found = type(source).__name__
        raise TypeError(f"source has type {found}, expected text, bytes or a Path")


def from_stablehlo(
    source: str | bytes | os.PathLike[str],
    *,
    parameters: Mapping[int, Any] | None = None,
    simplify: bool = True,
) -> Model:
    """Reads StableHLO as text, MLIR bytecode, or a `jax.export` artifact, or from the
    file at a `Path` (see `read`), and returns it as a `tgraph` program.

    A donated argument becomes a variable that holds a result of its type. Without such
    a result, its memory is used for other buffers. `parameters` are the arrays of the
    arguments that are the same in every run, by index; see `from_jax`, also for
    `simplify`. Unknown sizes `?` must follow from other sizes, or belong to arguments
    that the program computes with, as `jax.export` writes them.

    Raises what `read` raises; `LocatedError` that lists all unsupported operations, or
    types that remain unknown; `ValueError` or `TypeError` for parameters that do not
    match.
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
    """Traces a JAX function for arguments like `args`, and returns it as a `tgraph`
    program.

    Sizes may be symbolic (`jax.export.symbolic_shape`). The arguments in
    `donate_argnums` become variables, as under `jax.jit`. If no result has the type of
    such an argument, its memory is used for other buffers. Calls overwrite the arrays
    of donated arguments. The arguments in `parameter_argnums` are the same in every
    run, like weights in inference. Compiled programs take their arrays from `args`
    instead of from calls, and convert them once to the fastest layout. A parameter that
    is a `ShapeDtypeStruct` is passed in calls or to `bind` (see `Executable`). The
    functions of `jax.debug.print`, `jax.pure_callback` and the like are in `callbacks`
    of the result.

    `simplify` folds batch norms into a scale and a shift, folds scales into weights,
    and computes everything that depends on parameters alone. The parameters that
    remain, and `precomputed.0`, ..., are the parameters of the result. This reorders
    floating-point operations, so results differ by rounding. Parameters without values
    are left unchanged.

    Raises `ValueError` for indices in both arguments, or out of range; `LocatedError`
    like `from_stablehlo`, or if JAX is missing; and what `fn` and JAX raise.
    """
    from .frontends.jax import leaves_of, lower
    from .frontends.parameters import with_parameters

    parameters = leaves_of(args, parameter_argnums)
    if both := parameters.keys() & leaves_of(args, donate_argnums).keys():
        raise ValueError(
            f"array {min(both)} is in donate_argnums and in parameter_argnums, "
            "expected one"
        )
    bytecode, callbacks = lower(fn, *args, donate_argnums=donate_argnums)
    model = with_parameters(_from_stablehlo(bytecode), parameters)
    return _simplified(replace(model, callbacks=callbacks), simplify)


def _simplified(model: Model, simplify: bool) -> Model:
    if not simplify:
        return model
    from .passes.inference import simplified

    return simplified(context(), model)


def from_onnx(
    source: bytes | str | os.PathLike[str],
    *,
    sizes: Mapping[str, int] | None = None,
    values: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    simplify: bool = True,
) -> Model:
    """Reads an ONNX model (opset 6 to 28) from bytes or the file of a name, and returns
    it as a `tgraph` program with its parameters.

    The module's arguments are the model's inputs, followed by its parameters. `sizes`
    are the sizes of the model's dynamic dimensions, and the lengths of inputs that are
    sequences. `values` are arrays for inputs that become constants, such as one that
    shapes depend on. `outputs` are the names of values that the program returns instead
    of the model's outputs: those before an operation that is not supported, for
    example. The program takes what these need. `simplify` is as in `from_jax`. Requires
    the extra `onnx`.

    Raises `LocatedError` that lists all unsupported operations, and `OSError` for a
    file that cannot be read.
    """
    from .frontends.onnx import import_model

    _expect_sizes(sizes)
    if outputs is not None and (isinstance(outputs, str) or not outputs):
        raise TypeError(f"outputs are {outputs!r}, expected names of values in a list")
    data, name = _contents(source, "onnx")
    return _simplified(import_model(data, name, sizes, values, outputs), simplify)


def _contents(source: object, name: str) -> tuple[bytes, str]:
    """Returns the contents of `source`, and the name to report: the file's, or `name`
    for bytes. Such models have no text form, so a `str` is a file name."""
    if isinstance(source, bytes):
        return source, name
    if not isinstance(source, str | os.PathLike):
        found = type(source).__name__
        raise TypeError(f"source has type {found}, expected bytes or a file name")
    path = Path(cast("str | os.PathLike[str]", source))
    return path.read_bytes(), str(path)


def _expect_sizes(sizes: Any) -> None:
    if not isinstance(sizes, Mapping | None):
        raise TypeError(f"sizes are {sizes!r}, expected a mapping of names to integers")
    for name, size in cast("Mapping[Any, Any]", sizes or {}).items():
        if not isinstance(size, int):
            raise TypeError(f"size {name!r} is {size!r}, expected an integer")


def from_tflite(
    source: bytes | str | os.PathLike[str], *, simplify: bool = True
) -> Model:
    """Reads a LiteRT (TensorFlow Lite) model, of floats or quantized, from bytes or the
    file of a name, and returns it as a `tgraph` program with its parameters.

    The module's arguments are the model's inputs, followed by its parameters. 8-bit
    numbers are those that LiteRT's reference kernels compute. `simplify` is as in
    `from_jax`. Requires the extra `tflite`.

    Raises `LocatedError` that lists all unsupported operations, and `OSError` for a
    file that cannot be read.
    """
    from .frontends.tflite import import_model

    data, name = _contents(source, "tflite")
    return _simplified(import_model(data, name), simplify)


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
    """Exports a PyTorch module, and returns it as a `tgraph` program with its
    parameters.

    `source` is a module, exported for `args`, or a `torch.export.ExportedProgram`. The
    program's arguments are the inputs, followed by parameters and buffers, which are
    views of the module's own memory. Buffers that a run changes are variables; their
    new contents follow the other results. `dynamic` is the `dynamic_shapes` of
    `torch.export`. `simplify` is as in `from_jax`, but not for training. Requires the
    extra `torch`.

    For training, the module's first result must be the loss. With `gradients`, the
    gradients with respect to the parameters are further results. With `learning_rate`,
    parameters are variables, and a run is one step of stochastic gradient descent.

    Raises `LocatedError` that lists all unsupported operations, and what
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
    """Lets callers pass the options of a decorated function as keywords.

    The function takes a program and an instance of `kind`, a class of options. Its
    fields become keywords, with their names, types and defaults, which help and type
    checkers show.
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
    """Whether an option's value has the type `hint`; any sequence fits a tuple."""
    if get_origin(hint) is tuple:
        return isinstance(value, Sequence) and not isinstance(value, str)
    kinds = get_args(hint) or (hint,)
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _name_of(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)


@_takes(PlanOptions)
def plan(program: Program, options: PlanOptions) -> Program:
    """Places all buffers of a program in arenas, one per device. Returns a `Model` for
    a `Model`, and a module for a module. `program` stays unchanged.

    The options are those of the pass `plan-pipeline`, such as `strategy`, `alignment`
    (in bytes), `device`, and `bounds` or `hints` for symbolic sizes.
    `workspaces="native"` also plans the scratch memory of this machine's kernels. The
    plan is checked.

    Raises `TypeError` for an unknown option or a value of the wrong type, `ValueError`
    for any other invalid value, and `LocatedError` for IR that cannot be planned, and a
    file of target memories that cannot be read.
    """
    if isinstance(program, Model):
        return replace(program, module=_planned(program.module, options))
    return _planned(program, options)


def _planned(module: ModuleOp, options: PlanOptions) -> ModuleOp:
    from .dialects.garbage import seldom_collected
    from .passes import driver

    with seldom_collected():
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
        found = f"program has type {type(module).__name__}, expected ModuleOp or Model"
        raise TypeError(f"{found} (tensorplan.read gives a ModuleOp)")
    return module


def report(program: ModuleOp | Model) -> Report:
    """Statistics of a planned program: the sizes of its pools in bytes, and its
    operations.

    Raises `LocatedError` for invalid IR.
    """
    from .passes import driver
    from .reporting.report import report

    module = _module_of(program)
    driver.check(module)
    return report(module)


@_takes(PlanOptions)
def view(program: ModuleOp | Model, options: PlanOptions) -> View:
    """A picture of the program's plan for notebooks: which bytes are used, and when.

    `view(program).save("plan.html")` writes a page, and `.svg` and `.png` drawings. A
    program that is not planned yet is planned as by `plan`.

    Raises what `plan` raises.
    """
    from .checking.plan_check import check_plan
    from .tools.views.notebook import View
    from .tools.views.programs import view_of

    module = _module_of(program)
    if not check_plan(module):
        module = _planned(module, options)
    name = module.sym_name
    return View(view_of(module, name.data if name else "program"))


@dataclass(frozen=True, kw_only=True)
class _ExplainOptions(PlanOptions):
    limit: float = 60.0


@_takes(_ExplainOptions)
def explain(program: ModuleOp | Model, options: _ExplainOptions) -> Explanation:
    """Explains why the arenas of the planned program are as large as they are, and what
    would lower the peak.

    The result prints as text: the buffers live at each peak, the operations that write
    and read them, and why each is not in place; then other ways of planning, each tried
    on a copy. `program` stays unchanged. The options are those of `plan`. After `limit`
    seconds of CPU time, nothing more is tried.

    Raises what `plan` raises.
    """
    from .reporting.explanation import explain

    module = _module_of(program)
    return explain(context(), module, _pipeline(options), limit=options.limit)


def checkpoint_policy(
    program: ModuleOp | Model,
) -> CheckpointPolicy | TorchCheckpointPolicy:
    """The recomputation of a planned gradient as code for JAX or PyTorch.

    The result prints as Python code. Its `kept` lists the values that the plan keeps
    from the forward pass for the gradient, with source locations, types and bytes; the
    plan recomputes all others.

    For a program from JAX, the code is a policy for `jax.checkpoint`, with the `names`
    of these values. Values that the program names by
    `jax.ad_checkpoint.checkpoint_name` keep their names. You insert the other names at
    the given locations. For a program from PyTorch, the code checkpoints modules
    (`regions`) by `torch.utils.checkpoint` and saves the results of some operations
    (`saved`) there.

    Raises `LocatedError` for a program that is not planned, is not sound, or has no
    gradient by JAX or `from_torch`.
    """
    from .passes import driver
    from .reporting.checkpoints import checkpoint_policy

    module = _module_of(program)
    driver.check(module)
    return checkpoint_policy(module)


@dataclass(frozen=True, kw_only=True)
class _FrontierOptions(PlanOptions):
    points: int = 20
    measure: bool = False


@_takes(_FrontierOptions)
def frontier(
    program: ModuleOp | Model, options: _FrontierOptions
) -> Sequence[FrontierPoint]:
    """Plans that trade time for memory: the Pareto frontier of the plans that the
    search finds.

    Each point has its `bytes` (of the largest planned arena), its `time` (of a run in
    nanoseconds), the `change` that lowers the peak, and the `budget` for which `plan`,
    given the same other options, returns this plan. Its `planned` is this plan, a
    `Model` or a module like `program`, which `compile` takes without another search.
    `program` stays unchanged. The search returns at most `points` points.

    Times are estimated from types, and the same on every machine. With `measure`, each
    plan runs on random inputs, and its time is that of its fastest run on this machine
    with `threads` threads: CPU time for one thread, and elapsed time for several. The
    plans stay the same, but the curve omits those that were not measured to be faster
    than one with fewer bytes.

    Raises what `plan` raises, `ValueError` for a budget or fewer than two points, and
    `LocatedError` for a program that is not on tensors, or has unknown sizes, or, with
    `measure`, that this machine cannot run.
    """
    from .reporting.frontier import frontier

    module = _module_of(program)
    pipeline = _pipeline(options)
    found = frontier(context(), module, pipeline, options.points, options.measure)
    if not isinstance(program, Model):
        return found
    plans = (replace(program, module=point.planned) for point in found)
    return [replace(p, planned=plan) for p, plan in zip(found, plans, strict=True)]


@dataclass(frozen=True, kw_only=True)
class _RunOptions(PlanOptions):
    workspaces: str = "native"
    pools: tuple[Any, ...] = ()
    flush_subnormals: bool = False


@_takes(_RunOptions)
def compile(
    program: ModuleOp | Model, options: _RunOptions
) -> Executable | DynamicExecutable:
    """Compiles a program into a callable that runs `@main`. A program without a plan is
    planned first, together with the workspaces of the kernels that run it.

    The callable takes NumPy arrays, or objects that support DLPack or
    `__array_interface__`, and returns a list of results in the order of the program's
    signature. The parameters of a `Model` are already bound (`bind`); calls take the
    other arguments. A variable that is passed as a NumPy array is updated in place.
    Symbolic sizes are those of the arrays in each call. The options are those of
    `plan`; they do not change a program that is already planned. `threads` is the
    number of threads that a call uses, as in `Executable`; by default one per processor
    that the process may run on. With the `pools` of other programs, the program uses
    their arenas, which are then as large as the largest program needs, and the programs
    run one at a time. With `flush_subnormals`, numbers smaller than the normal ones
    count as zero, which is faster where they occur (`Executable`). A plan that took
    half a second or more is kept on disk for other processes that compile the same
    program.

    Raises what `plan` raises, and `LocatedError` for devices other than processors
    (`cpu:0`, `cpu:1`, ...), which can be planned for but not run on. If the machine is
    out of memory, the `LocatedError` is also a `MemoryError`.
    """
    from .analysis.allocations import is_planned
    from .checking.plan_check import check_plan
    from .dialects.garbage import seldom_collected
    from .passes import driver
    from .passes.specialize.sizes import specialized
    from .runtime.dynamic import DynamicExecutable, is_dynamic
    from .runtime.executor import Executable
    from .runtime.pool import Pool
    from .runtime.runnable import RUNNABLE, is_runnable

    if not is_runnable(options.device):
        raise ValueError(f"device is {options.device!r}, expected {RUNNABLE} to run")
    module = _module_of(program)
    pools, flush_subnormals = options.pools, options.flush_subnormals
    options = replace(options, pools=(), flush_subnormals=False)
    if wrong := [pool for pool in pools if not isinstance(pool, Pool)]:
        raise TypeError(f"pools have {wrong[0]!r}, expected a program's `pools`")
    with seldom_collected():
        if replace(options, threads=None) == _RunOptions() and is_planned(module):
            driver.check(module)
            check_plan(module)
            planned = module.clone()
        else:
            planned = _cached(module, options)
        model = program if isinstance(program, Model) else Model(module, {})
        parameters = model.inputs()
        if not is_dynamic(planned):
            return Executable(
                planned,
                threads=options.threads,
                parameters=parameters,
                pools=pools,
                callbacks=model.callbacks,
                flush_subnormals=flush_subnormals,
            )
        run = DynamicExecutable(
            planned,
            specialized,
            threads=options.threads,
            pools=pools,
            callbacks=model.callbacks,
            flush_subnormals=flush_subnormals,
        )
        run.bind(parameters)
        return run


def _cached(module: ModuleOp, options: PlanOptions) -> ModuleOp:
    from .passes.plan.cached import cached
    from .runtime.backends.dispatch import setting
    from .support.threads import checked

    is_own = options.strategy == "auto" and options.workspaces == "native"
    if not is_own or options.target_memory:  # strategies and kernels of others
        return _planned(module, options)
    settled = replace(options, threads=checked(options.threads))
    return cached(
        *(context(), module, settled, setting()),
        plan=lambda: _planned(module, settled),
    )


@overload
def jit(
    fn: Callable[..., Any],
    *,
    donate_argnums: int | Sequence[int] = ...,
    donate_argnames: str | Sequence[str] = ...,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    **options: Any,
) -> Jitted: ...
@overload
def jit(
    *,
    donate_argnums: int | Sequence[int] = ...,
    donate_argnames: str | Sequence[str] = ...,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    **options: Any,
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    *,
    donate_argnums: int | Sequence[int] = (),
    donate_argnames: str | Sequence[str] = (),
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    **options: Any,
) -> Jitted | Callable[[Callable[..., Any]], Jitted]:
    """A JAX function that its first call plans and compiles, like `jax.jit`.

    Without a function, returns a decorator: `@tensorplan.jit(donate_argnums=0)`.

    The arguments and the result are pytrees of arrays of JAX or NumPy, and of numbers.
    Each combination of trees, shapes, types, and values of the arguments in
    `static_argnums` or `static_argnames` is compiled once, for each setting of JAX such
    as `jax.enable_x64`. As in JAX, negative numbers count from the last argument. An
    option may give the number or the name of an argument that calls pass by name.
    Results are NumPy arrays, except for random keys (`jax.random.key`), which stay JAX
    arrays. An argument in `donate_argnums` or `donate_argnames` is state: if its arrays
    are writable NumPy arrays, a call overwrites them and returns them. A loop that
    passes the returned state to the next call therefore copies nothing after its first
    call. The options are those of `compile`. As in JAX, subnormal numbers count as
    zero, unless `flush_subnormals` is false.

    The function also works under `jax.jit` and `jax.vmap`, as a callback
    (`tensorplan.integrations.jax`), and has derivatives of each order, forwards and
    backwards. There, a call donates nothing if JAX traces one of its arguments.
    `jitted.compiled(*args)` is the `Executable` for such arguments.

    Raises `TypeError` or `ValueError` for options or argument numbers that do not fit;
    calls raise what `from_jax` and `compile` raise.
    """
    from .integrations.jax import Jitted

    options = {"flush_subnormals": True} | options
    _expect_options(options, _RunOptions)

    def build(
        function: Callable[..., Any], like: Sequence[Any], donated: Sequence[int]
    ) -> Executable:
        model = from_jax(function, *like, donate_argnums=donated)
        return cast("Executable", compile(model, **options))  # all sizes are known

    def jitted(fn: Callable[..., Any]) -> Jitted:
        return Jitted(
            fn, donate_argnums, donate_argnames, static_argnums, static_argnames, build
        )

    return jitted if fn is None else jitted(fn)


def save(
    executable: Executable | DynamicExecutable, path: str | os.PathLike[str]
) -> None:
    """Writes a compiled program with its machine code and parameters to a file, which
    `load` runs without the IR. See `Executable.save`.

    Raises `TypeError` for a program with symbolic sizes, and what `Executable.save`
    raises.
    """
    from .runtime.executor import Executable

    if not isinstance(executable, Executable):
        found = type(executable).__name__
        raise TypeError(f"a {found} cannot be saved, expected an Executable")
    executable.save(Path(path))


def load(path: str | os.PathLike[str]) -> CallableProgram:
    """Loads a program that `save` has written, in a fraction of a second and without
    xDSL. The file works only with the same version of tensorplan and oneDNN, on
    processors with the same instructions.

    Load only files that you trust, as with a shared library: their code is run. Raises
    `OSError` for a file that cannot be read, and `ValueError` if it is damaged or was
    saved for another machine or version.
    """
    from .runtime.saved.reading import load

    return load(Path(path))
