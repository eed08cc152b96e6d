"""Networks quantized by onnxruntime: bytes of their arenas, values, and CPU time.

    python benchmarks/quantized.py              # MobileNetV2, keywords, a block of BERT
    python benchmarks/quantized.py mobilenet

A row for each way of quantizing shows the bytes of the arena; its share of the float
model's arena, planned as usual and without tiles; the largest difference from
onnxruntime's values, relative to the largest value; and the CPU milliseconds of a run
in tensorplan and onnxruntime, which alternate on one thread. The session option
`session.qdqisint8allowed` makes onnxruntime compute signed activations in integers.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

import tensorplan
from tensorplan.passes import driver
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.tile import TGraphTile

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
models: Any = import_module("quantized_models")
ort: Any = import_module("onnxruntime")

ROUNDS = 15


def session(data: bytes) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def milliseconds(*runs: Callable[[], Any]) -> list[float]:
    """The minimum CPU milliseconds of each of `runs`, which alternate."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for run, found in zip(runs, times, strict=True):
            start = process_time()
            run()
            found.append(1e3 * (process_time() - start))
    return [min(found) for found in times]


def measured(data: bytes, x: Any) -> tuple[int, float, list[float]]:
    """The bytes of the arena, the largest relative difference from onnxruntime's
    values, and the milliseconds of tensorplan and onnxruntime."""
    planned = tensorplan.plan(tensorplan.from_onnx(data))
    run, peer = tensorplan.compile(planned, threads=1), session(data)
    ours, theirs = partial(run, x), partial(peer.run, None, {"x": x})
    [got], [want] = ours(), theirs()
    difference = np.abs(got - want).max() / np.abs(want).max()
    [pool] = tensorplan.report(planned)["pools"]
    return pool["bytes"], difference, milliseconds(ours, theirs)


def bytes_without_tiles(data: bytes) -> int:
    model = tensorplan.from_onnx(data)
    passes = [p for p in PlanPipeline().passes() if not isinstance(p, TGraphTile)]
    driver.run(tensorplan.context(), model.module, passes)
    [pool] = tensorplan.report(model)["pools"]
    return pool["bytes"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(models.NETWORKS))
    parser.add_argument("--opset", type=int, default=17)
    options = parser.parse_args()
    columns = f"{'arena':>12}{'of float':>10}{'untiled':>9}"
    columns += f"{'difference':>12}{'ms':>8}{'theirs':>8}"
    print(f"{'model':10}{'quantized':18}{columns}")
    for name in options.networks:
        model = models.NETWORKS[name](options.opset, large=True)
        x = models.images(model, 9)
        whole = untiled = 0
        for way in ("float", *models.WAYS):
            data = model.SerializeToString()
            if way != "float":
                with TemporaryDirectory() as folder:
                    data = models.quantized(model, way, Path(folder))
            bytes, difference, times = measured(data, x)
            if way == "float":
                whole, untiled = bytes, bytes_without_tiles(data)
            row = f"{bytes:12,}{bytes / whole:10.0%}{bytes / untiled:9.0%}"
            row += f"{difference:12.1e}"
            print(f"{name:10}{way:18}{row}" + "".join(f"{t:8.2f}" for t in times))


if __name__ == "__main__":
    main()
