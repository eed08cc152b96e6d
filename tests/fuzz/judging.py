"""Judges the program of a seed: runs passes, plans and executors against oracles.

    verdict = judge("tensor", 17)

All random choices depend on the seed only, so a shrunk program is judged with the same
passes, inputs and options.
"""

import logging
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, cast

import memref_programs
import numpy as np
from jax_cpu import run_stablehlo
from levels import (
    KERNELS,
    has_streams,
    lower_bounds,
    planned_arenas,
    predicted_arenas,
    stored_bytes,
)
from limits import Hang, time_limit
from model_programs import model_text
from oracles import (
    Failure,
    Refused,
    Spread,
    arguments,
    check_round_trip,
    compare,
    fractions,
    reference,
    run,
    stage,
    text_of,
)
from random_passes import GROUPS, PASSES, place, plan_memory, plan_pipeline
from readers import READERS
from rounding import spread_by_rounding
from tensor_programs import operations, tensor_program
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ContainerType,
    DenseIntOrFPElementsAttr,
    ModuleOp,
    TensorType,
    f32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

import tensorplan
from tensorplan.dialects.diagnostics import name_of
from tensorplan.dialects.dtypes import Array, is_float
from tensorplan.dialects.tgraph.base import AnyTensor, TensorOp
from tensorplan.dialects.tgraph.random import RngBitGeneratorOp
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.frontends.reading import read
from tensorplan.passes import driver
from tensorplan.passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.passes.plan.strip_memory_spaces import PlanStripMemorySpaces
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.infer_shapes import TGraphInferShapes
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices
from tensorplan.reporting.report import buffers
from tensorplan.runtime.executor import Executable

SECONDS = 30
"""The CPU seconds of one program after which it counts as a hang."""

RUNS: dict[str, dict[str, Any]] = {
    "a sanitized run": {"sanitize": True, "native": False},
    "a run in threads": {"threads": 2, "concurrent": True},
    "a run": {},
}

LEVELS = ("program", "passes", "plan")
"""Levels after which the printed text may be parsed again. Each program draws only one,
because this takes longer than a run."""

MODEL_SLACK = 50
"""The slack for models, which add more numbers than random programs, and fractions."""

logger = logging.getLogger("fuzz")

_MLIR_OPT = shutil.which("mlir-opt-22")


@dataclass(frozen=True)
class Verdict:
    seed: int
    outcome: str  # "ok", "refused" or "failed"
    message: str = ""
    kind: str = ""

    @property
    def failed(self) -> bool:
        return self.outcome == "failed"


