"""`plan-run`: plans a tensor program, runs it, and says how much memory it took.

Prints one line per pool: its bytes, the lower bound, what the buffers take without
reuse, and their number; see `plan-run --help`.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.passes import ModulePass

from ..analysis.allocations import is_planned
from ..analysis.functions import argument_names, is_tensor
from ..dialects import get_all_dialects
from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.sizes.symbolic import TYPICAL
from ..dialects.tgraph.base import is_static, tensor_type_of
from ..frontends import onnx
from ..passes import driver
from ..passes.driver import flatten
from ..passes.plan.check import PlanCheck
from ..passes.plan.pipeline import PlanPipeline
from ..reporting.report import PoolReport, ResultReport, report
from .arguments import Parser
from .common import (
    OPTION_ERRORS,
    UsageError,
    check_outputs,
    guard,
    parse_sizes,
    read_source,
    write_atomically,
    write_report,
)
from .compiler import ToolPipeline
from .plan_arguments import add_plan_options, given_options, option_of
from .progress import ProgressBar

if TYPE_CHECKING:
    from ..dialects.tgraph.signature import Signature
    from ..runtime.allocators import Statistics
    from ..runtime.backends.mlir.executable import MlirExecutable
    from ..runtime.pool import Pool
    from ..runtime.profile import Profile

_DESCRIPTION = """\
Plans the memory of a tensor program (StableHLO text or bytecode, an ONNX model, tgraph
or memref IR), runs it on NumPy, and prints for each pool: its bytes, the lower bound
(the largest sum of live bytes), the bytes without reuse, and the number of buffers.

