"""`plan-run`: plans a tensor program, runs it, and prints how much memory it takes.

Prints one line per pool: its bytes, the lower bound, the bytes of the buffers without
reuse, and their number; see `plan-run --help`. This file only parses the command line.
`plan_run_main.py`, which takes longer to import, does the work.
"""

import argparse
import sys
from collections.abc import Sequence

from .arguments import FILE, Parser, at_least, integer, number
from .common import check_inputs, check_outputs, check_program, guard, parse_sizes
from .plan_arguments import add_plan_options

_DESCRIPTION = """\
Plans the memory of a tensor program (StableHLO text or bytecode, an ONNX or
LiteRT model, tgraph or memref IR), runs it with NumPy arrays, and prints for
each pool: its bytes, the lower bound (the largest sum of live bytes), the bytes
without reuse, and the buffer count. '+ N' is what the kernels of this machine
need in addition.

In npz files, inputs are called arg0, arg1, ... in signature order, or by the names of
the program's arguments. Outputs have the names of the model's results, or out0, out1,
... A variable (a donated argument) is an input; its final contents are the output that
it is donated to. The parameters of an ONNX or LiteRT model are read from its file and
are not inputs. What depends on them alone is computed before the plan is made,
and scales are folded into them; --level=reference interprets the model as it is.
"""


def make_parser() -> Parser:
    parser = Parser("plan-run", "[OPTION ...] [FILE]", _DESCRIPTION)
    parser.add_argument("file", nargs="?", metavar="FILE", help=FILE)
    data = parser.add_argument_group("inputs and outputs")
    given = data.add_mutually_exclusive_group()
    given.add_argument("--inputs", metavar="IN.npz", help="read the inputs from a file")
    given.add_argument(
        "--seed",
        type=at_least(0, integer),
        default=0,
        metavar="N",
        help="seed for random inputs (default: 0): floats from a normal distribution "
        "with standard deviation 0.1, integers from 0 to 9, booleans",
    )
    data.add_argument(
        "--sizes",
        type=parse_sizes,
        default={},
        metavar="NAME=N,...",
        help="sizes of the dynamic dimensions of an ONNX model, or values of symbolic "
        "sizes for random inputs (default: 64 each)",
    )
    data.add_argument(
        "--outputs", metavar="OUT.npz", help="write the outputs to a file"
    )
    data.add_argument(
        "--expect",
        metavar="REF.npz",
        help="compare the outputs with a file; report differences and exit with 1",
    )
    data.add_argument(
        "--rtol",
        type=at_least(0, number),
        default=2e-4,
        metavar="R",
        help="tolerance relative to the largest magnitude of each expected output "
        "(default: %(default)s); NaN equals NaN",
    )
    data.add_argument(
        "--atol",
        type=at_least(0, number),
        default=1e-8,
        metavar="A",
        help="additional absolute tolerance (default: %(default)s)",
    )
    how = parser.add_argument_group("how to run")
    how.add_argument(
        "--level",
        choices=("planned", "reference"),
        default="planned",
        help="run in planned arenas (default), or interpret the tensors (reference)",
    )
    how.add_argument(
        "--backend",
        choices=("kernels", "mlir"),
        default="kernels",
        help="run with the kernels of tensorplan (default), or as native code from "
        "mlir-opt and mlir-runner, which must be on PATH (mlir)",
    )
    how.add_argument(
        "--steps",
        type=at_least(1, integer),
        default=1,
        metavar="K",
        help="run K times; each run starts with the variables of the previous one",
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
        help="detect invalid memory accesses, and report the operation and the buffer",
    )
    how.add_argument(
        "--concurrent",
        action="store_true",
        help="run streams and devices concurrently",
    )
    how.add_argument(
        "--flush-subnormals",
        action="store_true",
        help="count numbers smaller than the normal ones as zero, which is faster",
    )
    how.add_argument(
        "--processes",
        type=at_least(1, integer),
        metavar="N",
        help="distribute the devices over N processes, started by mpiexec",
    )
    how.add_argument("--report", metavar="R.json", help="write statistics as JSON")
    how.add_argument(
        "--profile",
        metavar="OUT.json",
        help="write a trace of the run, for chrome://tracing and ui.perfetto.dev",
    )
    plan = parser.add_argument_group("how to plan")
    further = " (default: the kernels of this run)"
    add_plan_options(plan, {"workspaces": further})
    plan.add_argument(
        "--allocator",
        choices=("bfc", "buddy", "slab", "slab-buddy"),
        help="instead of a plan, take each buffer from this allocator at run time",
    )
    return parser


def parse_arguments(args: Sequence[str] | None = None) -> argparse.Namespace:
    parser = make_parser()
    options = parser.parse(args)
    from ..runtime.runnable import RUNNABLE, is_runnable

    if options.level == "reference" and (options.sanitize or options.report):
        parser.error("--sanitize and --report require --level=planned")
    if sum(map(bool, (options.sanitize, options.concurrent, options.processes))) > 1:
        parser.error(
            "only one of --sanitize, --concurrent and --processes can be given"
        )
    if options.processes or options.level == "reference" or options.backend == "mlir":
        for name in ("profile", "flush_subnormals"):
            if getattr(options, name):
                option = name.replace("_", "-")
                parser.error(f"--{option} requires kernels that run in this process")
    if options.backend == "mlir" and (options.sanitize or options.level == "reference"):
        parser.error(
            "--backend=mlir cannot be combined with --sanitize or --level=reference"
        )
    for name in ("device", "offload"):
        if not is_runnable(device := getattr(options, name, "cpu:0")):
            parser.error(
                f"argument --{name}: {device!r}, expected {RUNNABLE} (plan-opt plans "
                "for any device)"
            )
    return options


def main(args: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code (see `common`)."""

    def body() -> int:
        options = parse_arguments(args)
        check_outputs(options.outputs, options.report, options.profile)
        check_program(options.file)
        check_inputs(options.inputs, options.expect)
        from .plan_run_main import run

        return run(options)

    return guard("plan-run", body)


if __name__ == "__main__":
    sys.exit(main())
