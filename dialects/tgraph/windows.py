"""Windows that move over an operand, as in convolution and pooling.

Element k of the window in place p reads the operand's element

    (p * stride + k * window_dilation - low) / base_dilation

along each dimension. Where this is no index of the operand, the window reads padding or
a hole between elements.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, cast

from xdsl.utils.exceptions import VerifyException

from ..sizes.symbolic import maximum
from .base import Shape
from .partial import UNKNOWN, PartialTypes, Place
from .shaping import check_length


class WindowDimension(NamedTuple):
    """A window along one dimension: the fields of XLA's message `WindowDimension`."""

    size: int
    stride: int
    low: int
    high: int
    base_dilation: int = 1
    window_dilation: int = 1

    @property
    def reach(self) -> int:
        """The number of elements, holes included, from the first of the window to its
        last."""
        return dilated(self.size, self.window_dilation)

    def places(self, size: int) -> int:
        """The number of places of the window over an operand of `size` elements."""
        extent = self.low + dilated(size, self.base_dilation) + self.high
        places = (extent - self.reach) // self.stride + 1
        return cast(int, maximum(places, 0))

    def over(self, places: slice, size: int) -> tuple["WindowDimension", slice]:
        """The elements that the window meets in some of its places, over an operand of
        `size` elements without holes between them, and the window over only these."""
        first = places.start * self.stride - self.low
        last = (places.stop - 1) * self.stride - self.low + self.reach
        met = slice(min(max(first, 0), size), max(min(last, size), 0))
        return self._replace(low=met.start - first, high=last - met.stop), met


Window: TypeAlias = Sequence[WindowDimension]


def dilated(size: int, factor: int) -> int:
    """The extent of `size` elements with `factor - 1` holes between them."""
    return (size - 1) * factor + 1 if size else 0


def window_of(
    rank: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
) -> Window:
    """The window over `rank` dimensions. Without dilations, there are no holes. Raises
    `VerifyException` if a list does not have one valid number for each dimension."""
    ones = (1,) * rank
    columns = {
        "window": sizes,
        "window_strides": strides,
        "padding_low": low,
        "padding_high": high,
        "base_dilation": ones if base_dilations is None else base_dilations,
        "window_dilation": ones if window_dilations is None else window_dilations,
    }
    for name, values in columns.items():
        check_length(name, values, rank)
        if not name.startswith("padding") and min(values, default=1) < 1:
            raise VerifyException(f"{name} is {list(values)}, expected 1 or more")
    return [WindowDimension(*each) for each in zip(*columns.values(), strict=True)]


def places_of(shape: Shape, window: Window) -> list[int]:
    """The number of places of `window` over an operand of `shape`, by dimension."""
    return [dim.places(size) for size, dim in zip(shape, window, strict=True)]


def refine_places(
    types: PartialTypes,
    sources: Sequence[Place],
    targets: Sequence[Place],
    window: Window,
) -> None:
    """Applies `WindowDimension.places` in both directions; backward only for stride 1,
    since the operand size is not unique otherwise."""
    for source, target, dim in zip(sources, targets, window, strict=True):
        size = types.size(source)
        if size != UNKNOWN:
            types.set_size(target, dim.places(size))
        elif dim.stride == 1 and (count := types.size(target)) > 0:
            extent = count + dim.reach - 1 - dim.low - dim.high
            types.set_size(source, extent and (extent - 1) // dim.base_dilation + 1)
