"""Memory that the plans of other compilers waste, by cause, compared with our plans.

    python benchmarks/foreign_plans.py xla              # the models in jax_models/
    python benchmarks/foreign_plans.py executorch       # models of small_networks.py
    python benchmarks/foreign_plans.py litert
    python benchmarks/foreign_plans.py inductor
    python benchmarks/foreign_plans.py iree             # the models in jax_models/
    python benchmarks/foreign_plans.py xla --dumps DIR  # DIR/mlp, ...: from a GPU

    pip install executorch==1.5.1 torchao               # each with tensorplan, torch
    pip install litert-torch==0.10.0 ai-edge-litert==2.3.0
    pip install iree-base-compiler==3.13.0rc20261016    # iree-compile, on the PATH

Compiles each model for the CPU and audits the plan. `bytes` is the sum of all memories
of the plan. The other columns divide its difference from our plan by cause: scratch
memory of kernels, placement, order of operations, copies, and the program itself.
Arguments and results count. Parameters count where the other plan contains them. Names
select models; `--json FILE` writes the figures.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from os import devnull
from pathlib import Path
from subprocess import CalledProcessError, run
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import tensorplan
from tensorplan.checking.foreign import audit
from tensorplan.frontends.plans.reading import plan_files, read
from tensorplan.reporting.foreign import account
from tensorplan.reporting.trials import outcome
from tensorplan.support.foreign_plan import ForeignPlan

COLUMNS = ("bytes", "scratch", "placement", "order", "copies", "program")


class Planned(NamedTuple):
    """The plan of the other compiler, and the total bytes of our plan."""

    plan: ForeignPlan
    ours: int


def xla(
    names: Sequence[str], dumps: Path | None = None
) -> Iterator[tuple[str, Planned]]:
    """XLA for the CPU, with donated state. With `dumps`, reads existing dumps."""
    jax: Any = import_module("jax")
    models: Any = import_module("models").MODELS
    for name in names or models:
        if dumps and not (dumps / name).is_dir():
            continue
        model = models[name]()
        donated = tuple(range(model.state))
        with TemporaryDirectory() as folder:
            if not dumps:
                options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
                traced = jax.jit(model.function, donate_argnums=donated)
                traced.lower(*model.arguments).compile(compiler_options=options)
            [path] = plan_files(str(dumps / name) if dumps else folder)
            ours = tensorplan.from_jax(
                model.function, *model.arguments, donate_argnums=donated
            )
            yield name, Planned(read(path), _needed(ours, with_parameters=True))


def iree(names: Sequence[str]) -> Iterator[tuple[str, Planned]]:
    """IREE for the CPU. It never overwrites arguments, so nothing is donated."""
    jax: Any = import_module("jax")
    models: Any = import_module("models").MODELS
    for name in names or models:
        model = models[name]()
        text = jax.jit(model.function).lower(*model.arguments).as_text(debug_info=True)
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.iree.mlir"
            try:
                process = run(
                    IREE, input=text, capture_output=True, text=True, check=True
                )
            except CalledProcessError as error:
                print(f"{name:18}{error.stderr.splitlines()[0]}")
                continue
            path.write_text(process.stderr)
            ours = tensorplan.from_jax(model.function, *model.arguments)
            yield name, Planned(read(path), _needed(ours, with_parameters=True))


IREE = """iree-compile - --iree-input-type=stablehlo --iree-hal-target-device=local
    --iree-hal-local-target-device-backends=llvm-cpu --compile-to=stream -o /dev/null
    --mlir-print-ir-before=iree-stream-schedule-allocation
    --mlir-print-ir-after=iree-stream-layout-slices --mlir-disable-threading
    --mlir-print-op-generic --mlir-print-debuginfo --mlir-print-local-scope
    --mlir-elide-elementsattrs-if-larger=16""".split()


def executorch(names: Sequence[str]) -> Iterator[tuple[str, Planned]]:
    """ExecuTorch with portable operators and its default planner."""
    torch, exir = import_module("torch"), import_module("executorch.exir")
    checks = exir.EdgeCompileConfig(_check_ir_validity=False)

    def compile(module: Any, inputs: Any, folder: Path) -> Path:
        program = torch.export.export(module, inputs)
        made = exir.to_edge(program, compile_config=checks).to_executorch()
        path = folder / "net.pte"
        path.write_bytes(made.buffer)
        return path

    yield from _networks(names, compile, with_parameters=False)


def litert(names: Sequence[str]) -> Iterator[tuple[str, Planned]]:
    """LiteRT's interpreter without delegates."""
    converter: Any = import_module("litert_torch")
    runtime: Any = import_module("ai_edge_litert.interpreter")
    write: Any = import_module("tensorplan.frontends.plans.litert").write_addresses
    builtin = runtime.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES

    def compile(module: Any, inputs: Any, folder: Path) -> Path:
        path = folder / "net.tflite"
        with redirect_stdout(open(devnull, "w")):
            converter.convert(module, inputs).export(str(path))
        interpreter = runtime.Interpreter(
            str(path), experimental_op_resolver_type=builtin
        )
        interpreter.allocate_tensors()
        write(interpreter, str(path))
        return path

    yield from _networks(names, compile, with_parameters=False)