def generate(target: str, seed: int) -> ModuleOp:
    """The program of a seed. Small seeds give small programs."""
    size = 2 + seed % 7 + min(seed // 500, 12)
    if target == "tensor":
        return tensor_program(Random(seed), size)
    with stage("parse"):
        if target == "models":
            text = model_text(Random(seed))
            return read(text.encode(), f"seed-{seed}.mlir", tensorplan.context())
        text = memref_programs.memref_program(Random(seed), size)
        return parse_module(text, f"seed-{seed}.mlir", tensorplan.context())
    raise AssertionError


def judge(target: str, seed: int) -> Verdict:
    return _verdict(seed, lambda: TARGETS[target](generate(target, seed), seed))


def judge_module(target: str, module: ModuleOp, seed: int) -> Verdict:
    """Judges `module` with the passes, inputs and options of `seed`."""
    return _verdict(seed, lambda: TARGETS[target](module, seed))


def program_and_plan(target: str, seed: int) -> str:
    """The text of the program of a seed, and of its plan."""
    module, random = generate(target, seed), Random(seed)
    passes = [plan_memory(random) if target == "memref" else plan_pipeline(random)]
    with suppress(Refused):
        return text_of(module) + text_of(applied(module, *passes))
    return text_of(module)


def judge_passes(module: ModuleOp, passes: Sequence[ModulePass]) -> Verdict:
    """Judges `module` with the given passes, the last of which makes a plan."""

    def check() -> None:
        inputs = arguments(module, 0)
        _check_runs(applied(module, *passes), inputs, reference(module, inputs))

    return _verdict(0, check)


def judge_bytes(reader: str, seed: int, data: bytes) -> Verdict:
    """Judges a reader on the input `data`, which need not be the input of `seed`."""
    return _verdict(seed, lambda: READERS[reader](data))


def _verdict(seed: int, check: Callable[[], None]) -> Verdict:
    try:
        with time_limit(SECONDS):
            check()
    except Refused as refused:
        return Verdict(seed, "refused", str(refused))
    except Failure as failure:
        return Verdict(seed, "failed", str(failure), failure.kind)
    except Hang as hang:
        return Verdict(seed, "failed", f"hang: {hang}", "hang")
    return Verdict(seed, "ok")


def applied(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    """Runs `passes` on a copy of `module`, and verifies it after each pass."""
    copy = module.clone()
    logger.info("%s", ",".join(map(str, passes)))
    with stage(",".join(p.name for p in passes), may_refuse=True):
        driver.run(tensorplan.context(), copy, passes)
    return copy


def check_tensor_program(module: ModuleOp, seed: int) -> None:
    """Compares random passes, plans and runs with the reference interpreter."""
    with stage("program"):
        driver.check(module)
        inputs = arguments(module, seed)
    _check_passes(module, seed, inputs, reference(module, inputs))


def check_model(module: ModuleOp, seed: int) -> None:
    """Checks a model like a tensor program, with XLA as a second oracle."""
    with stage("program"):
        driver.check(module)
        converted = applied(module, ConvertStablehloToTGraph(), TGraphInferShapes())
        inputs = fractions(converted, seed)
    want = reference(converted, inputs)
    text = text_of(module, generic=True)
    spread = cache(partial(spread_by_rounding, converted, inputs, want))
    no_oracle = _xla_loses_nans(text, want) or _xla_repeats_initials(module)
    if find_spec("jax") and not no_oracle:
        got = run("XLA", lambda *x: run_stablehlo(text, x), inputs)
        compare("XLA", got, want, slack=MODEL_SLACK, spread=spread)
    _check_passes(converted, seed, inputs, want, MODEL_SLACK, spread)


def _xla_loses_nans(text: str, want: list[Array]) -> bool:
    """Whether XLA may drop NaNs: its windows do on CPUs (jaxlib 0.10.2), against
    StableHLO's semantics."""
    has_nans = any(is_float(x.dtype) and np.isnan(x).any() for x in want)
    return has_nans and "stablehlo.reduce_window" in text


def _xla_repeats_initials(module: ModuleOp) -> bool:
    """Whether a reduction has an initial value that is not the identity. XLA combines
    it with each part of the reduction; StableHLO leaves the result undefined. No value
    is the identity of subtraction."""
    return any(
        _numbers(initial) != {_IDENTITIES[kind]}
        for op in module.walk()
        if name_of(op) in ("stablehlo.reduce", "stablehlo.reduce_window")
        if (kind := name_of(next(iter(op.regions[0].block.ops)))) in _IDENTITIES
        for initial in op.operands[len(op.results) :]
    )


_IDENTITIES = {"stablehlo.add": 0, "stablehlo.multiply": 1, "stablehlo.subtract": None}


def _numbers(value: SSAValue) -> set[object]:
    """The elements of a constant; empty if `value` is not a dense constant."""
    dense = cast(Operation, value.owner).properties.get("value")
    values = isinstance(dense, DenseIntOrFPElementsAttr) and dense.get_values()
    return set(values or ())


def _check_passes(
    module: ModuleOp,
    seed: int,
    inputs: list[Array],
    want: list[Array],
    slack: float = 1,
    spread: Spread | None = None,
) -> None:
    random = Random(f"passes of {seed}")
    printed = Random(f"text of {seed}")
    level, generic = printed.choice(LEVELS), printed.random() < 0.5
    exact = True
    current = module
    if random.random() < 0.3:
        # `_inferred` draws for each operation. With a separate generator, a shrunk
        # program still gets the same passes.
        with suppress(Refused):
            current = _inferred(module, Random(f"sizes of {seed}"))
            compare("infer", reference(current, inputs), want)
    if level == "program":
        check_round_trip(current, generic)
    for promise in random.choices(PASSES, k=random.randrange(7)):
        pass_ = promise.make(random)
        options = random.getstate()
        try:
            after = applied(current, pass_)
        except Refused:
            continue
        exact &= promise.exact and (promise.keeps_order or slack == 1)
        got = reference(after, inputs)
        compare(pass_.name, got, want, slack=0 if exact else slack, spread=spread)
        if promise.idempotent and not _is_same(applied(after, pass_), after):
            raise Failure(f"{pass_.name} again", f"changes what it left: {pass_}")
        random.setstate(options)
        current = after
    if level == "passes":
        check_round_trip(current, generic)
    placed = applied(current, TGraphPlaceDevices(groups=GROUPS, default="cpu:0"))
    _check_storage(placed, Random(f"kernels of {seed}").choice(KERNELS))
    levels = [
        [place(random), TGraphBufferize()],
        [place(random), TGraphBufferize(), plan_memory(random)],
        [plan_pipeline(random)],
    ]
    passes = random.choice(levels)
    planned = applied(current, *passes)
    if level == "plan":
        check_round_trip(planned, generic)
    if not _plan(applied(planned, passes[-1])) <= _plan(planned):
        raise Failure(f"{passes[-1].name} again", f"changes its plan: {passes[-1]}")
    _check_figures(planned)
    _check_runs(planned, inputs, want, slack, spread)
    if _MLIR_OPT and random.random() < 0.05:
        _check_with_mlir(planned)
    if random.random() < 0.1:
        _check_saved(planned, inputs)


def _check_storage(placed: ModuleOp, kernels: str) -> None:
    """Checks that the bytes that analysis/storage predicts are those of the plan."""
    with stage("storage", may_refuse=True):
        predicted, needed = stored_bytes(placed, 16), lower_bounds(placed, 16)
        if predicted == needed and not has_streams(placed):
            predicted = predicted_arenas(placed, 16, kernels)
            needed = planned_arenas(placed, 16, kernels)
    if predicted != needed:
        raise Failure("storage", f"predicts {predicted}, but the plan has {needed}")


def _is_same(module: ModuleOp, other: ModuleOp) -> bool:
    """Whether the modules are equal except for names."""
    return module.is_structurally_equivalent(other)


def _is_single(value: SSAValue) -> bool:
    type = value.type
    if isinstance(type, ContainerType):
        type = type.get_element_type()
    return type == f32


def _plan(planned: ModuleOp) -> set[tuple[object, ...]]:
    """The pool, the offset and the size of each buffer. Names may change, and unused
    buffers may be erased."""
    return {(b["pool"], b["offset"], b["size"]) for b in buffers(planned) if b["size"]}


def _check_figures(planned: ModuleOp) -> None:
    for pool in tensorplan.report(planned)["pools"]:
        if not pool["lower_bound_bytes"] <= pool["bytes"]:
            raise Failure("report", f"a pool below its lower bound: {pool}")


def _check_runs(
    planned: ModuleOp,
    inputs: list[Array],
    want: list[Array],
    slack: float = 1,
    spread: Spread | None = None,
) -> None:
    """Compares two runs of each executor: only variables keep state between runs."""
    has_singles = any(
        _is_single(value) for op in planned.walk() for value in op.operands
    )
    for name, options in RUNS.items():
        with stage(f"compile for {name}"):
            executable = Executable(planned, **options)
        for _ in range(2):
            got = run(name, executable, inputs)
            compare(
                name, got, want, slack=slack, has_singles=has_singles, spread=spread
            )


def _check_saved(planned: ModuleOp, inputs: list[Array]) -> None:
    """Checks that a saved program computes the same bits. Programs with random bits
    can't be saved."""
    if any(isinstance(op, RngBitGeneratorOp) for op in planned.walk()):
        return
    with TemporaryDirectory() as folder, stage("save"):
        path = Path(folder, "program.plan")
        executable = Executable(planned)
        executable.save(path)
        loaded = tensorplan.load(path)
    for _ in range(2):
        want = run("a run", executable, inputs)
        compare("a saved program", run("a saved program", loaded, inputs), want)


def _inferred(module: ModuleOp, random: Random) -> ModuleOp:
    """Replaces some sizes by `?` and infers them again. Raises `Refused` if that is
    impossible."""
    partial = module.clone()
    for op in operations(partial):
        if isinstance(op, TensorOp) and random.random() < 0.5 and not op.regions:
            _forget(op, random)
    return applied(partial, TGraphInferShapes(require_static=True))


def _forget(op: TensorOp, random: Random) -> None:
    for result in op.results:
        if any(not isinstance(u.operation, TensorOp) for u in result.uses):
            continue
        known = cast(AnyTensor, result.type)
        sizes = [
            DYNAMIC_INDEX if random.random() < 0.5 else n for n in known.get_shape()
        ]
        unknown = TensorType(known.element_type, sizes, known.encoding)
        users = [use.operation for use in result.uses]
        value: SSAValue = Rewriter.replace_value_with_new_type(result, unknown)
        try:
            for user in (op, *users):
                user.verify()
        except VerifyException:
            Rewriter.replace_value_with_new_type(value, known)


def _check_with_mlir(planned: ModuleOp) -> None:
    """Lowers the plan to upstream dialects and verifies it with mlir-opt."""
    assert _MLIR_OPT is not None
    module = applied(planned, ConvertTGraphToLinalg(), PlanStripMemorySpaces())
    told = subprocess.run(
        [_MLIR_OPT, "--verify-each", "-o", "/dev/null"],
        input=text_of(module, generic=True),
        capture_output=True,
        text=True,
        timeout=60,
    )
    if told.returncode:
        raise Failure("mlir-opt", told.stderr.partition("\n")[0])


def check_memref_program(module: ModuleOp, seed: int) -> None:
    """Compares a program with its plan, byte by byte, on random paths."""
    random = Random(f"options of {seed}")
    driver.check(module)
    planned = applied(module, plan_memory(random))
    for text in (module, planned):
        check_round_trip(text, generic=random.random() < 0.5)
    _check_figures(planned)
    if not _is_same(applied(planned, plan_memory(random)), planned):
        raise Failure("plan-memory again", "changes its plan")
    function, of_plan = (
        next(op for op in m.ops if isinstance(op, FuncOp)) for m in (module, planned)
    )
    for path in range(6):
        before = memref_programs.run(function, path)
        after = memref_programs.run(of_plan, path)
        for number, bytes_ in before.items():
            for at, (x, y) in enumerate(zip(bytes_, after[number], strict=True)):
                if x is not None and x != y:
                    where = f"byte {at} of argument {number}"
                    raise Failure("bytes", f"another value: {where} on path {path}")


TARGETS: dict[str, Callable[[ModuleOp, int], None]] = {
    "tensor": check_tensor_program,
    "memref": check_memref_program,
    "models": check_model,
}
