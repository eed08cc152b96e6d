"""The kernel of Fourier transforms, one dimension after the other."""

from collections.abc import Sequence

from ....dialects.dtypes import Array
from ....dialects.tgraph.spectral import FftOp
from ...calls import Call
from ...pool import Scratch
from .base import kernel
from .functions import transform


@kernel(FftOp)
def fft(
    op: FftOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    """Transforms the last dimension first; `IRFFT` transforms it last."""
    (x,), (out,) = inputs, outs
    kind, length = op.fft_type.data, op.length.get_values()
    axes = range(-len(length), 0)
    if kind != "IRFFT":
        others = "ifft" if kind == "IFFT" else "fft"
        first: Call = (transform, (kind.lower(), x, out, -1))
        return [first, *((transform, (others, out, out, axis)) for axis in axes[:-1])]
    buffer = x if len(length) == 1 else scratch.take(x.shape, x.dtype)
    calls: list[Call] = []
    for axis in axes[:-1]:
        calls.append((transform, ("ifft", x, buffer, axis)))
        x = buffer
    return [*calls, (transform, ("irfft", x, out, -1))]