def inductor(names: Sequence[str]) -> Iterator[tuple[str, Planned]]:
    """Inductor with memory pools. Its kernels are not compiled."""
    torch: Any = import_module("torch")
    config: Any = import_module("torch._inductor.config")
    utilities: Any = import_module("torch._inductor.utils")
    without_kernels: Any = import_module("peers.inductor").without_kernels

    def compile(module: Any, inputs: Any, folder: Path) -> Path:
        torch._dynamo.reset()
        torch._dynamo.config.allow_rnn = True
        pools = config.patch(memory_planning=True)
        with pools, without_kernels(), torch.no_grad():
            compiled = torch.compile(module, fullgraph=True)
            _, [code] = utilities.run_and_get_code(compiled, *inputs)
        path = folder / "net.output_code.py"
        path.write_text(code)
        return path

    yield from _networks(names, compile, with_parameters=True)


def _networks(
    names: Sequence[str], compile: Callable[..., Path], *, with_parameters: bool
) -> Iterator[tuple[str, Planned]]:
    models: Any = import_module("small_networks").models()
    for name in names or models:
        module, inputs = models[name]()
        module = module.eval()
        try:
            ours = _needed(
                tensorplan.from_torch(module, inputs), with_parameters=with_parameters
            )
            with TemporaryDirectory() as folder:
                yield name, Planned(read(compile(module, inputs, Path(folder))), ours)
        except Exception as error:  # frameworks raise anything; report it
            print(f"{name:18}{type(error).__name__}: {error}".splitlines()[0])


def _needed(model: tensorplan.Model, *, with_parameters: bool) -> int:
    total = outcome(tensorplan.plan(model).module).total
    parameters = sum(array.nbytes for array in model.parameters.values())
    return total if with_parameters else total - parameters


def figures(planned: Planned) -> Mapping[str, int]:
    plan, ours = planned
    found = account(plan)
    scratch = found.by_kind.get("scratch", 0)
    lost = found.lost_by_placement, found.lost_by_order or 0, found.lost_by_copies or 0
    program = found.lost_by_program(ours)
    return dict(zip(COLUMNS, (plan.bytes, scratch, *lost, program), strict=True))


SYSTEMS = {f.__name__: f for f in (xla, executorch, litert, inductor, iree)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--dumps", type=Path)
    options = parser.parse_args()
    if options.dumps and options.system != "xla":
        parser.error("--dumps expects the system 'xla'")
    system = SYSTEMS[options.system]
    if options.dumps:
        system = partial(xla, dumps=options.dumps)
    print(f"{'model':18}{'verdict':>12}" + "".join(f"{c:>13}" for c in COLUMNS))
    rows: dict[str, Mapping[str, Any]] = {}
    for name, planned in system(options.models):
        verdict = audit(planned.plan).verdict
        if verdict == "unsound":
            print(f"{name:18}{verdict:>12}", flush=True)
            continue
        rows[name] = {"verdict": verdict, **(found := figures(planned))}
        numbers = "".join(f"{number:13,}" for number in found.values())
        print(f"{name:18}{verdict:>12}{numbers}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
