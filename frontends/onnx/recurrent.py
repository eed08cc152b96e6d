from collections.abc import Mapping

from tensorplan.frontends.onnx.node import Conversion

CONVERSIONS: Mapping[str, Conversion] = {}
