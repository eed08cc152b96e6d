"""The main function of plan-run: plans a program, runs it, and prints its pools."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import ne
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.passes import ModulePass

from ..analysis.allocations import is_planned
from ..analysis.functions import is_tensor
from ..dialects import get_all_dialects
from ..dialects.diagnostics import LocatedError, held_back, name_of
from ..dialects.sizes.symbolic import TYPICAL
from ..dialects.tgraph.base import is_static, tensor_type_of
from ..frontends import onnx
from ..passes import driver
from ..passes.driver import flatten
from ..passes.plan.check import PlanCheck
from ..passes.plan.pipeline import PlanPipeline
from ..reporting.report import PoolReport, Report, ReusedReport, report
from ..reporting.wording import plural
from ..support.choices import one_of
from .common import (
    OPTION_ERRORS,
    UsageError,
    read_source,
    write_atomically,
    write_report,
)
from .compiler import ToolPipeline
from .plan_arguments import given_options, option_of
from .progress import ProgressBar

if TYPE_CHECKING:
    from ..dialects.tgraph.signature import Signature
    from ..runtime.allocators import Statistics
    from ..runtime.backends.mlir.executable import MlirExecutable
    from ..runtime.pool import Pool
    from ..runtime.profile import Profile

_LARGEST = 1 << 47
"""The largest number of elements of a value: the bytes that a process can address."""

_BESIDE = ("scratch_bytes", "packed_bytes")
"""Bytes of an executable outside its pools: the workspaces of its kernels, and the
parameters in the kernels' layout.
"""


def run(options: argparse.Namespace) -> int:
    """Runs the tool with parsed options; returns the exit code."""
    ctx = Context()
    from xdsl.dialects import get_all_dialects as xdsl_dialects

    for name, factory in (xdsl_dialects() | get_all_dialects()).items():
        ctx.register_dialect(name, factory)
    compiler = ToolPipeline("plan-run", ctx)
    source = read_source(options.file, options.sizes)
    model = compiler.read_model(source, simplify=options.level == "planned")
    module = model.module
    passes = passes_for(options)
    compiler.run(module, ())
    if options.level == "planned" and is_planned(module):
        check_planning(options)
        passes = [PlanCheck(report=False)]
    program = _plan(compiler, module, passes)

    # Imported late: errors above appear sooner without NumPy.
    from ..dialects.dtypes import Array
    from ..dialects.tgraph.signature import signature
    from ..runtime.dynamic import is_dynamic
    from ..runtime.random_inputs import random_inputs
    from . import arrays

    io = signature(module, options.entry)
    if is_dynamic(module, options.entry):
        program = module = with_sizes(module, io, options)
        io = signature(module, options.entry)
    elif not onnx.is_model(source.data):  # the frontend checks the sizes of ONNX models
        _check_named(options, ())
    _check_sizes(module)
    inputs = io.inputs[: len(io.inputs) - len(model.parameters)]
    if options.inputs:
        names = io.input_names[: len(inputs)]
        values = arrays.load_inputs(options.inputs, inputs, names)
    else:
        values = random_inputs(inputs, options.seed)
    values += model.parameters.values()
    runner = make_runner(module, options)
    results: list[Array] = []
    start = time.perf_counter()
    with ProgressBar("run", options.steps) as progress:
        for _ in range(options.steps):
            results = runner.step(values)
            values = arrays.fed_back(io, values, results)
            progress.step()
    running = time.perf_counter() - start
    if runner.profile:
        write_atomically(options.profile, runner.profile.to_json().encode())
    beside = runner.beside()
    if options.level == "planned":
        _print_memory(program or module, module, runner, options)
        if options.report:
            seconds = {**compiler.seconds(), "run": running}
            write_report(options.report, module, seconds, **beside)
    steps, outputs = plural(options.steps, "step"), plural(len(results), "output")
    packed = beside.get("packed_bytes", 0)
    further = f", parameters in the kernels' layout {size(packed)}" if packed else ""
    print(f"{steps} in {running * 1e3:.1f} ms, {outputs}{further}")
    if runner.profile and runner.profile.fallbacks:
        found = (f"{count} {name}" for name, count in runner.profile.fallbacks.items())
        print(f"left to NumPy: {'; '.join(found)}")
    if options.outputs:
        arrays.save(options.outputs, "out", io.result_names, results)
    return _compare(results, io.result_names, options) if options.expect else 0


def _print_memory(
    program: ModuleOp, module: ModuleOp, runner: "Runner", options: argparse.Namespace
) -> None:
    """Prints the pools of `program`, which is planned without workspaces of kernels,
    and the bytes that `module`, which runs, needs in addition."""
    figures = report(program)
    for pool in figures["pools"]:
        print(pool_line(pool))
    with_kernels = _bytes(report(module)) + runner.beside().get("scratch_bytes", 0)
    if (further := with_kernels - _bytes(figures)) > 0:
        print(f"+ {size(further)} for this machine's kernels")
    for pool in runner.pools if options.allocator else ():
        print(allocator_line(pool.device, pool.allocator.statistics()))
    for reused in figures["reused"]:
        print(reused_line(reused))


def _compare(
    results: Sequence[Any], names: Sequence[str], options: argparse.Namespace
) -> int:
    """Compares results with those in the file `options.expect`, and prints what
    differs. Returns the exit code."""
    from . import arrays

    expected = arrays.load(options.expect, "out", names)
    differences = [
        arrays.difference(name or f"out{index}", got, want, options.rtol, options.atol)
        for index, (name, got, want) in enumerate(
            zip(names, results, expected, strict=True)
        )
    ]
    wrong = [d for d in differences if d.error > d.allowed]
    if not wrong:
        print("all outputs are as expected")
        return 0
    worst = max(wrong, key=lambda d: d.error / d.allowed if d.allowed else float("inf"))
    count = f"{len(wrong)} of {len(results)} outputs differ; the worst: "
    print(f"plan-run: error: {count}{worst.message}", file=sys.stderr)
    return 1


def _plan(
    compiler: ToolPipeline, module: ModuleOp, passes: Sequence[ModulePass]
) -> ModuleOp | None:
    """Runs the passes. Returns the program planned without the workspaces of kernels,
    for a figure that does not depend on the installed kernels.

    Returns None if `passes` have no pipeline, or one without workspaces, or with a
    budget, which covers program and workspaces.
    """
    pipeline = next((p for p in passes if isinstance(p, PlanPipeline)), None)
    steps = list(flatten(passes))
    with ProgressBar("compile", len(steps)) as progress:
        run = partial(compiler.run, module, after=lambda p, m, s: progress.step())
        if not pipeline or pipeline.workspaces == "none" or pipeline.budget is not None:
            run(steps)
            return None
        others = list(flatten([replace(pipeline, workspaces="none")]))
        shared = [*map(ne, steps, others)].index(True)
        run(steps[:shared])
        alone = module.clone()
        run(steps[shared:])
    with held_back():  # the plan that runs has the same remarks
        driver.run(compiler.ctx, alone, others[shared:])
    return alone


def _bytes(figures: Report) -> int:
    return sum(pool["bytes"] for pool in figures["pools"])


def _check_sizes(module: ModuleOp) -> None:
    """Raises `LocatedError` for a value that is larger than any machine's memory."""
    for op in module.walk():
        arguments = (a for r in op.regions for b in r.blocks for a in b.args)
        for type in (value.type for value in (*op.results, *arguments)):
            if is_tensor(type) or type.name == MemRefType.name:
                tensor = tensor_type_of(type)
                elements = tensor.element_count() if is_static(tensor) else 0
                if elements > _LARGEST:
                    raise LocatedError(
                        f"{name_of(op)} has a value of type {type} with {elements} "
                        f"elements, expected at most {_LARGEST} to run",
                        op,
                    )