Inputs are arg0, arg1, ... and outputs out0, out1, ... in signature order. A variable (a
donated argument) is an input; its contents afterwards are the output it was donated to.
An ONNX model's parameters are those in its file, and no inputs.
"""

Step: TypeAlias = Callable[[Sequence[Any]], list[Any]]
Beside: TypeAlias = Callable[[], Mapping[str, int]]

_LARGEST = 1 << 47
"""Elements of a value: of bytes, a process can address as many."""

_BESIDE = {
    "scratch_bytes": "workspace of the kernels",
    "packed_bytes": "parameters in the kernels' layout",
}


def make_parser() -> Parser:
    parser = Parser("plan-run", "[OPTION ...] FILE", _DESCRIPTION)
    parser.add_argument("file", metavar="FILE", help="the program; '-' is stdin")
    data = parser.add_argument_group("inputs and outputs")
    given = data.add_mutually_exclusive_group()
    given.add_argument("--inputs", metavar="IN.npz", help="read the inputs")
    given.add_argument(
        "--seed",
        type=_at_least(0, int),
        default=0,
        metavar="N",
        help="random inputs: floats normal with deviation 0.1, integers 0 to 9, "
        "booleans either (default: seed 0)",
    )
    data.add_argument(
        "--sizes",
        type=parse_sizes,
        default={},
        metavar="NAME=N,...",
        help="sizes of the dimensions that an ONNX model leaves open; for random "
        "inputs, symbolic sizes (default: 64 each)",
    )
    data.add_argument("--outputs", metavar="OUT.npz", help="write the outputs")
    data.add_argument(
        "--expect",
        metavar="REF.npz",
        help="compare the outputs; if one differs, say which and exit with 1",
    )
    data.add_argument(
        "--rtol",
        type=_at_least(0, float),
        default=2e-4,
        metavar="R",
        help="error allowed, relative to the largest magnitude of each expected output "
        "(default: %(default)s); NaN equals NaN",
    )
    data.add_argument(
        "--atol",
        type=_at_least(0, float),
        default=1e-8,
        metavar="A",
        help="absolute error allowed in addition (default: %(default)s)",
    )
    how = parser.add_argument_group("how to run")
    how.add_argument(
        "--level",
        choices=("planned", "reference"),
        default="planned",
        help="planned: in arenas (default); reference: the tensor program, interpreted",
    )
    how.add_argument(
        "--backend",
        choices=("kernels", "mlir"),
        default="kernels",
        help="what computes in the arenas: tensorplan's kernels (default), or mlir: "
        "native code by mlir-opt and mlir-runner, which must be on PATH",
    )
    how.add_argument(
        "--steps",
        type=_at_least(1, int),
        default=1,
        metavar="K",
        help="run K times, each with the variables that the last one left",
    )
    how.add_argument(
        "--entry",
        default="main",
        metavar="NAME",
        help="the function to run (default: %(default)s)",
    )
    how.add_argument(
        "--sanitize",
        action="store_true",
        help="find unsound use of memory: say which operation and which buffer",
    )
    how.add_argument(
        "--threads",
        action=argparse.BooleanOptionalAction,
        help="run each stream of each device in a thread of its own, or all in one "
        "(default: what is estimated to be faster)",
    )
    how.add_argument(
        "--processes",
        type=_at_least(1, int),
        metavar="N",
        help="deal the devices to N processes, started by mpiexec",
    )
    how.add_argument("--report", metavar="R.json", help="write the figures as JSON")
    how.add_argument(
        "--profile",
        metavar="OUT.json",
        help="record when operations run, for chrome://tracing and ui.perfetto.dev",
    )
    plan = parser.add_argument_group("how to plan")
    further = " (default: those that run)"
    add_plan_options(plan, {"workspaces": further})
    plan.add_argument(
        "--allocator",
        choices=("bfc", "buddy", "slab", "slab-buddy"),
        help="plan nothing: each buffer comes from this allocator",
    )
    return parser


def parse_arguments(args: Sequence[str] | None = None) -> argparse.Namespace:
    from ..runtime.runnable import RUNNABLE, is_runnable

    parser = make_parser()
    options = parser.parse(args)
    if options.level == "reference" and (options.sanitize or options.report):
        parser.error("--sanitize and --report are about the planned level")
    if sum(map(bool, (options.sanitize, options.threads, options.processes))) > 1:
        parser.error("only one of --sanitize, --threads and --processes can be given")
    if options.profile and (
        options.processes or options.level == "reference" or options.backend == "mlir"
    ):
        parser.error("--profile is about kernels that run in this process")
    if options.backend == "mlir" and (options.sanitize or options.level == "reference"):
        parser.error("--backend=mlir is without --sanitize and --level=reference")
    for name in ("device", "offload"):
        if not is_runnable(device := getattr(options, name, "cpu:0")):
            parser.error(
                f"argument --{name}: {device!r}, expected {RUNNABLE} (plan-opt plans "
                "for any device)"
            )
    return options


def _at_least(least: int, kind: type[int] | type[float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = kind(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"{text}, expected {least} or more")
        return value

    number.__name__ = kind.__name__  # argparse says this in its messages
    return number


def run(options: argparse.Namespace) -> int:
    """Does what the command line says; returns the exit code."""
    check_outputs(options.outputs, options.report, options.profile)
    ctx = Context()
    from xdsl.dialects import get_all_dialects as xdsl_dialects

    for name, factory in (xdsl_dialects() | get_all_dialects()).items():
        ctx.register_dialect(name, factory)
    compiler = ToolPipeline("plan-run", ctx)
    source = read_source(options.file, options.sizes)
    module = compiler.read(source)
    names = argument_names(module, options.entry)
    passes = passes_for(options)
    compiler.run(module, ())
    if options.level == "planned" and is_planned(module):
        check_planning(options)
        passes = [PlanCheck(report=False)]
    with ProgressBar("compile", len(passes)) as progress:
        compiler.run(module, passes, after=lambda p, m, s: progress.step())

    # NumPy takes longer to load than most errors above need to show.
    from ..dialects.dtypes import Array
    from ..dialects.tgraph.signature import signature
    from ..runtime.dynamic import is_dynamic
    from . import arrays

    io = signature(module, options.entry)
    if is_dynamic(module, options.entry):
        module = with_sizes(module, io, options)
        io = signature(module, options.entry)
    _check_sizes(module)
    parameters = onnx.parameters(source.data, source.name)
    given = [parameters[name] for name in names.values() if name in parameters]
    inputs = io.inputs[: len(io.inputs) - len(given)]
    if options.inputs:
        values = arrays.load_inputs(options.inputs, inputs)
    else:
        values = arrays.random_inputs(inputs, options.seed)
    values += given
    step, beside, pools, profile = make_step(module, options)
    results: list[Array] = []
    start = time.perf_counter()
    with ProgressBar("run", options.steps) as progress:
        for _ in range(options.steps):
            results = step(values)
            values = arrays.fed_back(io, values, results)
            progress.step()
    running = time.perf_counter() - start
    if profile:
        write_atomically(options.profile, profile.to_json().encode())
    if options.level == "planned":
        figures = report(module)
        for pool in figures["pools"]:
            print(pool_line(pool))
        for pool in pools if options.allocator else ():
            print(allocator_line(pool.device, pool.allocator.statistics()))
        for result in figures["results"]:
            print(result_line(result))
        if options.report:
            seconds = {**compiler.seconds(), "run": running}
            write_report(options.report, module, seconds, **beside())
    steps, outputs = plural(options.steps, "step"), plural(len(results), "output")
    further = "".join(
        f", {_BESIDE[name]} {size(bytes)}" for name, bytes in beside().items() if bytes
    )
    print(f"{steps} in {running * 1e3:.1f} ms, {outputs}{further}")
    if profile and profile.fallbacks:
        found = (f"{count} {name}" for name, count in profile.fallbacks.items())
        print(f"left to NumPy: {'; '.join(found)}")
    if options.outputs:
        arrays.save(options.outputs, "out", results)
    if not options.expect:
        return 0
    differences = [
        arrays.difference(f"out{index}", got, want, options.rtol, options.atol)
        for index, (got, want) in enumerate(
            zip(results, arrays.load(options.expect, "out", len(results)), strict=True)
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


def _check_sizes(module: ModuleOp) -> None:
    """Raises `LocatedError` for what is larger than any machine's memory."""
    for op in module.walk():
        arguments = (a for r in op.regions for b in r.blocks for a in b.args)
        for type in (value.type for value in (*op.results, *arguments)):
            if is_tensor(type) or type.name == MemRefType.name:
                tensor = tensor_type_of(type)
                elements = tensor.element_count() if is_static(tensor) else 0
                if elements > _LARGEST:
                    raise LocatedError(
                        f"{name_of(op)} has a value of type {type} with {elements} "
                        f"elements, expected at most {_LARGEST} to be run",
                        op,
                    )


