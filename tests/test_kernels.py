"""Compares every kernel with the reference: random shapes, attributes and layouts."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from one_op import TYPES, numbers, operation, reference, tensor
from xdsl.context import Context
from xdsl.dialects.builtin import (
    Builtin,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.parser import Parser

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array, is_float
from tensorplan.dialects.strides import reshaped_strides
from tensorplan.dialects.tgraph import (
    elementwise,
    indexing,
    matrices,
    reducing,
    shaping,
    spectral,
)
from tensorplan.dialects.tgraph.base import TensorOp, ints
from tensorplan.dialects.tgraph.formulas import FORMULAS
from tensorplan.dialects.tgraph.structure import FusionOp, YieldOp
from tensorplan.dialects.tgraph.windows import WindowDimension
from tensorplan.runtime.backends.arrays import tiles, try_reshape
from tensorplan.runtime.backends.dispatch import compile_call
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.backends.native import planes, stencils, taps, windows
from tensorplan.runtime.backends.numpy.base import KERNELS, ufunc_call
from tensorplan.runtime.backends.numpy.forms import FORMS, TILE
from tensorplan.runtime.backends.numpy.reducing import spans
from tensorplan.runtime.pool import Scratch

Rng = np.random.Generator


@pytest.fixture(autouse=True, params=["numpy", "native"])
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs every test with NumPy's kernels and with native code."""
    if request.param == "numpy":
        monkeypatch.setattr(llvm, "is_available", lambda: False)
    elif not llvm.is_available():
        pytest.skip("llvmlite is not installed")


def run(op: TensorOp, inputs: Sequence[Array], out: Array) -> None:
    """Runs the calls twice. Their results must not depend on previous contents of `out`
    or of scratch memory."""
    scratch = Scratch("cpu:0")
    compile_call(op, inputs, [out], scratch)
    calls = compile_call(op, inputs, [out], scratch)
    saved = [x.copy() for x in inputs]
    for _ in range(2):
        for x, old in zip(inputs, saved, strict=True):
            if np.may_share_memory(x, out):
                x[...] = old
        scratch.pool.memory.fill(0xFF)
        with np.errstate(all="ignore"):
            for function, arguments in calls:
                function(*arguments)


def assert_close(got: Array, want: Array) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if not is_float(got.dtype):
        np.testing.assert_array_equal(got, want)
        return
    tolerance = {2: 2e-2, 4: 1e-5, 8: 1e-12}[got.itemsize]
    got, want = got.astype(np.float64), want.astype(np.float64)
    scale = np.max(np.abs(want), initial=1, where=np.isfinite(want))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


def check(
    rng: Rng,
    cls: type[TensorOp],
    inputs: Sequence[Array],
    properties: dict[str, Attribute] | None = None,
    result: TensorType[Attribute] | None = None,
    region: Callable[[], Region] | None = None,
) -> None:
    """Asserts that the kernel computes the reference's values from any layout, from
    contiguous inputs, and in place."""
    types = [tensor(x.shape, x.dtype.name) for x in inputs]
    regions = [region() if region else None for _ in range(2)]
    op = operation(cls, types, properties or {}, result, region=regions[0])
    want = reference(op, inputs)
    in_place = operation(
        cls, types, properties or {}, result, on_memrefs=True, region=regions[1]
    )
    out = numbers(rng, want.shape, want.dtype.name)
    run(in_place, inputs, out)
    assert_close(out, want)
    plain = np.empty(want.shape, want.dtype)
    run(in_place, [np.ascontiguousarray(x).reshape(x.shape) for x in inputs], plain)
    assert_close(plain, want)
    for index in in_place.overwritable():
        taken = inputs[index].copy()
        if taken.dtype.itemsize == want.dtype.itemsize:
            same = taken.view(want.dtype)
            run(in_place, [*inputs[:index], taken, *inputs[index + 1 :]], same)
            assert_close(same, want)


def shape_of(rng: Rng, most: int = 4, largest: int = 5) -> tuple[int, ...]:
    return tuple(map(int, rng.integers(1, largest + 1, int(rng.integers(0, most + 1)))))


def integers(rng: Rng, low: int, high: int, count: int) -> list[int]:
    """`count` numbers from `low` to `high`, both included."""
    return list(map(int, rng.integers(low, high + 1, count)))


FLOATS = ("float64", "float32", "float16", "bfloat16")
INTS = ("int8", "uint8", "int32", "int64")

UNARY: dict[type[TensorOp], Sequence[str]] = {
    elementwise.AbsOp: (*FLOATS, "int32"),
    elementwise.CbrtOp: FLOATS,
    elementwise.CeilOp: FLOATS,
    elementwise.CosineOp: FLOATS,
    elementwise.CountLeadingZerosOp: INTS,
    elementwise.ErfOp: FLOATS,
    elementwise.ErfcOp: FLOATS,
    elementwise.ExponentialMinusOneOp: FLOATS,
    elementwise.ExponentialOp: FLOATS,
    elementwise.FloorOp: FLOATS,
    elementwise.IsFiniteOp: FLOATS,
    elementwise.LogOp: FLOATS,
    elementwise.LogPlusOneOp: FLOATS,
    elementwise.LogisticOp: FLOATS,
    elementwise.NegateOp: (*FLOATS, "int32"),
    elementwise.NotOp: ("bool", *INTS),
    elementwise.PopcntOp: INTS,
    elementwise.RoundNearestAfzOp: FLOATS,
    elementwise.RoundNearestEvenOp: FLOATS,
    elementwise.RsqrtOp: FLOATS,
    elementwise.SignOp: (*FLOATS, "int32"),
    elementwise.SineOp: FLOATS,
    elementwise.SqrtOp: FLOATS,
    elementwise.TanOp: FLOATS,
    elementwise.TanhOp: FLOATS,
}
BINARY: dict[type[TensorOp], Sequence[str]] = {
    elementwise.AddOp: ("bool", *FLOATS, *INTS),
    elementwise.AndOp: ("bool", *INTS),
    elementwise.Atan2Op: FLOATS,
    elementwise.DivideOp: (*FLOATS, *INTS),
    elementwise.MaximumOp: ("bool", *FLOATS, *INTS),
    elementwise.MinimumOp: ("bool", *FLOATS, *INTS),
    elementwise.MultiplyOp: ("bool", *FLOATS, *INTS),
    elementwise.OrOp: ("bool", *INTS),
    elementwise.PowerOp: (*FLOATS, "int32"),
    elementwise.RemainderOp: (*FLOATS, *INTS),
    elementwise.ShiftLeftOp: INTS,
    elementwise.ShiftRightArithmeticOp: INTS,
    elementwise.ShiftRightLogicalOp: INTS,
    elementwise.SubtractOp: (*FLOATS, *INTS),
    elementwise.XorOp: ("bool", *INTS),
}


