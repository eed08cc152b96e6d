"""Compares layouts of views with NumPy's strides."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from tensorplan.analysis.layout import Layout
from tensorplan.dialects.strides import contiguous_strides

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def strided(layout: Layout, buffer: np.ndarray) -> np.ndarray:
    strides = [s * buffer.itemsize for s in layout.strides]
    return as_strided(buffer[layout.offset :], layout.shape, strides)


@given(shapes, st.data())
def test_views_equal_those_of_numpy(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    buffer = np.arange(int(np.prod(shape)), dtype=np.int32)
    array, layout = buffer.reshape(shape), Layout.contiguous(shape)
    for _ in range(data.draw(st.integers(1, 4))):
        rank = len(layout.shape)
        match data.draw(st.sampled_from(["transpose", "reverse", "slice", "reshape"])):
            case "transpose":
                order = data.draw(st.permutations(range(rank)))
                array, layout = array.transpose(order), layout.transposed(order)
            case "reverse":
                dims = [d for d in range(rank) if data.draw(st.booleans())]
                array, layout = np.flip(array, tuple(dims)), layout.reversed(dims)
            case "slice":
                cuts = [
                    (data.draw(st.integers(0, n - 1)), n, data.draw(st.integers(1, 2)))
                    for n in layout.shape
                ]
                array = array[tuple(slice(*cut) for cut in cuts)]
                layout = layout.sliced(
                    [c[0] for c in cuts], [c[2] for c in cuts], array.shape
                )
            case _:
                sizes = data.draw(st.permutations(layout.shape))
                sizes = (
                    (*sizes[:-2], int(np.prod(sizes[-2:]))) if rank > 1 else (1, *sizes)
                )
                reshaped = layout.reshaped(sizes)
                if reshaped is None:
                    # NumPy has to copy as well.
                    assert not np.shares_memory(array.reshape(sizes), buffer)
                    continue
                array, layout = array.reshape(sizes), reshaped
        assert layout.shape == array.shape
        np.testing.assert_array_equal(strided(layout, buffer), array)
        assert layout.first == array.min()


@given(shapes, st.data())
def test_broadcast(shape: tuple[int, ...], data: st.DataObject) -> None:
    buffer = np.arange(int(np.prod(shape)), dtype=np.int32)
    rank = len(shape) + data.draw(st.integers(0, 2))
    dims = data.draw(st.permutations(range(rank)))[: len(shape)]
    target = [data.draw(st.integers(1, 3)) for _ in range(rank)]
    for size, dim in zip(shape, dims, strict=True):
        target[dim] = size if size > 1 else target[dim]
    layout = Layout.contiguous(shape).broadcast(tuple(target), dims)
    spread = np.ones(rank, dtype=int)
    spread[list(dims)] = shape
    moved = buffer.reshape(shape).transpose(np.argsort(dims)).reshape(spread)
    np.testing.assert_array_equal(
        strided(layout, buffer), np.broadcast_to(moved, target)
    )


def test_contiguous() -> None:
    assert contiguous_strides((2, 3, 4)) == (12, 4, 1)
    assert contiguous_strides(()) == ()
    assert Layout((1, 3), (99, 1)).is_contiguous
    assert not Layout((2, 3), (1, 2)).is_contiguous
    assert not Layout((2,), (1,), 1).is_contiguous


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), st.data())
def test_layouts_that_are_apart_share_no_element(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    """Slices that are apart share no element. With step 1, the converse holds, too."""
    buffer = np.arange(int(np.prod(shape)), dtype=np.int32)
    steps = data.draw(st.integers(1, 2))

    def cut() -> tuple[Layout, np.ndarray]:
        starts = [data.draw(st.integers(0, n - 1)) for n in shape]
        sizes = [
            data.draw(st.integers(1, -(-(n - start) // steps)))
            for n, start in zip(shape, starts, strict=True)
        ]
        layout = Layout.contiguous(shape).sliced(
            starts, [steps] * len(shape), tuple(sizes)
        )
        return layout, strided(layout, buffer)

    (one, a), (other, b) = cut(), cut()
    if one.is_apart(other):
        assert not np.intersect1d(a, b).size
    elif steps == 1:
        assert np.intersect1d(a, b).size
