"""Writes tests/models/onnx/: models exported by PyTorch, with inputs and outputs.

    python tests/support/generate_onnx_exports.py

Needs torch and onnxscript, which the tests of these files do not need. Weights are
random and widths small, so each file is below 200 kB. For each `NAME.onnx`, `NAME.npz`
has the arrays `input_0`, ... and `output_0`.
"""

# pyright: reportMissingImports=false

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import torch
import torch_models as models

FOLDER = Path(__file__).parents[1] / "models" / "onnx"

SMALL = {
    "resnet18": lambda: (models.resnet18(3, 4), (models.image(1, 32),)),
    "gpt2_block": lambda: (models.GPT2Block(32), (torch.randn(1, 6, 32),)),
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    models.MODELS.update(SMALL)
    for name in models.MODELS:
        module, inputs = models.make(name)
        if name in ("gpt2", "lstm"):
            continue  # large, because exports unroll them
        path = FOLDER / f"{name}.onnx"
        torch.onnx.export(module, inputs, path, dynamo=True, external_data=False)
        model = onnx.load(path)
        for node in (model.graph, *model.graph.node, *model.graph.value_info):
            node.ClearField("metadata_props")  # stack traces with local paths
            node.ClearField("doc_string")
        onnx.save(model, path)
        arrays = {f"input_{k}": np.array(x) for k, x in enumerate(inputs)}
        output = module(*inputs).detach().numpy()
        arrays["output_0"] = output
        cast(Any, np).savez_compressed(FOLDER / f"{name}.npz", **arrays)
        print(f"{name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