def cases(table: dict[type[TensorOp], Sequence[str]]) -> list[object]:
    return [
        pytest.param(cls, dtype, id=f"{cls.name.removeprefix('tgraph.')}-{dtype}")
        for cls, dtypes in table.items()
        for dtype in dtypes
    ]


@pytest.mark.parametrize(("cls", "dtype"), cases(UNARY))
def test_unary(cls: type[TensorOp], dtype: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(4):
        result = tensor(shape := shape_of(rng), "bool")
        x = numbers(rng, shape, dtype)
        check(rng, cls, [x], {}, result if cls is elementwise.IsFiniteOp else None)


@pytest.mark.parametrize(("cls", "dtype"), cases(BINARY))
def test_binary(cls: type[TensorOp], dtype: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(4):
        shape = shape_of(rng)
        check(rng, cls, [numbers(rng, shape, dtype) for _ in range(2)])


def test_integer_division_wraps_and_rounds_to_zero() -> None:
    rng = np.random.default_rng(2)
    x = np.array([7, -7, 7, -7, -(2**31), 5, 0, 2**31 - 1], np.int32)
    y = np.array([2, 2, -2, -2, -1, 0, 0, -1], np.int32)
    out = np.empty_like(x)
    for cls, want in (
        (elementwise.DivideOp, [3, -3, -3, 3, -(2**31), -1, -1, -(2**31) + 1]),
        (elementwise.RemainderOp, [1, -1, 1, -1, 0, 5, 0, 0]),
    ):
        check(rng, cls, [x, y])
        op = operation(cls, [tensor(x.shape, "int32")] * 2, {}, on_memrefs=True)
        run(op, [x, y], out)
        assert out.tolist() == want


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint8", "bool"])
def test_compare(direction: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(3):
        shape = shape_of(rng)
        inputs = [numbers(rng, shape, dtype) for _ in range(2)]
        properties: dict[str, Attribute] = {"direction": StringAttr(direction)}
        check(rng, elementwise.CompareOp, inputs, properties)


@pytest.mark.parametrize("dtype", TYPES)
def test_select_and_clamp(dtype: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(5):
        shape = shape_of(rng)
        x, y, z = (numbers(rng, shape, dtype) for _ in range(3))
        check(rng, elementwise.SelectOp, [numbers(rng, shape, "bool"), x, y])
        check(rng, elementwise.ClampOp, [x, y, z])


@pytest.mark.parametrize("source", TYPES)
def test_convert(source: str) -> None:
    rng = np.random.default_rng(5)
    for target in TYPES:
        if target == "bfloat16":
            pytest.importorskip("ml_dtypes")
        x = numbers(rng, shape_of(rng), source)
        if target == "uint8" and source != "bool":
            x = np.abs(x)
        check(rng, elementwise.ConvertOp, [x], {}, tensor(x.shape, target))


def test_undefined_element_types_are_rejected() -> None:
    x = np.zeros(3, bool)
    op = operation(
        elementwise.SubtractOp, [tensor((3,), "bool")] * 2, {}, on_memrefs=True
    )
    with pytest.raises(LocatedError, match="not defined on elements of type bool"):
        compile_call(op, [x, x], [x.copy()], Scratch("cpu:0"))


# Fusions


def random_fusion(
    rng: Rng, shape: Sequence[int], count: int
) -> tuple[list[TensorType[Attribute]], Callable[[], Region]]:
    """Returns input types and a function that makes a body of `count` operations, with
    all kinds of operands."""
    seed = int(rng.integers(1 << 30))
    rank = len(shape)
    dims = sorted(
        map(int, rng.choice(rank, int(rng.integers(0, rank + 1)), replace=False))
    )
    small = [shape[d] if rng.random() < 0.7 else 1 for d in dims]
    types = [
        tensor(shape, "float32"),
        tensor(shape, "float32"),
        tensor(small, "float32"),
        tensor(shape, "bool"),
    ]

    def region() -> Region:
        rng = np.random.default_rng(seed)
        full = tensor(shape, "float32")
        block = Block(arg_types=types)
        floats = list[SSAValue](block.args[:2])
        masks = list[SSAValue](block.args[3:])

        def add(op: TensorOp) -> TensorOp:
            block.add_op(op)
            return op

        dimensions: dict[str, Attribute] = {"broadcast_dimensions": ints(dims)}
        floats.append(
            add(
                shaping.BroadcastInDimOp(
                    [block.args[2]], result_types=[full], properties=dimensions
                )
            ).result
        )
        zero = 0.0 if rng.random() < 0.5 else 1.5
        floats.append(add(shaping.ConstantOp(FloatAttr(zero, f32), full)).result)
        if rank:
            axis: dict[str, Attribute] = {
                "dimension": IntegerAttr(int(rng.integers(rank)), i64)
            }
            floats.append(
                add(shaping.IotaOp([], result_types=[full], properties=axis)).result
            )
        for _ in range(count):
            a, b = (floats[int(rng.integers(len(floats)))] for _ in range(2))
            match int(rng.integers(6)):
                case 0:
                    op = elementwise.SelectOp(
                        [masks[int(rng.integers(len(masks)))], a, b],
                        result_types=[full],
                    )
                case 1:
                    op = elementwise.CompareOp(
                        [a, b],
                        result_types=[tensor(shape, "bool")],
                        properties={"direction": StringAttr("GT")},
                    )
                    masks.append(add(op).result)
                    continue
                case 2:
                    op = elementwise.LogisticOp([a], result_types=[full])
                case 3:
                    op = elementwise.ClampOp([b, a, floats[0]], result_types=[full])
                case 4:
                    op = elementwise.TanhOp([a], result_types=[full])
                case _:
                    op = elementwise.AddOp([a, b], result_types=[full])
            floats.append(add(op).result)
        block.add_op(YieldOp(floats[-1]))
        return Region(block)

    return types, region


@pytest.mark.parametrize("seed", range(40))
def test_fusion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = shape_of(rng)
    types, region = random_fusion(rng, shape, int(rng.integers(0, 9)))
    inputs = [
        numbers(rng, t.get_shape(), "bool" if t.element_type == i1 else "float32")
        for t in types
    ]
    check(rng, FusionOp, inputs, {}, tensor(shape, "float32"), region)


@pytest.mark.parametrize("shape", [(3, TILE), (TILE // 8, 20), (5, 7, TILE // 10)])
def test_fusion_in_many_tiles(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    types, region = random_fusion(rng, shape, 8)
    inputs = [
        np.asarray(rng.standard_normal(t.get_shape()), np.float32)
        if t.element_type != i1
        else rng.random(t.get_shape()) < 0.5
        for t in types
    ]
    check(rng, FusionOp, inputs, {}, tensor(shape, "float32"), region)


# Shaping


@pytest.mark.parametrize("seed", range(25))
def test_shaping(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float32", "int64", "bool", "bfloat16"]))
    shape = shape_of(rng)
    rank = len(shape)
    x = numbers(rng, shape, dtype)

    permutation = list(map(int, rng.permutation(rank)))
    check(rng, shaping.TransposeOp, [x], {"permutation": ints(permutation)})
    dims = [d for d in range(rank) if rng.random() < 0.5]
    check(rng, shaping.ReverseOp, [x], {"dimensions": ints(dims)})
    reordered = [shape[d] for d in rng.permutation(rank)]
    for other in (reordered, [prod(shape)], [1, *shape]):
        check(rng, shaping.ReshapeOp, [x], {}, tensor(other, dtype))
    starts = [int(rng.integers(0, n + 1)) for n in shape]
    limits = [int(rng.integers(a, n + 1)) for a, n in zip(starts, shape, strict=True)]
    bounds: dict[str, Attribute] = {
        "start_indices": ints(starts),
        "limit_indices": ints(limits),
        "strides": ints(integers(rng, 1, 3, rank)),
    }
    check(rng, shaping.SliceOp, [x], bounds)
    target = shape_of(rng, 2)
    places = sorted(map(int, rng.choice(rank + len(target), rank, replace=False)))
    rng.shuffle(places)
    rest = iter(target)
    wide = [0] * (rank + len(target))
    for d in range(len(wide)):
        wide[d] = shape[places.index(d)] if d in places else next(rest)
    for d, place in enumerate(places):
        if shape[d] == 1:
            wide[place] = int(rng.integers(1, 4))
    check(
        rng,
        shaping.BroadcastInDimOp,
        [x],
        {"broadcast_dimensions": ints(places)},
        tensor(wide, dtype),
    )
    low = [int(rng.integers(-1, 3)) for _ in shape]
    pads: dict[str, Attribute] = {
        "low": ints(low),
        "high": ints(
            [
                int(rng.integers(-min(lo + n, 1), 3))
                for lo, n in zip(low, shape, strict=True)
            ]
        ),
        "interior": ints(integers(rng, 0, 2, rank)),
    }
    check(rng, shaping.PadOp, [x, numbers(rng, (), dtype)], pads)
    if rank:
        dim = int(rng.integers(rank))
        parts = [
            numbers(
                rng, [*shape[:dim], int(rng.integers(0, 4)), *shape[dim + 1 :]], dtype
            )
            for _ in range(2)
        ]
        along: dict[str, Attribute] = {"dimension": IntegerAttr(dim, i64)}
        check(rng, shaping.ConcatenateOp, [x, *parts], along)
        check(rng, shaping.IotaOp, [], along, tensor(shape, "int32"))
        check(rng, shaping.IotaOp, [], along, tensor(shape, "float32"))


@pytest.mark.parametrize("dtype", TYPES)
def test_constants(dtype: str) -> None:
    rng = np.random.default_rng(0)
    type = TYPES[dtype]
    ctx = Context()
    ctx.load_dialect(Builtin)
    one, zero = ("1.0", "0.0") if "float" in dtype else ("1", "0")
    if dtype == "bool":
        one, zero = "true", "false"
    x = numbers(rng, (2, 2), dtype)
    for number in (one, zero):
        text = number if dtype == "bool" else f"{number} : {type}"
        value = Parser(ctx, text).parse_attribute()
        result = tensor((2, 2), dtype)
        check(rng, shaping.ConstantOp, [], {"value": value}, result)
        check(rng, shaping.FullLikeOp, [x], {"value": value})
    listed = Parser(
        ctx, f"dense<[[{one}, {zero}], [{zero}, {one}]]> : tensor<2x2x{type}>"
    ).parse_attribute()
    check(rng, shaping.ConstantOp, [], {"value": listed}, tensor((2, 2), dtype))


# Reducing


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (kind, dtype)
        for kind in reducing.KINDS
        for dtype in ("float32", "float16", "bfloat16", "int32", "bool")
        if kind not in ("and", "or") or "float" not in dtype
    ],
)
def test_reduce(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for round_ in range(8):
        shape = shape_of(rng)
        if shape and round_ == 0:
            shape = (0, *shape[1:])
        dims = [d for d in range(len(shape)) if rng.random() < 0.5]
        x = numbers(rng, shape, dtype)
        properties: dict[str, Attribute] = {
            "kind": StringAttr(kind),
            "dimensions": ints(dims),
        }
        check(rng, reducing.ReduceOp, [x], properties)


def test_long_sums_are_accurate() -> None:
    rng = np.random.default_rng(0)
    x = (rng.random((100_001, 3)) + 1).astype(np.float32)
    op = operation(
        reducing.ReduceOp,
        [tensor(x.shape, "float32")],
        {"kind": StringAttr("add"), "dimensions": ints([0])},
        on_memrefs=True,
    )
    out = np.empty(3, np.float32)
    run(op, [x], out)
    np.testing.assert_allclose(out, x.sum(0, np.float64), rtol=1e-6)


@pytest.mark.parametrize(
    ("dtypes", "sums"),
    [
        *((2 * [name], name) for name in (*FLOATS, "int32")),
        (["int8", "int8"], "int32"),
        (["uint8", "int8"], "int32"),
        (["int8", "int32"], "int64"),
        (["bfloat16", "bfloat16"], "float32"),
        (["float16", "bfloat16"], "float32"),
        (["float32", "int8"], "float32"),
    ],
)
@pytest.mark.parametrize("seed", range(12))
def test_dot_general(seed: int, dtypes: Sequence[str], sums: str) -> None:
    rng = np.random.default_rng(seed)
    batch, summed, left, right = (
        integers(rng, 1, 4, int(rng.integers(0, 3))) for _ in range(4)
    )
    names = [
        *(f"b{i}" for i in range(len(batch))),
        *(f"k{i}" for i in range(len(summed))),
    ]
    sizes = dict(zip(names, [*batch, *summed], strict=True))
    operands: list[Array] = []
    dims: list[list[int]] = []
    shape = list(batch)
    for free, dtype in zip((left, right), dtypes, strict=True):
        own = {f"f{i}": n for i, n in enumerate(free)}
        order = [*names, *own]
        order = [order[i] for i in rng.permutation(len(order))]
        operands.append(numbers(rng, [(sizes | own)[n] for n in order], dtype))
        dims.append([order.index(n) for n in names])
        shape += [own[n] for n in order if n in own]
    cut = len(batch)
    properties: dict[str, Attribute] = {
        "lhs_batching_dimensions": ints(dims[0][:cut]),
        "rhs_batching_dimensions": ints(dims[1][:cut]),
        "lhs_contracting_dimensions": ints(dims[0][cut:]),
        "rhs_contracting_dimensions": ints(dims[1][cut:]),
    }
    check(rng, reducing.DotGeneralOp, operands, properties, tensor(shape, sums))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorplan.runtime.backends.numpy.dot.PART", 10)
    monkeypatch.setattr("tensorplan.runtime.backends.numpy.dot.FEWEST", 2)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("rows", "columns"), [(7, 3), (3, 7), (7, 7), (1, 1)])
@pytest.mark.parametrize(
    ("dtypes", "sums"),
    [
        (["int8", "int8"], "int32"),
        (["float32", "int8"], "float32"),
        (["bfloat16", "float32"], "float32"),
        (["bfloat16", "bfloat16"], "bfloat16"),
    ],
)
def test_operands_are_converted_in_parts(
    dtypes: Sequence[str],
    sums: str,
    rows: int,
    columns: int,
) -> None:
    rng = np.random.default_rng(0)
    shapes = (2, rows, 5), (2, 5, columns)
    operands = [numbers(rng, s, t) for s, t in zip(shapes, dtypes, strict=True)]
    properties: dict[str, Attribute] = {
        "lhs_batching_dimensions": ints([0]),
        "rhs_batching_dimensions": ints([0]),
        "lhs_contracting_dimensions": ints([2]),
        "rhs_contracting_dimensions": ints([1]),
    }
    result = tensor((2, rows, columns), sums)
    check(rng, reducing.DotGeneralOp, operands, properties, result)


@pytest.mark.parametrize("seed", range(60))
def test_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype, sums = rng.choice(
        [
            *(2 * [name] for name in ("float32", "float32", "float64", "bfloat16")),
            ["int8", "int32"],
            ["bfloat16", "float32"],
        ]
    ).tolist()
    rank = int(rng.integers(0, 4))
    groups = int(rng.choice([1, 1, 2, 3]))
    by_batch = bool(rng.random() < 0.5)
    image = {"b": int(rng.integers(1, 4)), "f": int(rng.integers(1, 5))}
    kernel = {"i": image["f"], "o": int(rng.integers(1, 4)) * groups}
    image["b" if by_batch else "f"] *= groups
    check_convolution(rng, rank, dtype, sums, image, kernel, groups, by_batch)


def recorded(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> Sequence[object]:
    """Returns a list to which each later call of a function of `module` adds what it
    returns."""
    found: list[object] = []
    function = getattr(module, name)

    def recording(*given: Any) -> Any:
        found.append(function(*given))
        return found[-1]

    monkeypatch.setattr(module, name, recording)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_convolution_of_one_feature(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float32", "float64"]))
    features = {"i": 1, "o": 1, str(rng.choice(["i", "o"])): int(rng.integers(1, 5))}
    image = {"b": int(rng.integers(1, 3)), "f": features["i"]}
    found = recorded(monkeypatch, stencils, "as_sum")
    rank = int(rng.integers(1, 3))
    check_convolution(rng, rank, dtype, dtype, image, features, most_holes=1, wider=50)
    assert all(found)
    assert bool(found) == llvm.is_available()


PLANES = [
    ("bf01_oi01->bf01", [(3, 1, 1, 1), (3, 1, 1, 1)], (21, 70), 1, 1),
    ("bf01_io01->fb01", [(3, 2, 1, 1), (5, 2, 1, 1)], (9, 33), 1, 2),
    ("0bf1_01oi->b0f1", [(2, 1, 1, 2), (3, 1, 1, 2)], (7, 7), 3, 1),
    ("bf01_oi01->bf01", [(2, 2, 1, 1), (3, 3, 1, 1)], (3, 2), 1, 1),
    ("bf01_oi01->bf01", [(3, 1, 2, 1), (3, 1, 2, 1)], (9, 20), 1, 1),
    ("bf01_oi01->bf01", [(4, 3, 1, 1), (5, 4, 1, 1)], (11, 50), 2, 1),
    ("bf0_oi0->bf0", [(9, 1, 1, 3)], (300,), 1, 1),
    ("bf012_oi012->bf012", [(3, 1, 1, 1), (1, 2, 1, 1), (3, 1, 1, 1)], (4, 5, 6), 1, 1),
]
"""The labels, the size, stride, holes and dilation of each dimension of the window, the
image, the features of the image for each group, and those of the result."""


@pytest.mark.parametrize(("labels", "window", "image", "seen", "made"), PLANES)
def test_grouped_convolution(
    labels: str,
    window: Sequence[tuple[int, int, int, int]],
    image: tuple[int, ...],
    seen: int,
    made: int,
) -> None:
    groups, low = 6, [size // 2 for size, *_ in window]
    spatial = {str(d): size for d, size in enumerate(image)}
    sizes, strides, holes, apart = map(list, zip(*window, strict=True))
    dims = map(WindowDimension, sizes, strides, low, low, holes, apart)
    places = {str(d): dim.places(image[d]) for d, dim in enumerate(dims)}
    of_image = {"b": 2, "f": seen * groups, **spatial}
    of_kernel = {
        "i": seen,
        "o": made * groups,
        **dict(zip(spatial, sizes, strict=True)),
    }
    of_result = {"b": 2, "f": made * groups, **places}
    properties: dict[str, Attribute] = {
        "dim_labels": StringAttr(labels),
        "window_strides": ints(strides),
        "padding_low": ints(low),
        "padding_high": ints(low),
        "lhs_dilation": ints(holes),
        "rhs_dilation": ints(apart),
        "feature_group_count": IntegerAttr(groups, i64),
        "batch_group_count": IntegerAttr(1, i64),
    }
    operands, result = labels.split("->")
    x_labels, w_labels = operands.split("_")
    rng, dtype = np.random.default_rng(0), "float64" if made == 2 else "float32"
    x = numbers(rng, [of_image[n] for n in x_labels], dtype)
    w = numbers(rng, [of_kernel[n] for n in w_labels], dtype)
    out = tensor([of_result[n] for n in result], dtype)
    check(rng, reducing.ConvolutionOp, [x, w], properties, out)


@pytest.mark.parametrize("case", PLANES)
def test_grouped_convolution_by_planes(
    case: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = recorded(monkeypatch, planes, "calls_of")
    test_grouped_convolution(*case)
    assert any(found) == llvm.is_available()


DEPTHWISE = [
    ("fb01_io01->fb01", 5, 1, 1),
    ("fb01_oi01->01fb", 5, 1, 2),
    ("bf01_io01->0bf1", 5, 2, 1),
    ("fb01_i01o->01bf", 5, 1, 1),
    ("f01b_i01o->01bf", 5, 1, 1),
    ("f01b_i01o->01bf", 3, 2, 1),
]
"""The labels, and the size, the stride and the dilation of a window."""


@pytest.mark.parametrize(("labels", "size", "stride", "apart"), DEPTHWISE)
def test_gradient_of_depthwise_weights(
    labels: str, size: int, stride: int, apart: int
) -> None:
    rng = np.random.default_rng(len(labels) + stride)
    images, result = labels.split("->")
    image, kernel = images.split("_")
    low, high, window, places = 2, 1, (9, 12), (size, size)
    reach = [(n - 1) * apart + 1 + (size - 1) * stride for n in window]
    of_image = {"b": 6, "f": 2, "0": reach[0] - low - high, "1": reach[1] - low - high}
    of_kernel = {"i": 2, "o": 6, "0": window[0], "1": window[1]}
    of_result = {"b": 1, "f": 6, "0": places[0], "1": places[1]}
    properties: dict[str, Attribute] = {
        "dim_labels": StringAttr(labels),
        "window_strides": ints([stride] * 2),
        "padding_low": ints([low] * 2),
        "padding_high": ints([high] * 2),
        "lhs_dilation": ints([1, 1]),
        "rhs_dilation": ints([apart] * 2),
        "feature_group_count": IntegerAttr(1, i64),
        "batch_group_count": IntegerAttr(6, i64),
    }
    x = numbers(rng, [of_image[n] for n in image], "float32")
    w = numbers(rng, [of_kernel[n] for n in kernel], "float32")
    out = tensor([of_result[n] for n in result], "float32")
    check(rng, reducing.ConvolutionOp, [x, w], properties, out)


@pytest.mark.parametrize(("labels", "size", "stride", "apart"), DEPTHWISE)
def test_gradient_of_depthwise_weights_by_taps(
    labels: str,
    size: int,
    stride: int,
    apart: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In some of the layouts that `check` chooses, rows or features of the images are
    contiguous."""
    found = recorded(monkeypatch, taps, "calls_of")
    test_gradient_of_depthwise_weights(labels, size, stride, apart)
    assert any(found) == llvm.is_available()


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_convolution_of_one_feature_in_wider_sums(rank: int) -> None:
    rng, features = np.random.default_rng(rank), {"i": 1, "o": 1}
    image = {"b": 2, "f": 1}
    check_convolution(
        rng, rank, "float32", "float64", image, features, most_holes=1, wider=50
    )


def check_convolution(
    rng: Rng,
    rank: int,
    dtype: str,
    sums: str,
    image: dict[str, int],
    kernel: dict[str, int],
    groups: int = 1,
    by_batch: bool = False,
    most_holes: int = 3,
    wider: int = 0,
) -> None:
    """Checks a convolution of images and kernels with these features and random sizes.
    `wider` is added to the image's last size."""
    spatial = [str(d) for d in range(rank)]
    window, dilation = integers(rng, 1, 3, rank), integers(rng, 1, 2, rank)
    holes, strides = integers(rng, 1, most_holes, rank), integers(rng, 1, 3, rank)
    low = integers(rng, -1, 3, rank)
    high: list[int] = []
    places: list[int] = []
    for d in range(rank):
        image[spatial[d]] = int(rng.integers(1, 7)) + (d == rank - 1) * wider
        kernel[spatial[d]] = window[d]
        extent = (image[spatial[d]] - 1) * holes[d] + 1
        reach = (window[d] - 1) * dilation[d] + 1
        high.append(max(int(rng.integers(-1, 3)), reach - extent - low[d]))
        places.append((low[d] + extent + high[d] - reach) // strides[d] + 1)
    result = dict(zip(spatial, places, strict=True))
    result |= {"b": image["b"] // groups if by_batch else image["b"], "f": kernel["o"]}

    def labels(names: Sequence[str]) -> str:
        return "".join(str(n) for n in rng.permutation(list(names)))

    image_labels, kernel_labels = (
        labels(["b", "f", *spatial]),
        labels(["i", "o", *spatial]),
    )
    out_labels = labels(["b", "f", *spatial])
    properties: dict[str, Attribute] = {
        "dim_labels": StringAttr(f"{image_labels}_{kernel_labels}->{out_labels}"),
        "window_strides": ints(strides),
        "padding_low": ints(low),
        "padding_high": ints(high),
        "lhs_dilation": ints(holes),
        "rhs_dilation": ints(dilation),
        "feature_group_count": IntegerAttr(1 if by_batch else groups, i64),
        "batch_group_count": IntegerAttr(groups if by_batch else 1, i64),
    }
    x = numbers(rng, [image[n] for n in image_labels], dtype)
    w = numbers(rng, [kernel[n] for n in kernel_labels], dtype)
    out = tensor([result[n] for n in out_labels], sums)
    check(rng, reducing.ConvolutionOp, [x, w], properties, out)


@pytest.mark.parametrize(
    ("labels", "x", "w", "stride", "holes", "pad"),
    [
        ("b01f_01io->b01f", (3, 40, 40, 32), (3, 3, 32, 16), 1, 1, 1),
        ("bf01_oi01->bf01", (3, 32, 40, 40), (16, 32, 3, 3), 2, 1, 1),
        ("bf01_oi01->bf01", (3, 32, 9, 9), (16, 32, 1, 1), 1, 1, 0),
        ("b01f_01oi->b01f", (3, 20, 20, 32), (3, 3, 16, 32), 1, 2, 1),
        # The gradient of a kernel: a window of 40 x 40 x 3, summed in several parts.
        ("f01b_i01o->01bf", (3, 42, 42, 150), (3, 40, 40, 16), 1, 1, 0),
    ],
)
def test_convolution_in_many_tiles(
    labels: str,
    x: tuple[int, ...],
    w: tuple[int, ...],
    stride: int,
    holes: int,
    pad: int,
) -> None:
    rng = np.random.default_rng(0)
    properties: dict[str, Attribute] = {
        "dim_labels": StringAttr(labels),
        "window_strides": ints([stride] * 2),
        "padding_low": ints([pad] * 2),
        "padding_high": ints([pad] * 2),
        "lhs_dilation": ints([holes] * 2),
        "rhs_dilation": ints([1] * 2),
        "feature_group_count": IntegerAttr(1, i64),
        "batch_group_count": IntegerAttr(1, i64),
    }
    inputs = [rng.standard_normal(s).astype(np.float32) for s in (x, w)]
    check(rng, reducing.ConvolutionOp, inputs, properties)


def window_properties(
    rng: Rng, shape: Sequence[int], dilated: bool
) -> dict[str, list[int]]:
    rank = len(shape)
    window, strides = integers(rng, 1, 3, rank), integers(rng, 1, 3, rank)
    holes = integers(rng, 1, 2, rank) if dilated else [1] * rank
    spread = integers(rng, 1, 2, rank) if dilated else [1] * rank
    low = integers(rng, 0, 1, rank)
    high: list[int] = []
    for d in range(rank):
        extent = (shape[d] - 1) * holes[d] + 1 + low[d]
        reach = (window[d] - 1) * spread[d] + 1
        high.append(max(int(rng.integers(0, 2)), reach - extent))
    found = {
        "window_dimensions": window,
        "window_strides": strides,
        "padding_low": low,
        "padding_high": high,
    }
    return found | (
        {"base_dilations": holes, "window_dilations": spread} if dilated else {}
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool"])
@pytest.mark.parametrize("seed", range(15))
def test_reduce_window(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    kinds = ("add", "multiply", "maximum", "minimum")
    x = numbers(rng, shape_of(rng), dtype)
    found = window_properties(rng, x.shape, dilated=True)
    properties: dict[str, Attribute] = {n: ints(v) for n, v in found.items()}
    properties["kind"] = StringAttr(str(rng.choice(kinds)))
    check(rng, reducing.ReduceWindowOp, [x], properties)


LARGE = [
    ((9, 11), (5, 5), 1, 1, 2),
    ((3, 20, 17), (1, 7, 5), 1, 1, 0),
    ((2, 3, 30, 21), (1, 1, 9, 9), 2, 1, 4),
    ((40, 14, 13, 3), (1, 6, 5, 1), 1, 2, 3),
    ((2, 12, 9, 10), (1, 3, 3, 3), 1, 1, 1),
    ((5, 6), (6, 9), 1, 1, 9),
]
"""Shapes, and the sizes, strides, dilations and padding of windows that are reduced
along one dimension after the other."""


@pytest.mark.parametrize(("shape", "window", "stride", "apart", "pad"), LARGE)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("kind", ["add", "maximum"])
def test_reduce_large_window(
    shape: tuple[int, ...],
    window: Sequence[int],
    stride: int,
    apart: int,
    pad: int,
    dtype: str,
    kind: str,
) -> None:
    def along(number: int, other: int) -> Attribute:
        return ints([number if size > 1 else other for size in window])

    properties: dict[str, Attribute] = {
        "kind": StringAttr(kind),
        "window_dimensions": ints(window),
        "window_strides": along(stride, 1),
        "padding_low": along(pad, 0),
        "padding_high": along(max(pad - 1, 0), 0),
        "base_dilations": ints([1] * len(shape)),
        "window_dilations": along(apart, 1),
    }
    rng = np.random.default_rng(0)
    x = numbers(rng, shape, dtype)
    check(rng, reducing.ReduceWindowOp, [x], properties)


@pytest.mark.parametrize("case", LARGE)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["add", "maximum"])
def test_reduce_large_window_in_passes(
    case: Sequence[Any], dtype: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some rows at a time. Sums are not rounded twice, and windows that see only
    padding are not passes."""
    monkeypatch.setattr(windows, "ROWS", 1 << 7)
    found = recorded(monkeypatch, windows, "passes")
    test_reduce_large_window(*case, dtype, kind)
    is_rounded = kind == "add" and dtype == "bfloat16"
    is_clipped = case[-1] > 8
    assert any(found) == (llvm.is_available() and not is_rounded and not is_clipped)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool"])
@pytest.mark.parametrize("kind", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("shape", [(2, 17, 3), (2, 40, 70), (1, 70, 150)])
def test_cumulative(
    shape: tuple[int, ...], kind: str, dtype: str, forward: bool
) -> None:
    """Each window reaches from its place to the first element, or to the last one."""
    rng, ones = np.random.default_rng(0), (1, 1, 1)
    for axis in range(3):
        window = [n if d == axis else 1 for d, n in enumerate(shape)]
        before, none = [n - 1 for n in window], [0, 0, 0]
        properties: dict[str, Attribute] = {
            "kind": StringAttr(kind),
            "window_dimensions": ints(window),
            "padding_low": ints(before if forward else none),
            "padding_high": ints(none if forward else before),
            **{name: ints(ones) for name in STEPS},
        }
        x = numbers(rng, shape, dtype)
        check(rng, reducing.ReduceWindowOp, [x], properties)


STEPS = ("window_strides", "base_dilations", "window_dilations")


def test_cumulative_sums_take_one_pass() -> None:
    size = 10_000
    properties: dict[str, Attribute] = {
        "kind": StringAttr("add"),
        "window_dimensions": ints([size]),
        "padding_low": ints([size - 1]),
        "padding_high": ints([0]),
        **{name: ints([1]) for name in STEPS},
    }
    op = operation(
        reducing.ReduceWindowOp,
        [tensor((size,), "float32")],
        properties,
        on_memrefs=True,
    )
    x, out = np.ones(size, np.float32), np.empty(size, np.float32)
    assert len(compile_call(op, [x], [out], Scratch("cpu:0"))) == 1
    run(op, [x], out)
    np.testing.assert_array_equal(out, np.arange(1, size + 1))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("seed", range(15))
def test_select_and_scatter(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    x = numbers(rng, shape_of(rng), dtype)
    if dtype != "int32" and seed % 2:
        x[rng.random(x.shape) < 0.3] = np.nan
    found = window_properties(rng, x.shape, dilated=False)
    properties: dict[str, Attribute] = {n: ints(v) for n, v in found.items()}
    properties["kind"] = StringAttr(str(rng.choice(["maximum", "minimum"])))
    padded = [
        n + lo + hi
        for n, lo, hi in zip(
            x.shape, found["padding_low"], found["padding_high"], strict=True
        )
    ]
    places = [
        (n - w) // s + 1
        for n, w, s in zip(
            padded, found["window_dimensions"], found["window_strides"], strict=True
        )
    ]
    source = numbers(rng, places, dtype)
    check(rng, reducing.SelectAndScatterOp, [x, source], properties)


@pytest.mark.parametrize("shape", [(5, 40, 40, 16), (3, 70, 70, 16)])
def test_windows_in_many_parts(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32)
    properties: dict[str, Attribute] = {
        "kind": StringAttr("maximum"),
        "window_dimensions": ints([1, 3, 3, 1]),
        "window_strides": ints([1, 1, 1, 1]),
        "padding_low": ints([0, 1, 1, 0]),
        "padding_high": ints([0, 1, 1, 0]),
    }
    source = rng.standard_normal(x.shape).astype(np.float32)
    check(rng, reducing.SelectAndScatterOp, [x, source], properties)
    dilations: dict[str, Attribute] = {
        "base_dilations": ints([1] * 4),
        "window_dilations": ints([1] * 4),
    }
    check(rng, reducing.ReduceWindowOp, [x], properties | dilations)


def test_empty_dimensions_and_large_windows() -> None:
    """Kernels accept dimensions of size 0, and windows larger than their operand."""
    rng = np.random.default_rng(0)
    dims: dict[str, Attribute] = {
        "lhs_batching_dimensions": ints([]),
        "rhs_batching_dimensions": ints([]),
        "lhs_contracting_dimensions": ints([1]),
        "rhs_contracting_dimensions": ints([0]),
    }
    operands = [numbers(rng, (3, 0), "float32"), numbers(rng, (0, 2), "float32")]
    check(rng, reducing.DotGeneralOp, operands, dims)

    convolution: dict[str, Attribute] = {
        "dim_labels": StringAttr("b0f_0io->b0f"),
        "window_strides": ints([1]),
        "padding_low": ints([2]),
        "padding_high": ints([2]),
        "lhs_dilation": ints([1]),
        "rhs_dilation": ints([1]),
        "feature_group_count": IntegerAttr(1, i64),
        "batch_group_count": IntegerAttr(1, i64),
    }
    for image, kernel in (
        ((2, 0, 3), (3, 3, 4)),
        ((2, 5, 0), (3, 0, 4)),
        ((0, 5, 3), (3, 3, 4)),
        ((2, 1, 3), (9, 3, 4)),
    ):
        pair = [numbers(rng, image, "float32"), numbers(rng, kernel, "float32")]
        check(rng, reducing.ConvolutionOp, pair, convolution)

    x = numbers(rng, (2, 3), "float32")
    window: dict[str, Attribute] = {
        "kind": StringAttr("maximum"),
        "window_dimensions": ints([1, 5]),
        "window_strides": ints([1, 1]),
        "padding_low": ints([0, 0]),
        "padding_high": ints([0, 0]),
    }
    nowhere = numbers(rng, (2, 0), "float32")
    check(rng, reducing.SelectAndScatterOp, [x, nowhere], window)
    ones: dict[str, Attribute] = {
        "base_dilations": ints([1, 1]),
        "window_dilations": ints([1, 1]),
    }
    check(rng, reducing.ReduceWindowOp, [x], window | ones)


def test_spans() -> None:
    for size in range(4):
        for places in range(5):
            for stride in range(1, 4):
                for offset in range(-5, 6):
                    for dilation in range(1, 4):
                        found = spans(size, places, stride, offset, dilation)
                        pairs = list(
                            zip(
                                range(places)[found[0]],
                                range(size)[found[1]],
                                strict=True,
                            )
                        )
                        assert pairs == [
                            (p, i)
                            for p in range(places)
                            for i in range(size)
                            if p * stride + offset == i * dilation
                        ]


# Indexing


@pytest.mark.parametrize("seed", range(60))
def test_gather_and_scatter(seed: int) -> None:
    """Gathers and scatters with random dimension numbers agree with the reference."""
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float32", "int32", "bool", "bfloat16"]))
    operand = shape_of(rng, 4)
    rank = len(operand)
    batch = list(shape_of(rng, 2, 4))
    # Some operand dimensions are batched with an index dimension of the same size.
    batching: dict[int, int] = {}
    for d in range(rank):
        if rng.random() < 0.2:
            batching[d] = len(batch)
            batch.append(operand[d])
    free = [d for d in range(rank) if d not in batching]
    indexed = [d for d in free if rng.random() < 0.6]
    rng.shuffle(indexed)
    sizes = [
        int(rng.choice([1, n, int(rng.integers(1, n + 1))])) if d in free else 1
        for d, n in enumerate(operand)
    ]
    collapsed = [d for d in free if sizes[d] == 1 and rng.random() < 0.7]
    window = [sizes[d] for d in free if d not in collapsed]

    vector_dim = int(rng.integers(0, len(batch) + 1))
    implicit = len(indexed) == 1 and vector_dim == len(batch) and rng.random() < 0.5
    shape = list(batch)
    if not implicit:
        shape.insert(vector_dim, len(indexed))
    indices = rng.integers(-2, 7, shape).astype(rng.choice(["int32", "int64"]))
    batching_dims = [b + (b >= vector_dim and not implicit) for b in batching.values()]
    total = len(window) + len(batch)
    offset_dims = sorted(map(int, rng.choice(total, len(window), replace=False)))
    vector: dict[str, Attribute] = {"index_vector_dim": IntegerAttr(vector_dim, i64)}
    x = numbers(rng, operand, dtype)
    check(
        rng,
        indexing.GatherOp,
        [x, indices],
        {
            **vector,
            "offset_dims": ints(offset_dims),
            "collapsed_slice_dims": ints(collapsed),
            "operand_batching_dims": ints(list(batching)),
            "start_indices_batching_dims": ints(batching_dims),
            "start_index_map": ints(indexed),
            "slice_sizes": ints(sizes),
        },
    )

    from_window, from_batch = iter(window), iter(batch)
    updates = numbers(
        rng,
        [next(from_window if d in offset_dims else from_batch) for d in range(total)],
        dtype,
    )
    kinds = ["replace", "add", "multiply", "maximum", "minimum"]
    check(
        rng,
        indexing.ScatterOp,
        [x, indices, updates],
        {
            **vector,
            "kind": StringAttr(str(rng.choice(kinds))),
            "update_window_dims": ints(offset_dims),
            "inserted_window_dims": ints(collapsed),
            "input_batching_dims": ints(list(batching)),
            "scatter_indices_batching_dims": ints(batching_dims),
            "scatter_dims_to_operand_dims": ints(indexed),
        },
    )


# The helpers


def test_try_reshape_is_a_view_exactly_if_numpy_makes_one() -> None:
    rng = np.random.default_rng(0)
    views = 0
    for _ in range(2000):
        x = numbers(rng, shape_of(rng, 4, 4), "int32")
        factors = list(x.shape)
        shape: list[int] = []
        while factors:  # merge and split dimensions at random
            take = int(rng.integers(1, len(factors) + 1))
            size = prod(factors[:take])
            factors = factors[take:]
            divisor = int(rng.choice([d for d in range(1, size + 1) if size % d == 0]))
            shape += [divisor, size // divisor]
        want = x.reshape(shape)
        got = try_reshape(x, tuple(shape))
        assert (got is not None) == np.shares_memory(want, x)
        if got is not None:
            views += 1
            assert np.array_equal(got, want)
            assert np.shares_memory(got, x)
    assert 200 < views < 1990
    assert reshaped_strides((2, 3), (24, 8), (3, 1, 2)) == (16, 16, 8)


def test_tiles_cover_everything_once() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = shape_of(rng)
        limit = int(rng.integers(1, 80))
        seen = np.zeros(shape, int)
        for tile in tiles(shape, limit):
            assert seen[*tile, ...].size <= limit
            seen[*tile, ...] += 1
        assert (seen == 1).all()


def test_every_operation_has_a_kernel() -> None:
    for op in (
        *elementwise.ELEMENTWISE_OPS,
        *(op for op in shaping.SHAPING_OPS if op is not shaping.SizeOp),  # a constant
        *reducing.REDUCING_OPS,
        *indexing.INDEXING_OPS,
        *matrices.MATRIX_OPS,
        *spectral.SPECTRAL_OPS,
        FusionOp,
    ):
        assert not KERNELS.keys().isdisjoint(op.__mro__)


def test_every_elementwise_operation_has_a_form_or_a_formula() -> None:
    by_themselves = {
        elementwise.BitcastConvertOp,
        elementwise.CompareOp,
        elementwise.ConvertOp,
        elementwise.SelectOp,
    }
    known = by_themselves | FORMS.keys() | FORMULAS.keys()
    assert known == {*elementwise.ELEMENTWISE_OPS}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_negated_columns(dtype: str) -> None:
    """NumPy 2.4 reads wrong elements for some strides of both arrays."""
    for wide in range(1, 18):
        x = np.arange(16 * wide, dtype=dtype).reshape(16, wide)
        out = np.empty_like(x)
        function, arguments = ufunc_call(np.negative, x[:, -1], out[:, 0])
        function(*arguments)
        np.testing.assert_array_equal(out[:, 0], 0 - x[:, -1])
