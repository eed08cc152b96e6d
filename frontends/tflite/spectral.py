"""Converts Fourier transforms."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import StringAttr

from ...dialects.tgraph.base import ints
from ...dialects.tgraph.spectral import FftOp
from ..builder import shape_of
from ..operators import Value
from .node import Conversion, TFLiteNode


def _of_images(n: TFLiteNode) -> Sequence[Value]:
    """Transforms real images, which are cropped or zero-padded to the length."""
    x, length = n.value(0), n.known_integers(1)
    *batch, height, width = shape_of(x)
    cut = [min(size, new) for size, new in zip((height, width), length, strict=True)]
    x = n.slice(x, [0] * len(shape_of(x)), [*batch, *cut])
    more = [new - size for size, new in zip(cut, length, strict=True)]
    x = n.pad(x, [0] * len(shape_of(x)), [*[0] * len(batch), *more])
    return [n.emit(FftOp, x, fft_type=StringAttr("RFFT"), length=ints(length))]


CONVERSIONS: Mapping[str, Conversion] = {"RFFT2D": _of_images}