def check_planning(options: argparse.Namespace) -> None:
    """Raises `UsageError` for options that have no effect on a planned program."""
    given = [*given_options(options), *(["allocator"] if options.allocator else [])]
    if given := [name for name in given if name != "threads"]:
        option = option_of(given[0])
        raise UsageError(
            f"{options.file} is already planned, so {option} has no effect"
        )


def passes_for(options: argparse.Namespace) -> Sequence[ModulePass]:
    if options.level == "reference":
        from ..passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
        from ..passes.tgraph.infer_shapes import TGraphInferShapes

        return [ConvertStablehloToTGraph(), TGraphInferShapes(require_static=True)]
    try:
        given = given_options(options)
        given.setdefault("workspaces", _workspaces(options))
        pipeline = PlanPipeline(**given)
        if not options.allocator:
            return [pipeline]
        return [p for p in flatten([pipeline]) if p.name != "plan-memory"]
    except OPTION_ERRORS as error:
        raise UsageError(str(error)) from None


def _workspaces(options: argparse.Namespace) -> str:
    """The kind of kernels whose workspaces are planned."""
    is_ours = options.backend == "kernels" and not options.allocator
    return "native" if is_ours else "none"


def _check_named(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Raises `LocatedError` for a size that the program does not have."""
    if unknown := [name for name in options.sizes if name not in names]:
        known = one_of(unknown[0], names or ["none"])
        raise LocatedError(f"{options.file}: the program has no size {known}")


def with_sizes(
    module: ModuleOp, io: "Signature", options: argparse.Namespace
) -> ModuleOp:
    """Specializes the program for the sizes of the given inputs, or for `--sizes`, or
    for typical sizes. Prints the sizes.
    """
    from ..passes.specialize.sizes import specialized
    from ..runtime.dynamic import Binding
    from . import arrays

    binding = Binding(io)
    try:
        if options.inputs:
            given = arrays.load(options.inputs, "arg", io.input_names)
            sizes = binding.sizes([array.shape for array in given])
        else:
            _check_named(options, binding.names)
            sizes = {n: options.sizes.get(n, TYPICAL) for n in binding.names}
        binding.check(sizes)
    except ValueError as error:
        raise LocatedError(str(error)) from None
    print("sizes:", ", ".join(f"{name} = {size}" for name, size in sizes.items()))
    return specialized(module, sizes)


class Runner(NamedTuple):
    """A program that is ready to run."""

    step: Callable[[Sequence[Any]], list[Any]]
    """Runs the program once on arrays."""
    beside: Callable[[], Mapping[str, int]] = dict
    """Returns the bytes outside the pools, by `_BESIDE`."""
    pools: "Sequence[Pool]" = ()
    profile: "Profile | None" = None


def make_runner(module: ModuleOp, options: argparse.Namespace) -> Runner:
    if options.level == "reference":
        from ..dialects.tgraph.reference.interpreter import run_reference

        return Runner(partial(run_reference, module, entry=options.entry))
    if options.backend == "mlir":
        compiled = native(module, options.entry)
        workspace = {"scratch_bytes": compiled.workspace_bytes}
        return Runner(partial(_call, compiled), lambda: workspace)
    from ..runtime.executor import Executable

    processes = None
    if options.processes:
        from ..runtime.devices.processes import Processes

        processes = Processes(options.processes)
    executable = Executable(
        module,
        options.entry,
        sanitize=options.sanitize,
        threads=given_options(options).get("threads"),
        concurrent=options.concurrent,
        processes=processes,
        allocator=options.allocator or "bfc",
        flush_subnormals=options.flush_subnormals,
    )
    profile = executable.profile() if options.profile else None

    def beside() -> Mapping[str, int]:
        return {name: getattr(executable, name) for name in _BESIDE}

    return Runner(partial(_call, executable), beside, executable.pools, profile)


def _call(function: Callable[..., list[Any]], values: Sequence[Any]) -> list[Any]:
    return function(*values)


def native(module: ModuleOp, entry: str) -> "MlirExecutable":
    """The planned program, compiled by MLIR."""
    from ..dialects.tgraph.signature import signature
    from ..passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
    from ..passes.plan.strip_memory_spaces import PlanStripMemorySpaces
    from ..runtime.backends.mlir.executable import MlirExecutable

    lowered = module.clone()
    driver.run(Context(), lowered, [ConvertTGraphToLinalg(), PlanStripMemorySpaces()])
    return MlirExecutable(lowered, signature(module, entry))


def pool_line(pool: PoolReport) -> str:
    return (
        f"{pool['device']}: {size(pool['bytes'])}, "
        f"lower bound {size(pool['lower_bound_bytes'])}, "
        f"without reuse {size(pool['unshared_bytes'])}, "
        f"{plural(pool['buffers'], 'buffer')}"
    )


def reused_line(reused: ReusedReport) -> str:
    return (
        f"{reused['memory']}: {plural(reused['buffers'], 'buffer')} in "
        f"{size(reused['reused_bytes'])} of it, while its contents are not needed"
    )


def allocator_line(device: str, statistics: "Statistics") -> str:
    return (
        f"{device}: {plural(statistics.num_allocs, 'allocation')}, "
        f"{size(statistics.peak_bytes_in_use)} at the peak, "
        f"{size(statistics.pool_bytes)} in regions, "
        f"{size(statistics.bytes_in_use)} still in use"
    )


def size(count: int) -> str:
    """`2.5 KiB (2560 bytes)`; `640 bytes`."""
    if count < 1024:
        return f"{count} bytes"
    scaled = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        scaled /= 1024
        if scaled < 1024:
            return f"{scaled:.1f} {unit} ({count} bytes)"
    return f"{scaled / 1024:.1f} TiB ({count} bytes)"