def check_planning(options: argparse.Namespace) -> None:
    """Raises `UsageError` for options about programs without a plan."""
    given = [*given_options(options), *(["allocator"] if options.allocator else [])]
    if given:
        option = option_of(given[0])
        raise UsageError(f"{options.file} is planned already, expected no {option}")


def passes_for(options: argparse.Namespace) -> Sequence[ModulePass]:
    if options.level == "reference":
        from ..passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
        from ..passes.tgraph.infer_shapes import TGraphInferShapes

        return [ConvertStablehloToTGraph(), TGraphInferShapes(require_static=True)]
    try:
        given = given_options(options)
        given.setdefault("workspaces", _workspaces(options))
        pipeline = PlanPipeline(**given)
        passes = flatten([pipeline])
        return [p for p in passes if not options.allocator or p.name != "plan-memory"]
    except OPTION_ERRORS as error:
        raise UsageError(str(error)) from None


def _workspaces(options: argparse.Namespace) -> str:
    """The kernels that will run."""
    is_ours = options.backend == "kernels" and not options.allocator
    return "native" if is_ours else "none"


def with_sizes(
    module: ModuleOp, io: "Signature", options: argparse.Namespace
) -> ModuleOp:
    """The program for the sizes of the inputs in the file, or of `--sizes`, or typical
    ones. Prints them."""
    from ..passes.specialize.sizes import specialized
    from ..runtime.dynamic import Binding
    from . import arrays

    binding = Binding(io)
    try:
        if options.inputs:
            given = arrays.load(options.inputs, "arg", len(io.inputs))
            sizes = binding.sizes([array.shape for array in given])
        else:
            sizes = {n: options.sizes.get(n, TYPICAL) for n in binding.names}
        binding.check(sizes)
    except ValueError as error:
        raise LocatedError(str(error)) from None
    print("sizes:", ", ".join(f"{name} = {size}" for name, size in sizes.items()))
    return specialized(module, sizes)


def make_step(
    module: ModuleOp, options: argparse.Namespace
) -> "tuple[Step, Beside, Sequence[Pool], Profile | None]":
    """What runs the program once, arrays in, arrays out; what gives its bytes beside
    the pools; the pools; what records it."""
    if options.level == "reference":
        from ..dialects.tgraph.reference.interpreter import run_reference

        return partial(run_reference, module, entry=options.entry), dict, (), None
    if options.backend == "mlir":
        compiled = native(module, options.entry)
        workspace = {"scratch_bytes": compiled.workspace_bytes}
        return lambda values: compiled(*values), lambda: workspace, (), None
    from ..runtime.devices.processes import Processes
    from ..runtime.executor import Executable

    executable = Executable(
        module,
        options.entry,
        sanitize=options.sanitize,
        threads=options.threads,
        processes=Processes(options.processes) if options.processes else None,
        allocator=options.allocator or "bfc",
    )
    profile = executable.profile() if options.profile else None

    def beside() -> Mapping[str, int]:
        return {name: getattr(executable, name) for name in _BESIDE}

    return lambda values: executable(*values), beside, executable.pools, profile


def native(module: ModuleOp, entry: str) -> "MlirExecutable":
    """The planned program as MLIR compiles it."""
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


def result_line(result: ResultReport) -> str:
    return (
        f"result {result['result']}: {plural(result['buffers'], 'buffer')} in "
        f"{size(result['reused_bytes'])} of it, until it is written"
    )


def allocator_line(device: str, statistics: "Statistics") -> str:
    return (
        f"{device}: {plural(statistics.num_allocs, 'allocation')}, "
        f"{size(statistics.peak_bytes_in_use)} at the peak, "
        f"{size(statistics.pool_bytes)} in regions, "
        f"{size(statistics.bytes_in_use)} still in use"
    )


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


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


def main(args: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code (see `common`)."""
    return guard("plan-run", lambda: run(parse_arguments(args)))


if __name__ == "__main__":
    sys.exit(main())
