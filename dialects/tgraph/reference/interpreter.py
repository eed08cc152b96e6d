"""The reference interpreter: runs level 1 in plain NumPy, in xDSL's framework.

It is the oracle for all faster implementations. Each operation is written in the
simplest way, returns new arrays, and shares nothing with the kernels. All values are
kept until the end of the run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)

from ...diagnostics import LocatedError
from ...dtypes import Array
from ...memory import is_memref
from .. import bodies, matrices, random
from ..base import TensorOp
from ..callbacks import Callbacks, HostCallbackOp, function_of
from ..signature import check_one_block, signature
from ..structure import (
    AssignOp,
    FusionOp,
    IfOp,
    OnDeviceOp,
    ReadOp,
    WhileOp,
    YieldOp,
)
from .bodies import reduce_by, sort
from .evaluation import EVALUATIONS
from .matrices import evaluate_matrices
from .random import rng_bit_generator
from .results import Evaluate


def run_reference(
    module: ModuleOp,
    inputs: Sequence[object],
    entry: str = "main",
    *,
    listeners: Sequence[Interpreter.Listener] = (),
    callbacks: Callbacks = (),
) -> list[Array]:
    """The results of `entry` for `inputs` (an initial value for each variable).

    Neither the inputs nor the variables' initial arrays are changed. The order of
    inputs and results is that of `tensorplan.dialects.tgraph.signature`. `listeners`
    get the operands and the results of each operation. `callbacks` are the functions
    that `tgraph.host_callback` calls, by number.

    Raises `LocatedError` for IR that is not tgraph on tensors, and `ValueError` or
    `TypeError` for invalid inputs.
    """
    # This loads all of xDSL's interpreters, which `evaluate` does not need.
    from xdsl.interpreters.func import FuncFunctions

    program = signature(module, entry)
    _check_supported(module)
    check_one_block(program.function)
    if len(inputs) != len(program.inputs):
        raise ValueError(
            f"the number of inputs is {len(inputs)}, expected {len(program.inputs)}"
        )
    arguments: list[Array | Variable] = []
    for index, (given, slot) in enumerate(zip(inputs, program.inputs, strict=True)):
        array = np.array(given, dtype=None if hasattr(given, "dtype") else slot.dtype)
        if array.dtype != slot.dtype:
            raise TypeError(
                f"input {index} has elements of type {array.dtype}, "
                f"expected {slot.dtype}"
            )
        if array.shape != slot.shape:
            raise ValueError(
                f"input {index} has shape {array.shape}, expected {slot.shape}"
            )
        arguments.append(Variable(array) if slot.is_variable else array)

    interpreter = Interpreter(module, listeners=tuple(listeners))
    interpreter.register_implementations(TGraphFunctions(callbacks))
    interpreter.register_implementations(FuncFunctions())
    with np.errstate(all="ignore"):
        returned = interpreter.call_op(program.function, tuple(arguments))

    terminator = program.function.body.block.last_op
    assert terminator is not None
    values = dict(zip(terminator.operands, returned, strict=True))
    results: list[Array] = []
    for result, holder in zip(program.results, program.holders, strict=True):
        if result.input is None:
            results.append(values[holder])
        else:
            variable = arguments[result.input]
            assert isinstance(variable, Variable)
            results.append(variable.contents)
    return results


@dataclass
class Variable:
    """The value of a `!tgraph.variable`. Assignments replace `contents`, and never
    write into it."""

    contents: Array


def _check_supported(module: ModuleOp) -> None:
    known = (
        bodies.ReduceByOp,
        bodies.SortOp,
        HostCallbackOp,
        matrices.MatrixOp,
        random.RngBitGeneratorOp,
        ModuleOp,
        FuncOp,
        CallOp,
        ReturnOp,
        ReadOp,
        AssignOp,
        OnDeviceOp,
        FusionOp,
        IfOp,
        WhileOp,
        YieldOp,
    )
    for op in module.walk():
        if not isinstance(op, known) and type(op) not in EVALUATIONS:
            raise LocatedError(
                f"{op.name} is not supported by the reference interpreter, which runs "
                "tgraph on tensors",
                op,
            )
        if isinstance(op, TensorOp) and any(is_memref(v) for v in op.operands):
            raise LocatedError(
                f"{op.name} is on memrefs, expected tensors: the reference interpreter "
                "runs level 1",
                op,
            )


def _method(evaluate: Evaluate) -> Callable[..., PythonValues]:
    def run(
        self: InterpreterFunctions,
        interpreter: Interpreter,
        op: TensorOp,
        args: PythonValues,
    ) -> PythonValues:
        count = len(op.inputs)
        return _store([np.asarray(evaluate(op, *args[:count]))], args[count:])

    return run


def _matrices(
    self: InterpreterFunctions,
    interpreter: Interpreter,
    op: matrices.MatrixOp,
    args: PythonValues,
) -> PythonValues:
    count = len(op.inputs)
    return _store(evaluate_matrices(op, args[:count]), args[count:])


def _store(results: Sequence[Array], destinations: PythonValues) -> PythonValues:
    """Stores results in the variables that are their destinations; returns them."""
    for result, variable in zip(results, destinations, strict=False):
        cast(Variable, variable).contents = result
    return tuple(results)


class _StructureFunctions(InterpreterFunctions):
    def __init__(self, callbacks: Callbacks = ()):
        self._callbacks = callbacks

    @impl(HostCallbackOp)
    def run_callback(
        self, interpreter: Interpreter, op: HostCallbackOp, args: PythonValues
    ) -> PythonValues:
        count, function = len(op.inputs), function_of(op, self._callbacks)
        results = function(*(x.copy() for x in args[:count]))
        return _store([np.asarray(result) for result in results], args[count:])

    @impl(ReadOp)
    def run_read(
        self, interpreter: Interpreter, op: ReadOp, args: PythonValues
    ) -> PythonValues:
        return (args[0].contents,)

    @impl(AssignOp)
    def run_assign(
        self, interpreter: Interpreter, op: AssignOp, args: PythonValues
    ) -> PythonValues:
        variable, value = args
        variable.contents = value
        return ()

    @impl(OnDeviceOp)
    def run_on_device(
        self, interpreter: Interpreter, op: OnDeviceOp, args: PythonValues
    ) -> PythonValues:
        return args

    @impl(FusionOp)
    def run_fusion(
        self, interpreter: Interpreter, op: FusionOp, args: PythonValues
    ) -> PythonValues:
        count = len(op.inputs)
        results = interpreter.run_ssacfg_region(op.body, args[:count], op.name)
        return _store(results, args[count:])

    @impl(bodies.ReduceByOp)
    def run_reduce_by(
        self, interpreter: Interpreter, op: bodies.ReduceByOp, args: PythonValues
    ) -> PythonValues:
        count = len(op.inputs)
        return _store(reduce_by(op, args[:count]), args[count:])

    @impl(bodies.SortOp)
    def run_sort(
        self, interpreter: Interpreter, op: bodies.SortOp, args: PythonValues
    ) -> PythonValues:
        count = len(op.inputs)
        return _store(sort(op, args[:count]), args[count:])

    @impl(random.RngBitGeneratorOp)
    def run_rng(
        self, interpreter: Interpreter, op: random.RngBitGeneratorOp, args: PythonValues
    ) -> PythonValues:
        return _store(rng_bit_generator(op, args[0]), args[1:])

    @impl(WhileOp)
    def run_while(
        self, interpreter: Interpreter, op: WhileOp, args: PythonValues
    ) -> PythonValues:
        count = len(op.res)
        carried = [Variable(value) for value in args[:count]]
        inside = (*carried, *args[count:])
        while interpreter.run_ssacfg_region(op.condition, inside, op.name)[0]:
            interpreter.run_ssacfg_region(op.body, inside, op.name)
        return tuple(variable.contents for variable in carried)

    @impl(IfOp)
    def run_if(
        self, interpreter: Interpreter, op: IfOp, args: PythonValues
    ) -> PythonValues:
        predicate, *inside = args
        region = op.on_true if predicate else op.on_false
        return interpreter.run_ssacfg_region(region, tuple(inside), op.name)

    @impl_terminator(YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()


TGraphFunctions: type[Any] = register_impls(
    type(
        "TGraphFunctions",
        (_StructureFunctions,),
        {op.name: impl(op)(_method(evaluate)) for op, evaluate in EVALUATIONS.items()}
        | {op.name: impl(op)(_matrices) for op in matrices.MATRIX_OPS},
    )
)
