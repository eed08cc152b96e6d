"""Records the dumps in this folder: `python tests/foreign/iree/record.py`. Needs JAX,
onnx, and iree-base-compiler with its tools on the PATH.

The recorded dumps are of iree-base-compiler 3.13.0rc20261016, without kernels, which
the audit does not read. `shift` copies a part of a value to another part of it; `step`
is a training step; `loop` has a loop around a branch; `net` is imported from ONNX.
"""

import re
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

FOLDER = Path(__file__).parent
COMMAND = """iree-compile --iree-hal-target-device=local
    --iree-hal-local-target-device-backends=llvm-cpu --compile-to=stream -o /dev/null
    --mlir-print-ir-before=iree-stream-schedule-allocation
    --mlir-print-ir-after=iree-stream-layout-slices --mlir-disable-threading
    --mlir-print-op-generic --mlir-print-debuginfo --mlir-print-local-scope
    --mlir-elide-elementsattrs-if-larger=16""".split()
KERNEL = re.compile(
    r'^  "stream\.executable"\(.*?^  \}\)[^\n]*\n', re.DOTALL | re.MULTILINE
)
BEFORE = "// -----// IR Dump Before"


def shift(x: Any) -> Any:
    """openxla/xla issue 49176: updates an array by a shifted slice of itself."""
    base = x + 1
    return base.at[1:].set(base[:-1]).reshape((1, *base.shape))


def loss(weights: Any, x: Any, y: Any) -> Any:
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return jnp.mean((x - y) ** 2)


def step(weights: Any, x: Any, y: Any) -> Any:
    value, gradients = jax.value_and_grad(loss)(weights, x, y)
    return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], value


def loop(x: Any, y: Any, n: Any) -> Any:
    def body(i: Any, carried: Any) -> Any:
        total, last = carried
        new = jax.lax.cond(i > n, lambda v: v + 1, lambda v: v @ v, last)
        return total.at[i].set(new[0]), new

    return jax.lax.fori_loop(0, 4, body, (x, y))


def net(path: Path) -> None:
    random = np.random.default_rng(0)
    shapes = {"w1": (8, 3, 3, 3), "w2": (8, 8, 3, 3), "w3": (128, 10), "b3": (10,)}
    weights = [
        numpy_helper.from_array(random.normal(size=shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1] * 4),
        helper.make_node("Add", ["c", "a"], ["d"]),
        helper.make_node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["g"]),
        helper.make_node("Softmax", ["g"], ["y"]),
    ]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 3, 8, 8]), ("y", [1, 10]))
    )
    graph = helper.make_graph(nodes, "main", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def record(name: str, model: Path, *options: str) -> None:
    process = run([*COMMAND, str(model), *options], capture_output=True, text=True)
    text = process.stderr[process.stderr.index(BEFORE) :]
    text = KERNEL.sub("", text).replace(__file__, "record.py")
    text = text.replace(f"{model}", model.name)
    (FOLDER / f"{name}.iree.mlir").write_text(text)


if __name__ == "__main__":
    x, y = jnp.zeros((8, 16)), jnp.ones((16, 16))
    programs = {
        "shift": (shift, (x,)),
        "step": (step, ([y] * 3, x, x)),
        "loop": (loop, (x, y, 2)),
    }
    with TemporaryDirectory() as folder:
        model = Path(folder) / "model.mlir"
        for name, (function, arguments) in programs.items():
            lowered = jax.jit(function).lower(*arguments)
            model.write_text(lowered.as_text(debug_info=True))
            record(name, model, "--iree-input-type=stablehlo")
        net(Path(folder) / "net.onnx")
        run(["iree-import-onnx", f"{folder}/net.onnx", "-o", model], check=True)
        record("net", model)
