"""Tests fused operations of onnxruntime's optimizers: onnxruntime's values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.reference.interpreter import run_reference

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from quantized_models import NETWORKS  # noqa: E402

RNG = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def below(limit: int, *shape: int, dtype: str = "i4") -> np.ndarray:
    return RNG.integers(0, limit, shape).astype(dtype)


def model_of(
    kind: str,
    arrays: Sequence[np.ndarray | None],
    parameters: Sequence[int] = (),
    outputs: Sequence[int] = (0,),
    domain: str = "com.microsoft",
    opset: int = 17,
    **attributes: Any,
) -> tuple[bytes, dict[str, np.ndarray]]:
    """Returns a model of one operation, whose inputs are named by their index, and the
    arrays of the inputs that are not parameters. None is an omitted input."""
    names = ["" if array is None else f"i{k}" for k, array in enumerate(arrays)]
    named = [f"o{k}" if k in outputs else "" for k in range(max(outputs) + 1)]
    node = helper.make_node(kind, names, named, domain=domain, **attributes)
    given = {f"i{k}": a for k, a in enumerate(arrays) if a is not None}
    held = {f"i{k}": given.pop(f"i{k}") for k in parameters if f"i{k}" in given}
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in given.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in named if name],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    return model.SerializeToString(), given


def theirs(data: bytes, inputs: dict[str, np.ndarray]) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def check(
    data: bytes,
    inputs: dict[str, np.ndarray],
    constants: Sequence[str] = (),
    rtol: float = 2e-5,
) -> None:
    """Asserts that the reference and the compiled program have onnxruntime's values.
    Shapes depend on the inputs `constants`."""
    values = {name: inputs[name] for name in constants}
    model = tensorplan.from_onnx(data, values=values)
    given = [array for name, array in inputs.items() if name not in values]
    want = theirs(data, inputs)
    arrays = [*given, *model.parameters.values()]
    for got in (run_reference(model.module, arrays), tensorplan.compile(model)(*given)):
        for own, peer in zip(got, want, strict=True):
            assert own.dtype == peer.dtype
            np.testing.assert_allclose(own, peer, rtol, rtol)


@pytest.mark.parametrize("kind", ["BiasGelu", "FastGelu", "Gelu", "QuickGelu"])
@pytest.mark.parametrize("shape", [(2, 3, 8), (1, 1, 8), (0, 8)], ids=str)
def test_activations(kind: str, shape: tuple[int, ...]) -> None:
    x = 3 * normal(*shape)
    if kind != "QuickGelu":
        x.ravel()[:3] = np.array([np.nan, 100, -100])[: x.size]
    bias = [normal(8)] if kind in ("BiasGelu", "FastGelu") else []
    alpha: dict[str, Any] = {"alpha": 1.3} if kind == "QuickGelu" else {}
    check(*model_of(kind, [x, *bias], [1], **alpha))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("skip", [(2, 3, 8), (1, 3, 8), (3, 8)], ids=str)
@pytest.mark.parametrize("simplified", [False, True])
def test_normalized_sums(simplified: bool, skip: tuple[int, ...], bias: bool) -> None:
    """The operation also returns the sum."""
    operands = [normal(2, 3, 8), normal(*skip), normal(8)]
    operands += [normal(8)] * (not simplified) + [normal(8)] * bias
    kind = f"Skip{'Simplified' * simplified}LayerNormalization"
    check(*model_of(kind, operands, [2, 3, 4], outputs=[0, 3], epsilon=1e-3))


@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize("kind", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_normalizations_in_the_domain_of_onnx(kind: str, opset: int) -> None:
    """onnxruntime puts these operations into ONNX's domain, which may not define
    them."""
    operands = [normal(2, 3, 8), normal(3, 8)]
    check(*model_of(kind, operands, [1], domain="", opset=opset, axis=-2))


def test_normalizations_in_a_branch() -> None:
    node = helper.make_node("SimplifiedLayerNormalization", ["x", "s"], ["y"])
    outputs = [helper.make_empty_tensor_value_info("y")]
    branch = helper.make_graph([node], "then", [], outputs)
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "else", [], outputs
    )
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)
    x, s = normal(3, 8), normal(8)
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    scale = [numpy_helper.from_array(s, "s")]
    graph = helper.make_graph([choice], "g", values, outputs, scale)
    imports = [helper.make_opsetid("", 16)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    for flag in (False, True):
        check(model.SerializeToString(), {"x": x, "c": np.array(flag)})


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("places", [None, 1, 2])
def test_embeddings(places: int | None, mask: bool, segments: bool) -> None:
    operands = [
        below(20, 2, 5),
        below(2, 2, 5) if segments else None,
        *(normal(20, 8), normal(7, 8), normal(2, 8) if segments else None),
        *(normal(8), normal(8), below(2, 2, 5) if mask else None),
        None if places is None else below(7, places, 5),
    ]
    kind = "EmbedLayerNormalization"
    check(*model_of(kind, operands, [2, 3, 4, 5, 6], outputs=[0, 1, 2]))


NORMALIZED = {
    "SkipLayerNormalization": (0, 0, 1, 1, 1),
    "SkipSimplifiedLayerNormalization": (0, 0, 1, 1),
    "EmbedLayerNormalization": (None, None, 2, 2, None, 1, 1),
}
"""Whether each operand of an operation is rows (0), a parameter (1), or a table (2)."""


@pytest.mark.parametrize("scale", [1e-3, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("kind", NORMALIZED)
def test_sums_of_half_precision(kind: str, scale: float) -> None:
    """The sum of squares overflows f16, and at the largest scale also the sum."""
    shapes = ((2, 3, 768), (768,), (20, 768))
    operands = [
        None if role is None else (scale if role != 1 else 1) * normal(*shapes[role])
        for role in NORMALIZED[kind]
    ]
    arrays = [None if x is None else x.astype("f2") for x in operands]
    if kind == "EmbedLayerNormalization":
        arrays[0] = below(20, 2, 3)
        outputs = [0, 1, 2]
    else:
        outputs = [0, 3]
    if scale == 1e4:
        for x in arrays:
            if x is not None and x.ndim > 1 and x.dtype == "f2":
                x[..., :4] = 40000
    check(*model_of(kind, arrays, [2, 3, 4, 5, 6], outputs), rtol=2e-3)


@pytest.mark.parametrize("turned", range(16))
def test_products_of_transposed_operands(turned: int) -> None:
    a, b, batch_a, batch_b = (turned >> k & 1 for k in range(4))
    first = [5, 4] if a else [4, 5]
    second = [6, 5] if b else [5, 6]
    x = normal(first[0], 2, 3, first[1]) if batch_a else normal(2, 3, *first)
    y = normal(second[0], 2, 3, second[1]) if batch_b else normal(2, 3, *second)
    flags: dict[str, Any] = {
        "transA": a,
        "transB": b,
        "transBatchA": batch_a,
        "transBatchB": batch_b,
    }
    check(*model_of("FusedMatMul", [x, y], alpha=0.5, **flags))


# Attention of 2 sequences, 5 queries, and 2 heads of size 4.

MASKS = {
    "none": lambda keys: None,
    "ends": lambda keys: np.array([keys, 3], "i4"),
    "ends and starts": lambda keys: np.array([keys, keys - 1, 0, 2], "i4"),
    "keys": lambda keys: below(2, 2, keys),
    "queries": lambda keys: below(2, 2, 5, keys),
    "all": lambda keys: np.zeros((2, keys), "i4"),
    "pruned": lambda keys: np.ones((2, 1), "i4"),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(causal: int, past: int, mask: str) -> None:
    cache = normal(2, 2, 2, past, 4) if past else None
    added = None if past else normal(2, 2, 5, 5)
    operands = [
        *(normal(2, 5, 7), normal(7, 24), normal(24)),
        *(MASKS[mask](5 + past), cache, added),
    ]
    outputs = [0, 1] if past else [0]
    sides: dict[str, Any] = {"num_heads": 2, "unidirectional": causal}
    check(*model_of("Attention", operands, [1, 2], outputs, **sides))


def test_attention_with_values_of_another_size() -> None:
    operands = [normal(2, 5, 7), normal(7, 32), normal(32)]
    sizes: dict[str, Any] = {
        "num_heads": 2,
        "qkv_hidden_sizes": [8, 8, 16],
        "scale": 0.3,
    }
    check(*model_of("Attention", operands, [1, 2], **sizes))


def halves(*arrays: np.ndarray | None) -> list[np.ndarray | None]:
    """Returns the arrays, with floats converted to f16."""
    return [x.astype("f2") if x is not None and x.dtype == "f4" else x for x in arrays]


@pytest.mark.parametrize("less", [-10000.0, float(np.finfo("f4").min)])
@pytest.mark.parametrize("mask", ["keys", "queries", "all"])
@pytest.mark.parametrize("kind", ["Attention", "MultiHeadAttention"])
def test_attention_of_half_precision(kind: str, mask: str, less: float) -> None:
    """The value that a mask adds overflows f16, or is so large that scores are lost."""
    if kind == "Attention":
        weights = 0.3 * normal(7, 24)
        operands = halves(normal(2, 5, 7), weights, normal(24), MASKS[mask](5))
        operands += [None, *halves(normal(2, 2, 5, 5))]
    else:
        operands = halves(*(normal(2, 5, 8) for _ in range(3)), normal(24))
        operands += [MASKS[mask](5), *halves(normal(1, 2, 5, 5))]
    sides: dict[str, Any] = {"num_heads": 2, "mask_filter_value": less}
    check(*model_of(kind, operands, [1, 2], **sides), rtol=4e-3)


@pytest.mark.parametrize("weights", ["uint8", "int8"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("past", [0, 3])
def test_attention_of_8_bits(past: int, columns: bool, weights: str) -> None:
    count = (24,) if columns else ()
    operands = [
        *(below(128, 2, 5, 7, dtype="u1"), below(100, 7, 24, dtype=weights)),
        *(normal(24), np.array(0.02, "f4"), RNG.uniform(0.005, 0.01, count)),
        *(below(2, 2, 5 + past), np.array(3, "u1"), below(90, *count, dtype=weights)),
        normal(2, 2, 2, past, 4) if past else None,
    ]
    arrays = [
        None if x is None else np.asarray(x, "f4" if x.dtype == "f8" else x.dtype)
        for x in operands
    ]
    outputs = [0, 1] if past else [0]
    check(*model_of("QAttention", arrays, [1, 2, 3, 4, 6, 7], outputs, num_heads=2))


@pytest.mark.parametrize("mask", ["none", "ends", "keys", "queries"])
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize(("heads", "causal"), [(1, 0), (2, 1)])
def test_multi_head_attention(heads: int, causal: int, past: int, mask: str) -> None:
    """All heads can share the bias of the scores."""
    caches = [normal(2, 2, past, 4) if past else None for _ in range(2)]
    operands = [
        *(normal(2, 5, 8), normal(2, 5, 8), normal(2, 5, 8), normal(24)),
        *(MASKS[mask](5 + past), normal(1, heads, 5, 5 + past), *caches),
    ]
    outputs = [0, 1, 2] if past else [0]
    sides: dict[str, Any] = {"num_heads": 2, "unidirectional": causal}
    check(*model_of("MultiHeadAttention", operands, [3], outputs, **sides))


@pytest.mark.parametrize("rank", [3, 4])
def test_cross_attention(rank: int) -> None:
    """The keys and values of a decoder can have a dimension for the heads."""
    shape, wide = ((2, 9, 8), (2, 9, 8)) if rank == 3 else ((2, 2, 9, 4), (2, 2, 9, 4))
    operands = [normal(2, 5, 8), normal(*shape), normal(*wide)]
    check(*model_of("MultiHeadAttention", operands, num_heads=2))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("places", ["each", "first"])
@pytest.mark.parametrize("size", [8, 4])
def test_rotary_embeddings(size: int, places: str, rank: int, interleaved: int) -> None:
    """The operation rotates heads of size 8, or the first half of each head."""
    x = normal(2, 5, 16) if rank == 3 else normal(2, 2, 5, 8)
    own = below(20, 2, 5, dtype="i8") if places == "each" else np.array([4])
    tables = normal(20, size // 2), normal(20, size // 2)
    part: dict[str, Any] = (
        {"num_heads": 2, "rotary_embedding_dim": size} if size < 8 else {}
    )
    operands = [x, own, *tables]
    check(
        *model_of("RotaryEmbedding", operands, [2, 3], interleaved=interleaved, **part)
    )


GROUPED = {
    "prompt": (2, 5, 0),
    "next": (2, 1, 6),
    "several": (1, 3, 6),
}


def grouped(
    kind: str, short: bool = False, packed: bool = False, spare: int = 0
) -> tuple[list[np.ndarray | None], int]:
    """Returns the operands of grouped attention, with 4 heads of queries and 2 of keys
    and values, each of size 16, and the number of queries.

    short: whether the first sequence has one key fewer than the others.
    spare: the number of unused rows of the cache.
    """
    batch, length, past = GROUPED[kind]
    rows = [normal(batch, length, count * 16) for count in (4, 2, 2)]
    given = [np.concatenate(rows, 2), None, None] if packed else rows
    total = past + length
    ends = np.full(batch, total - 1, "i4")
    ends[0] -= short
    caches = [normal(batch, 2, past + spare * (past > 0), 16) for _ in range(2)]
    return [*given, *caches, ends, np.array(total, "i4")], length


SIDES: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2}


@pytest.mark.parametrize("kind", GROUPED)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1, "local_window_size": 3},
        {"softcap": 5.0, "scale": 0.5},
        {"smooth_softmax": 1},
    ],
    ids=str,
)
def test_grouped_attention(options: dict[str, Any], packed: bool, kind: str) -> None:
    operands, _ = grouped(kind, packed=packed)
    tables = [normal(20, 8), normal(20, 8)] if "do_rotary" in options else []
    check(
        *model_of(
            "GroupQueryAttention",
            *([*operands, *tables], [7, 8], [0, 1, 2]),
            **(SIDES | options),
        ),
        constants=["i6"],
    )


@pytest.mark.parametrize("spare", [0, 2])
def test_grouped_attention_of_sequences_of_different_lengths(spare: int) -> None:
    """New keys follow those of each sequence, and later rows of the cache are
    undefined. An input gives the positions."""
    operands, _ = grouped("next", short=True, spare=spare)
    operands += [normal(20, 8), normal(20, 8), below(20, 2, 1, dtype="i8")]
    sides: dict[str, Any] = {**SIDES, "do_rotary": 1}
    data, inputs = model_of("GroupQueryAttention", operands, [7, 8], [0, 1, 2], **sides)
    want = theirs(data, inputs)
    total = inputs.pop("i6")
    model = tensorplan.from_onnx(data, values={"i6": total})
    y, *caches = tensorplan.compile(model)(*inputs.values())
    np.testing.assert_allclose(y, want[0], 2e-5, 2e-5)
    for own, peer in zip(caches, want[1:], strict=True):
        assert own.shape == peer.shape
        for sequence, end in enumerate(inputs["i5"] + 1):
            rows = sequence, slice(None), slice(end)
            np.testing.assert_allclose(own[rows], peer[rows], 2e-5, 2e-5)


def test_positions_of_a_prompt() -> None:
    """The positions of a prompt are consecutive, from the first given one."""
    operands, _ = grouped("prompt")
    operands += [normal(20, 8), normal(20, 8), below(9, 2, 5, dtype="i8")]
    data, inputs = model_of(
        *("GroupQueryAttention", operands, [7, 8]), **SIDES, do_rotary=1
    )
    check(data, inputs, constants=["i6"])


def test_grouped_attention_with_a_bias_and_sinks() -> None:
    operands, _ = grouped("prompt")
    operands += [None, None, None, normal(1, 4, 5, 5)]
    data, inputs = model_of("GroupQueryAttention", operands, **SIDES)
    check(data, inputs, constants=["i6"])
    operands[10:] = [None, normal(4)]
    data, inputs = model_of("GroupQueryAttention", operands, [11], **SIDES)
    check(data, inputs, constants=["i6"])


@pytest.mark.parametrize("sinks", [False, True])
def test_grouped_attention_of_half_precision(sinks: bool) -> None:
    bias = normal(1, 4, 5, 5)
    operands, _ = grouped("prompt")
    operands = halves(*operands, None, None, None, bias, normal(4) if sinks else None)
    data, inputs = model_of("GroupQueryAttention", operands, **SIDES)
    check(data, inputs, constants=["i6"], rtol=4e-3)


# Attention of ONNX, of 2 sequences, 5 queries, and heads of size 8.


@pytest.mark.parametrize(("shared", "rank"), [(2, 3), (4, 4)])
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("mask", ["none", "flags", "numbers", "short"])
def test_attention_of_onnx(mask: str, past: int, shared: int, rank: int) -> None:
    """The mask excludes all keys for the first query of the first sequence."""
    keys = 5 + past
    added = normal(2, 4, 5, keys)
    added[0, :, 0] = -np.inf
    flags = below(2, 2, 1, 5, keys).astype(bool)
    flags[..., 0], flags[0, :, 0] = True, False
    masks = {"none": None, "flags": flags, "numbers": added, "short": flags[..., :-2]}
    heads = [normal(2, count, 5, 8) for count in (4, shared, shared)]
    sides: dict[str, Any] = {"is_causal": int(mask != "flags"), "softcap": 3.0}
    if rank == 3:
        heads = [x.transpose(0, 2, 1, 3).reshape(2, 5, -1).copy() for x in heads]
        sides |= {"q_num_heads": 4, "kv_num_heads": shared}
    caches = [normal(2, shared, past, 8) for _ in range(2)] if past else []
    outputs = [0, 1, 2] if past else [0]
    operands = [*heads, masks[mask], *caches]
    data, inputs = model_of("Attention", operands, (), outputs, "", 24, **sides)
    if mask != "short":
        check(data, inputs)
        return
    model = tensorplan.from_onnx(data)  # onnxruntime does not support such masks
    want = ReferenceEvaluator(onnx.load_from_string(data)).run(None, inputs)
    for own, peer in zip(
        tensorplan.compile(model)(*inputs.values()), want, strict=True
    ):
        np.testing.assert_allclose(own, np.asarray(peer), 2e-5, 2e-5)


def test_shared_keys_are_read_in_place() -> None:
    """Shared keys are neither scaled nor repeated for each head of queries."""
    heads = [normal(1, count, 1, 16) for count in (8, 2, 2)]
    caches = [normal(1, 2, 255, 16) for _ in range(2)]
    data, inputs = model_of(
        "Attention", [*heads, None, *caches], (), [0, 1, 2], "", 24, is_causal=1
    )
    check(data, inputs)
    planned = tensorplan.plan(tensorplan.from_onnx(data))
    (pool,) = tensorplan.report(planned)["pools"]
    assert pool["bytes"] <= 8 * 256 * 4 + 1024  # scores and queries


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("zeros", ["half", "packed"])
@pytest.mark.parametrize("rows", [(1,), (2, 3)], ids=str)
def test_weights_of_few_bits(
    rows: tuple[int, ...], zeros: str, size: int, bits: int
) -> None:
    """The last block is partial, and the zero points of a column are padded to
    bytes."""
    depth, columns = 72, 5
    blocks = -(-depth // size)
    operands = [
        normal(*rows, depth),
        below(256, columns, blocks, size * bits // 8, dtype="u1"),
        RNG.uniform(0.01, 0.1, (columns, blocks)).astype("f4"),
        below(256, columns, -(-blocks * bits // 8), dtype="u1"),
        *(None, normal(columns)),
    ]
    if zeros == "half":
        operands[3] = None
    sides: dict[str, Any] = {"K": depth, "N": columns, "bits": bits, "block_size": size}
    check(*model_of("MatMulNBits", operands, [1, 2, 3, 5], **sides), rtol=1e-4)


@pytest.mark.parametrize(
    ("message", "kind", "operands", "attributes"),
    [
        (
            "a mask of shape [2, 1, 9, 9]",
            "Attention",
            [normal(2, 5, 7), normal(7, 24), normal(24), below(2, 2, 1, 9, 9)],
            {"num_heads": 2},
        ),
        (
            "packed keys and values",
            "MultiHeadAttention",
            [normal(2, 5, 2, 3, 4)],
            {"num_heads": 2},
        ),
        (
            "unidirectional = 1 and 9 keys for 5 queries",
            "MultiHeadAttention",
            [normal(2, 5, 8), normal(2, 9, 8), normal(2, 9, 8)],
            {"num_heads": 2, "unidirectional": 1},
        ),
        (
            "input 'i6' computed at run time, expected a constant",
            "GroupQueryAttention",
            grouped("prompt")[0],
            SIDES,
        ),
        (
            "local_window_size = 0, expected -1, or 1 or more",
            "GroupQueryAttention",
            grouped("prompt")[0],
            SIDES | {"local_window_size": 0},
        ),
        (
            "bits = 3, expected 2 or 4 or 8",
            "MatMulNBits",
            [normal(2, 32), below(9, 5, 1, 12, dtype="u1"), normal(5, 1)],
            {"K": 32, "N": 5, "bits": 3, "block_size": 32},
        ),
    ],
)
def test_unsupported_forms(
    message: str, kind: str, operands: list[Any], attributes: dict[str, Any]
) -> None:
    data, _ = model_of(kind, operands, **attributes)
    with pytest.raises(LocatedError) as error:
        tensorplan.from_onnx(data)
    assert f"operation com.microsoft.{kind} is not supported with {message}" in str(
        error.value
    )


def given_lengths(total: list[int], lengths: int = 2, columns: int = 64) -> list[Any]:
    """Returns the operands of a prompt of 2 sequences of 3 keys."""
    rows = [normal(2, 3, width) for width in (columns, 32, 32)]
    ends = np.full(lengths, 2, "i4")
    return [*rows, None, None, ends, np.array(total, "i4")]


PACKED = [normal(2, 32), below(256, 5, 1, 16, dtype="u1"), normal(5, 1)]
HEADS: dict[str, Any] = {"num_heads": 2}
STANDARD: dict[str, Any] = {"domain": "", "opset": 24}
MISFITS: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    (
        "with 8 columns, expected a multiple of 3 heads",
        *("MultiHeadAttention", [normal(2, 5, 8)] * 3, {"num_heads": 3}),
    ),
    (
        "with 0 heads, expected 1 or more",
        *("MultiHeadAttention", [normal(2, 5, 8)] * 3, {"num_heads": 0}),
    ),
    (
        "with number of heads of input 'i1' = 1, expected 2",
        "MultiHeadAttention",
        [normal(2, 5, 8), normal(2, 1, 9, 4), normal(2, 1, 9, 4)],
        HEADS,
    ),
    (
        "with 25 columns of weights, expected a multiple of 3 products",
        *("Attention", [normal(2, 5, 7), normal(7, 25), normal(25)], HEADS),
    ),
    (
        "with sum of qkv_hidden_sizes = 32, expected 24",
        *("Attention", [normal(2, 5, 7), normal(7, 24), normal(24)]),
        HEADS | {"qkv_hidden_sizes": [8, 8, 16]},
    ),
    (
        "with first size of input 'i4' = 3, expected 2",
        "Attention",
        [normal(2, 5, 7), normal(7, 24), normal(24), None, normal(3, 2, 2, 3, 4)],
        HEADS,
    ),
    (
        "with 3 heads of queries, expected a multiple of 2 heads of keys",
        *("GroupQueryAttention", given_lengths([3], columns=48)),
        SIDES | {"num_heads": 3},
    ),
    (
        "with 130 columns, expected a multiple of 8 heads",
        "GroupQueryAttention",
        [normal(2, 3, 130), None, None, *given_lengths([3])[3:]],
        SIDES,
    ),
    (
        "with number of elements of input 'i5' = 3, expected 2",
        *("GroupQueryAttention", given_lengths([3], lengths=3), SIDES),
    ),
    (
        "with input 'i6' = 0, expected 3 or more",
        *("GroupQueryAttention", given_lengths([0]), SIDES),
    ),
    (
        "tensor<2xi32>, a constant of int32[2])",
        *("GroupQueryAttention", given_lengths([3, 3]), SIDES),
    ),
    (
        "with 0 queries, expected 1 or more",
        "GroupQueryAttention",
        [*(normal(2, 0, width) for width in (64, 32, 32)), *given_lengths([3])[3:]],
        SIDES,
    ),
    (
        "with 16 columns, expected a multiple of 10 columns of a head",
        "RotaryEmbedding",
        [normal(2, 5, 16), np.array([3]), normal(20, 5), normal(20, 5)],
        {},
    ),
    (
        "of types (tensor<5xi32>, nothing, ",
        "EmbedLayerNormalization",
        [below(9, 5), None, normal(9, 8), normal(7, 8), None, normal(8), normal(8)],
        {},
    ),
    (
        "with shape of input 'i1' = (5, 1, 16), expected (6, 1, 16)",
        *("MatMulNBits", PACKED, {"K": 32, "N": 6, "bits": 4, "block_size": 32}),
    ),
    (
        "with shape of input 'i1' = (5, 1, 16), expected (5, 1, 8)",
        *("MatMulNBits", PACKED, {"K": 16, "N": 5, "bits": 4, "block_size": 16}),
    ),
    (
        "with 0 heads, expected 1 or more",
        *("Attention", [normal(2, 5, 8)] * 3, STANDARD),
    ),
    (
        "with 3 heads of queries, expected a multiple of 2 heads of keys",
        "Attention",
        [normal(2, 3, 5, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 8)],
        STANDARD,
    ),
    (
        "with number of heads of values = 1, expected 2",
        "Attention",
        [normal(2, 2, 5, 8), normal(2, 2, 5, 8), normal(2, 1, 5, 8)],
        STANDARD,
    ),
    (
        "of types (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>)",
        *("Attention", [normal(5, 8)] * 3, STANDARD),
    ),
    (
        "tensor<2x2x5x8xf32>, tensor<f32>)",
        *("Attention", [*[normal(2, 2, 5, 8)] * 3, normal()], STANDARD),
    ),
    (
        "with a mask of 9 keys, expected 5 or fewer",
        *("Attention", [*[normal(2, 2, 5, 8)] * 3, normal(5, 9)], STANDARD),
    ),
]


@pytest.mark.parametrize(("message", "kind", "operands", "attributes"), MISFITS)
def test_mismatched_sizes_are_rejected(
    message: str, kind: str, operands: list[Any], attributes: dict[str, Any]
) -> None:
    """The importer rejects sizes that onnxruntime rejects."""
    data, inputs = model_of(kind, operands, **attributes)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        theirs(data, inputs)
    known = {name: inputs[name] for name in ["i6"] if name in inputs}
    with pytest.raises(LocatedError) as error:
        tensorplan.from_onnx(data, values=known)
    assert message in str(error.value)
    assert "is not supported" in str(error.value)


@pytest.mark.parametrize("level", ["EXTENDED", "ALL"])
def test_a_network_that_onnxruntime_has_optimized(level: str, tmp_path: Any) -> None:
    model = NETWORKS["bert"](17, large=False)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    path = tmp_path / "optimized.onnx"
    options.optimized_model_filepath = str(path)
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = getattr(levels, f"ORT_ENABLE_{level}")
    ort.InferenceSession(model.SerializeToString(), options)
    optimized = onnx.load(str(path))
    assert any(node.domain == "com.microsoft" for node in optimized.graph.node)
    x = normal(*(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim))
    check(optimized.SerializeToString(), {"x": x}, rtol=1e-4)
