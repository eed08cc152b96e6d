"""`tgraph-gradient` compared with NNVM's Gradient pass.

From the same heads, tensorplan's gradient graph must compute the same values as a
vector's, with no more operations. `FORWARD` and `EXPECTED` define the operations of the
vectors: `split2` returns its operand twice (its gradient is the sum), `nograd` has no
rule, `stop` has a zero gradient, and the gradient of `fwd` reads only the head.

The original refuses inputs that the heads do not depend on; tensorplan returns zeros,
with a remark. If a value has several heads, the original uses only the last one;
tensorplan sums them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, UnitAttr, f64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
)

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph import elementwise as ew
from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.dialects.tgraph.differentiation import MIRROR, RECOMPUTED, GradientOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.shaping import ReshapeOp
from tensorplan.dialects.tgraph.structure import FusionOp, YieldOp
from tensorplan.passes import driver
from tensorplan.passes.tgraph.gradient import TGraphGradient

Json = Mapping[str, Any]

TYPE = TensorType(f64, (3,))

FORWARD: Mapping[str, type[TensorOp]] = {
    "mul": ew.MultiplyOp,
    "exp": ew.ExponentialOp,
    "add": ew.AddOp,
    "sub": ew.SubtractOp,
    "split2": ReshapeOp,
    "stop": ew.FloorOp,
    "nograd": FusionOp,
    "fwd": ew.NegateOp,
}

EXPECTED: Mapping[str, Callable[..., Any]] = {
    "mul": np.multiply,
    "exp": np.exp,
    "add": np.add,
    "sub": np.subtract,
    "elemwise_sum": lambda *terms: sum(terms),
    "split2": lambda x: (x, x),
    "stop": np.floor,
    "nograd": np.positive,
    "fwd": np.negative,
    "_backward_op": np.negative,
    "copy": np.positive,
    "zeros": lambda: np.zeros(3),
    "zeros_like": np.zeros_like,
}


@pytest.mark.vectors("nnvm_gradient")
def test_gradient(vector: Json) -> None:
    unknown = {n["op"] for n in vector["graph"]["nodes"]} - {None, *FORWARD}
    if unknown:
        pytest.skip(f"says nothing of what {', '.join(sorted(unknown))} computes")
    module = program(vector)
    variables = [n["name"] for n in vector["graph"]["nodes"] if n["op"] is None]
    rng = np.random.default_rng(0)
    inputs = dict(zip(variables, rng.standard_normal((len(variables), 3)), strict=True))
    expected = vector["expected"]
    error = expected.get("error", "")
    if error and "unreachable" not in error:
        with pytest.raises(LocatedError, match="not differentiable"):
            driver.run(tensorplan.context(), module, [TGraphGradient()])
        return
    driver.run(tensorplan.context(), module, [TGraphGradient()])
    got = run_reference(module, list(inputs.values()))
    if error:
        assert any(not gradient.any() for gradient in got)
        return
    heads = vector["config"]["out_grads"]
    ys = vector["config"]["ys"]
    want = evaluated(expected, inputs)
    if len({*ys}) < len(ys):  # the sum over all heads, as if each were the last
        last = [inputs | {heads[-1]: inputs[head]} for head in heads]
        want = np.sum([evaluated(expected, i) for i in last], axis=0)
    np.testing.assert_allclose(got, want, rtol=1e-12)

    repeated = [n for n in expected["nodes"] if n["name"].endswith("_mirror")]
    assert sum(RECOMPUTED in op.attributes for op in module.walk()) == len(repeated)
    simplify = [CanonicalizePass(), CommonSubexpressionElimination()]
    driver.run(tensorplan.context(), module, simplify)
    for name in ("mul", "exp"):
        ours = sum(type(op) is FORWARD[name] for op in module.walk())
        assert ours <= sum(node["op"] == name for node in expected["nodes"])


def program(vector: Json) -> ModuleOp:
    """A function from all variables to the gradients that the vector asks for."""
    config = vector["config"]
    block = Block()
    values: dict[str, list[SSAValue]] = {}
    for node in vector["graph"]["nodes"]:
        if node["op"] is None:
            values[node["name"]] = [block.insert_arg(TYPE, len(block.args))]
            continue
        inputs = [values[name][index] for name, index, *_ in node["inputs"]]
        results: list[SSAValue] = []
        for _ in range(node.get("num_outputs", 1)):
            op = operation(FORWARD[node["op"]], inputs)
            if "mirror" in config["flags"] and node.get("attrs", {}).get("mirror"):
                op.attributes[MIRROR] = UnitAttr()
            block.add_op(op)
            results += op.results
        values[node["name"]] = results

    def entries(names: Sequence[str]) -> list[SSAValue]:
        split = [name.partition(".") for name in names]
        return [values[name][int(index or 0)] for name, _, index in split]

    xs = entries(config["xs"])
    gradient = GradientOp(entries(config["ys"]), xs, entries(config["out_grads"]))
    block.add_ops([gradient, ReturnOp(*gradient.res)])
    types = FunctionType.from_lists(block.arg_types, [TYPE] * len(xs))
    return ModuleOp([FuncOp("main", types, Region(block))])


def operation(cls: type[TensorOp], inputs: Sequence[SSAValue]) -> Operation:
    if cls is not FusionOp:
        return cls(inputs, result_types=(TYPE,))
    body = Block(arg_types=[TYPE] * len(inputs))
    body.add_op(YieldOp(body.args[0]))
    return FusionOp(inputs, Region(body), result_types=(TYPE,))


def evaluated(graph: Json, inputs: Mapping[str, Any]) -> list[Any]:
    """The results of a vector's gradient graph."""
    values: list[tuple[Any, ...]] = []
    for node in graph["nodes"]:
        if node["op"] is None:
            values.append((inputs[node["name"]],))
            continue
        result = EXPECTED[node["op"]](*(values[n][k] for n, k, *_ in node["inputs"]))
        values.append(result if isinstance(result, tuple) else (result,))
    return [values[n][k] for n, k in graph["outputs"]]
