"""Tests the cost model (`analysis/cost.py`) against FLOPs, bytes and iterations that
were counted by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser

import tensorplan
from tensorplan.analysis.cost import (
    BYTES_PER_NS,
    CONTRACTED_PER_NS,
    FAR_BYTES_PER_NS,
    FEATURE_BYTES_PER_NS,
    FEATURE_PER_NS,
    LAUNCH,
    LIBRARY,
    MATRIX,
    MIXED_PER_NS,
    NEAR,
    PACKED_PER_NS,
    PANEL_BYTES_PER_NS,
    REORDERED_PER_NS,
    SIGNED_PER_NS,
    TRANSPOSED_PER_NS,
    arithmetic,
    duration,
    moved,
    repetitions,
    time,
    time_to_copy,
    time_to_move,
    time_to_pack,
    time_to_read_again,
    time_together,
    times,
)
from tensorplan.analysis.flops import flops, window_meets
from tensorplan.analysis.loops import ITERATIONS
from tensorplan.dialects.tgraph.windows import WindowDimension


def parsed(arguments: str, body: str) -> ModuleOp:
    text = f"func.func @main({arguments}) {{\n{body}\nfunc.return\n}}"
    module = Parser(tensorplan.context(), text).parse_module()
    module.verify()
    return module


def only(module: ModuleOp, name: str) -> Operation:
    (op,) = [op for op in module.walk() if op.name == f"tgraph.{name}"]
    return op


def product(
    batch: str,
    lhs: str,
    rhs: str,
    result: str,
    elements: tuple[str, str, str] = ("f32", "f32", "f32"),
) -> Operation:
    dim = 1 if batch else 0
    left, right = f"tensor<{lhs}x{elements[0]}>", f"tensor<{rhs}x{elements[1]}>"
    body = f"""%r = tgraph.dot_general %a, %b {{
      lhs_batching_dimensions = array<i64{batch}>,
      rhs_batching_dimensions = array<i64{batch}>,
      lhs_contracting_dimensions = array<i64: {dim + 1}>,
      rhs_contracting_dimensions = array<i64: {dim}>}}
      : ({left}, {right}) -> tensor<{result}x{elements[2]}>"""
    module = parsed(f"%a: {left}, %b: {right}", body)
    return only(module, "dot_general")


def test_flops_of_a_matrix_product() -> None:
    op = product("", "256x64", "64x10", "256x10")
    assert flops(op) == 2 * 256 * 64 * 10
    assert moved(op) == 4 * (256 * 64 + 64 * 10 + 256 * 10)


def test_flops_of_a_batched_matrix_product() -> None:
    op = product(": 0", "96x128x64", "96x64x128", "96x128x128")
    assert flops(op) == 201_326_592
    assert moved(op) == 12_582_912


def test_start_up_time_of_products() -> None:
    """The library's start-up time counts for large products, but not for small products
    and products with a vector, which are loop nests."""

    def to_start(op: Operation) -> int:
        packing = sum(time_to_pack(op, value) for value in op.operands)
        return time(op) - max(time_to_move(moved(op)), arithmetic(op)) - packing

    one = product("", "9x8", "8x8", "9x8")
    many = product(": 0", "6x9x8", "6x8x8", "6x9x8")
    small = product(": 0", "6x8x8", "6x8x8", "6x8x8")
    vector = product("", "4x8", "8x1", "4x1")
    group = only(parsed("%a: tensor<64x8xf32>, %b: tensor<8x64xf32>", GROUP), "fusion")
    assert to_start(one) == to_start(group) == LAUNCH + LIBRARY + MATRIX
    assert to_start(many) == LAUNCH + LIBRARY + 6 * MATRIX
    assert to_start(vector) == to_start(small) == LAUNCH


def test_time_to_pack_the_operands_of_a_product() -> None:
    """Packing a matrix row by row takes half the time of transposing it."""
    op = product("", "4x512", "512x1024", "4x1024")
    left, right = op.operands
    assert time_to_pack(op, left) == 0
    bytes = 4 * 512 * 1024
    assert time_to_pack(op, right) == round(2 * bytes / PACKED_PER_NS)
    along = only(
        parsed(
            "%a: tensor<4x512xf32>, %b: tensor<1024x512xf32>",
            """%r = tgraph.dot_general %a, %b {
              lhs_contracting_dimensions = array<i64: 1>,
              rhs_contracting_dimensions = array<i64: 1>}
              : (tensor<4x512xf32>, tensor<1024x512xf32>) -> tensor<4x1024xf32>""",
        ),
        "dot_general",
    )
    assert time_to_pack(along, along.operands[0]) == 0
    assert time_to_pack(along, along.operands[1]) == round(
        2 * bytes / TRANSPOSED_PER_NS
    )
    assert time(op) > max(time_to_move(moved(op)), arithmetic(op)) + time_to_pack(
        op, right
    )
    transposed = only(
        parsed(
            "%a: tensor<512x4xf32>, %b: tensor<512x8xf32>",
            """%r = tgraph.dot_general %a, %b {
              lhs_contracting_dimensions = array<i64: 0>,
              rhs_contracting_dimensions = array<i64: 0>}
              : (tensor<512x4xf32>, tensor<512x8xf32>) -> tensor<4x8xf32>""",
        ),
        "dot_general",
    )
    assert time_to_pack(transposed, transposed.operands[0]) == time_to_move(16384)
    vector = product("", "512x512", "512x1", "512x1")
    assert not any(time_to_pack(vector, value) for value in vector.operands)


@pytest.mark.parametrize("rows", ["32", "64"])
@pytest.mark.parametrize("columns", ["1024", "2048"])
def test_matrices_are_read_again_where_they_lie(rows: str, columns: str) -> None:
    """By products of few rows, if they are in a core's cache; also in groups."""
    shapes = f"{rows}x512", f"512x{columns}", f"{rows}x{columns}"
    left, right, result = (f"tensor<{shape}xf32>" for shape in shapes)
    group = f"""%r = tgraph.fusion(%x = %a, %y = %b) : ({left}, {right}) -> {result} {{
      %0 = tgraph.dot_general %x, %y {{lhs_contracting_dimensions = array<i64: 1>,
        rhs_contracting_dimensions = array<i64: 0>}} : ({left}, {right}) -> {result}
      %1 = tgraph.negate %0 : {result}
      tgraph.yield %1 : {result}
    }}"""
    alone = product("", *shapes)
    grouped = only(parsed(f"%a: {left}, %b: {right}", group), "fusion")
    bytes = 4 * 512 * int(columns)
    few = round(bytes / PANEL_BYTES_PER_NS)
    packed = max(time_to_move(bytes), round(2 * bytes / PACKED_PER_NS))
    want = few if (rows, columns) == ("32", "1024") else packed
    for op in (alone, grouped):
        assert time_to_read_again(op, op.operands[1]) == want
    assert few < packed


def test_parameters_are_packed_before_the_program_runs() -> None:
    """Those of products of 8-bit integers, also where a loop reads a view of them."""
    body = """%w = tgraph.reshape %p : (tensor<16384xi8>) -> tensor<256x64xi8>
    %n = tgraph.while %x, %w, %v : (tensor<64x256xi8>, tensor<256x64xi8>,
        tensor<256x64xi8>) -> tensor<64x256xi8> {
    ^bb0(%c: !tgraph.variable<tensor<64x256xi8>>, %a: tensor<256x64xi8>,
         %b: tensor<256x64xi8>):
      %t = tgraph.constant <true> : tensor<i1>
      tgraph.yield %t : tensor<i1>
    } do {
    ^bb0(%c: !tgraph.variable<tensor<64x256xi8>>, %a: tensor<256x64xi8>,
         %b: tensor<256x64xi8>):
      %0 = tgraph.read %c : tensor<64x256xi8>
      %1 = tgraph.dot_general %0, %a {lhs_contracting_dimensions = array<i64: 1>,
        rhs_contracting_dimensions = array<i64: 0>}
        : (tensor<64x256xi8>, tensor<256x64xi8>) -> tensor<64x64xi32>
      %2 = tgraph.dot_general %0, %b {lhs_contracting_dimensions = array<i64: 1>,
        rhs_contracting_dimensions = array<i64: 0>}
        : (tensor<64x256xi8>, tensor<256x64xi8>) -> tensor<64x64xi32>
      tgraph.yield
    }"""
    module = parsed(
        "%p: tensor<16384xi8> {tgraph.parameter}, %v: tensor<256x64xi8>, "
        "%x: tensor<64x256xi8>",
        body,
    )
    packed, other = (op for op in module.walk() if op.name == "tgraph.dot_general")
    assert time_to_pack(packed, packed.operands[1]) == 0
    assert time_to_pack(other, other.operands[1]) == time_to_move(256 * 64)
    first, second = times([packed, other])
    assert second - first == time_to_pack(other, other.operands[1])


def test_rates_of_products_of_bytes() -> None:
    shapes = "", "128x256", "256x64", "128x64"
    for elements, rate in (
        (("ui8", "i8", "i32"), MIXED_PER_NS),
        (("i8", "i8", "i32"), SIGNED_PER_NS),
        (("f32", "f32", "f32"), CONTRACTED_PER_NS),
    ):
        op = product(*shapes, elements)
        assert arithmetic(op) == round(flops(op) / rate)


def test_time_together_is_that_of_the_group() -> None:
    group = only(parsed("%a: tensor<64x8xf32>, %b: tensor<8x64xf32>", GROUP), "fusion")
    members = [op for op in group.regions[0].block.ops if op.results]
    assert time_together(members) == time(group) < sum(map(time, members))


def test_columns_of_a_product_fill_vectors() -> None:
    few, more, most = (
        product("", "4096x64", f"64x{n}", f"4096x{n}") for n in (3, 16, 32)
    )
    assert arithmetic(few) == arithmetic(more) == arithmetic(most) // 2


@pytest.mark.parametrize(("columns", "read_as"), [(3, 16), (16, 16), (40, 48)])
def test_gather_reads_whole_cache_lines(columns: int, read_as: int) -> None:
    module = parsed(
        f"%a: tensor<999x{columns}xf32>, %i: tensor<4096x1xi32>",
        f"""%r = tgraph.gather %a, %i {{offset_dims = array<i64: 1>,
          collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>,
          index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, {columns}>}}
          : (tensor<999x{columns}xf32>, tensor<4096x1xi32>)
          -> tensor<4096x{columns}xf32>""",
    )
    gather = only(module, "gather")
    assert moved(gather) == 4096 * 4 * (columns + columns + 1)
    bytes = 4096 * 4 * (columns + read_as + 1)
    assert time(gather) == LAUNCH + time_to_move(bytes)


def convolution(
    image: str,
    kernel: str,
    result: str,
    stride: int = 1,
    low: int = 1,
    high: int = 1,
    holes: int = 1,
    groups: int = 1,
    batches: int = 1,
    labels: str = "b01f_01io->b01f",
) -> Operation:
    body = f"""%r = tgraph.convolution %x, %w {{dim_labels = "{labels}",
      window_strides = array<i64: {stride}, {stride}>,
      padding_low = array<i64: {low}, {low}>,
      padding_high = array<i64: {high}, {high}>,
      lhs_dilation = array<i64: {holes}, {holes}>,
      rhs_dilation = array<i64: 1, 1>, feature_group_count = {groups} : i64,
      batch_group_count = {batches} : i64}}
      : (tensor<{image}xf32>, tensor<{kernel}xf32>) -> tensor<{result}xf32>"""
    module = parsed(f"%x: tensor<{image}xf32>, %w: tensor<{kernel}xf32>", body)
    return only(module, "convolution")


@pytest.mark.parametrize(
    ("op", "products"),
    [
        # 3x3 at 6x6 places. Each dimension has 18 pairs of a place and a kernel
        # element, all inside the image.
        (convolution("2x8x8x3", "3x3x3x4", "2x6x6x4", low=0, high=0), 18 * 18),
        # With padding: 24 pairs, 2 of which fall on the padding.
        (convolution("2x8x8x3", "3x3x3x4", "2x8x8x4"), 22 * 22),
        # With stride 2: 12 pairs, the first of which falls on the padding.
        (convolution("2x8x8x3", "3x3x3x4", "2x4x4x4", stride=2), 11 * 11),
        # The gradient of the previous convolution: 8 elements with 7 holes.
        (convolution("2x8x8x3", "3x3x3x4", "2x15x15x4", holes=2), 22 * 22),
        # A kernel of one element with stride 2.
        (convolution("2x8x8x3", "1x1x3x4", "2x4x4x4", 2, 0, -1), 4 * 4),
    ],
)
def test_convolution_skips_padding_and_holes(op: Operation, products: int) -> None:
    assert flops(op) == 2 * products * 2 * 3 * 4


def test_flops_of_a_grouped_convolution() -> None:
    op = convolution("1x8x8x6", "3x3x2x12", "1x8x8x12", groups=3)
    assert flops(op) == 2 * 22 * 22 * 2 * 12


def test_output_features_of_a_convolution_fill_vectors() -> None:
    few, more, most = (
        convolution("2x64x64x16", f"3x3x16x{n}", f"2x64x64x{n}") for n in (3, 16, 32)
    )
    assert flops(few) * 16 == flops(more) * 3
    assert time(few) == time(more) < time(most)


def test_rates_of_depthwise_convolutions() -> None:
    shapes = "4x32x32x64", "3x3x1x64", "4x32x32x64"
    image, bytes = shapes[0], 4 * 4 * 32 * 32 * 64
    forward = convolution(*shapes, groups=64)
    loading = 2 * bytes / FEATURE_BYTES_PER_NS
    assert arithmetic(forward) == round(flops(forward) / FEATURE_PER_NS + loading)
    for size in (3, 5):
        written = 4 * size * size * 64
        weights = gradient_of_weights("f01b_i01o->01bf", image, size)
        loading = (bytes + written) / FEATURE_BYTES_PER_NS
        assert arithmetic(weights) == round(flops(weights) / FEATURE_PER_NS + loading)
    last = gradient_of_weights("f01b_i01o->01bf", image, 5)
    first = gradient_of_weights("fb01_io01->01bf", "4x64x32x32", 5)
    assert time(first) == time(last)


def gradient_of_weights(labels: str, image: str, size: int) -> Operation:
    low, result = size // 2, f"{size}x{size}x1x64"
    return convolution(
        *(image, image, result), low=low, high=low, batches=64, labels=labels
    )


def test_native_code_computes_depthwise_convolutions_with_channels_first() -> None:
    """They need no conversion, and short rows fill vectors."""
    labels = "bf01_01io->bf01"
    shapes = "2x16x8x8", "3x3x1x16", "2x16x8x8"
    first = convolution(*shapes, labels=labels, groups=16)
    last = convolution("2x8x8x16", "3x3x1x16", "2x8x8x16", groups=16)
    assert time(first) == time(last)
    few = convolution("2x16x8x7", "3x3x1x16", "2x16x8x7", labels=labels, groups=16)
    computing = flops(few) * 8 / 7 / FEATURE_PER_NS
    loading = 2 * 4 * 2 * 16 * 8 * 7 / FEATURE_BYTES_PER_NS
    assert arithmetic(few) == round(computing + loading)


def test_images_with_channels_first_are_converted() -> None:
    labels = "bf01_01io->bf01"
    last = convolution("2x8x8x16", "3x3x16x16", "2x8x8x16")
    first = convolution("2x16x8x8", "3x3x16x16", "2x16x8x8", labels=labels)
    bytes = 2 * 4 * 2 * 16 * 8 * 8
    assert time(first) - time(last) == 2 * round(bytes / REORDERED_PER_NS)
    point = convolution("2x16x8x8", "1x1x16x16", "2x16x8x8", 1, 0, 0, labels=labels)
    assert not any(time_to_pack(point, value) for value in point.operands)


def test_data_that_exceeds_the_cache_comes_from_memory() -> None:
    near, far = NEAR / BYTES_PER_NS, NEAR / FAR_BYTES_PER_NS
    assert time_to_move(NEAR) == round(near) < far
    assert time_to_move(3 * NEAR) == round(near + 2 * far)


@pytest.mark.parametrize("mark", ["", " {tgraph.parameter}"])
def test_parameters_of_convolutions_are_packed_before_the_program_runs(
    mark: str,
) -> None:
    body = """%r = tgraph.convolution %x, %w {dim_labels = "b01f_oi01->b01f",
      window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>,
      padding_high = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>,
      rhs_dilation = array<i64: 1, 1>, feature_group_count = 1 : i64,
      batch_group_count = 1 : i64}
      : (tensor<1x8x8x16xf32>, tensor<16x16x3x3xf32>) -> tensor<1x8x8x16xf32>"""
    arguments = f"%x: tensor<1x8x8x16xf32>, %w: tensor<16x16x3x3xf32>{mark}"
    op = only(parsed(arguments, body), "convolution")
    converting = round(2 * 4 * 16 * 16 * 9 / REORDERED_PER_NS)
    assert time_to_pack(op, op.operands[1]) == (0 if mark else converting)


@pytest.mark.parametrize(("columns", "moved_as"), [(3, 8), (16, 16), (24, 24)])
def test_short_strided_rows_are_moved_as_vectors(columns: int, moved_as: int) -> None:
    part = f"tensor<4096x{columns}xf32>"
    module = parsed(
        "%a: tensor<4096x24xf32>",
        f"""%s = tgraph.slice %a {{start_indices = array<i64: 0, 0>,
          limit_indices = array<i64: 4096, {columns}>, strides = array<i64: 1, 1>}}
          : (tensor<4096x24xf32>) -> {part}
        %n = tgraph.negate %s : {part}""",
    )
    negate = only(module, "negate")
    assert moved(negate) == 2 * 4096 * 4 * columns
    bytes = 4096 * 4 * (columns + moved_as)
    assert time(negate) == LAUNCH + time_to_move(bytes)


def test_parts_of_an_in_place_concatenation_are_strided() -> None:
    """The time is the same on tensors and on memrefs with strides."""
    body = """%x = tgraph.negate %a : tensor<4096x3xf32>
      %y = tgraph.negate %b : tensor<4096x21xf32>
      %r = tgraph.concatenate %x, %y {dimension = 1 : i64, tgraph.in_place}
        : (tensor<4096x3xf32>, tensor<4096x21xf32>) -> tensor<4096x24xf32>"""
    module = parsed("%a: tensor<4096x3xf32>, %b: tensor<4096x21xf32>", body)
    first = next(op for op in module.walk() if op.name == "tgraph.negate")
    assert time(first) == LAUNCH + time_to_move(4096 * 4 * (3 + 8))
    strided = "memref<4096x3xf32, strided<[24, 1]>>"
    body = f"tgraph.negate %a outs(%r) : (memref<4096x3xf32>) -> {strided}"
    module = parsed(f"%a: memref<4096x3xf32>, %r: {strided}", body)
    assert time(only(module, "negate")) == time(first)


windows = st.integers(1, 5)


@given(st.integers(1, 9), windows, windows, st.integers(-3, 5), windows, windows)
def test_window_meets_agrees_with_counting(
    size: int, window: int, stride: int, low: int, base: int, dilation: int
) -> None:
    places = 7
    tensor = {base * element for element in range(size)}
    met = [
        stride * place + dilation * element - low in tensor
        for place in range(places)
        for element in range(window)
    ]
    along = WindowDimension(window, stride, low, 0, base, dilation)
    assert window_meets(places, size, along) == sum(met)


@pytest.mark.parametrize(
    ("op", "arguments", "count", "bytes"),
    [
        ("add %a, %a", "4x8 -> 4x8", 32, 256),  # an operand is read once
        ("exponential %a", "4x8 -> 4x8", 20 * 32, 256),
        ('reduce %a {kind = "add", dimensions = array<i64: 1>}', "4x8 -> 4", 28, 144),
        (
            'reduce_window %a {kind = "maximum", window_dimensions = array<i64: 1, 2>,'
            "window_strides = array<i64: 1, 2>, padding_low = array<i64: 0, 0>, "
            "padding_high = array<i64: 0, 0>, base_dilations = array<i64: 1, 1>, "
            "window_dilations = array<i64: 1, 1>}",
            "4x8 -> 4x4",
            16,
            192,
        ),
        (
            'reduce_window %a {kind = "add", window_dimensions = array<i64: 4, 1>,'
            "window_strides = array<i64: 1, 1>, padding_low = array<i64: 3, 0>, "
            "padding_high = array<i64: 0, 0>, base_dilations = array<i64: 1, 1>, "
            "window_dilations = array<i64: 1, 1>}",
            "4x8 -> 4x8",
            24,  # a cumulative sum adds each element once
            256,
        ),
        ("transpose %a {permutation = array<i64: 1, 0>}", "4x8 -> 8x4", 0, 0),
        ("concatenate %a, %a {dimension = 0 : i64}", "4x8 -> 8x8", 0, 384),
        ("iota {dimension = 0 : i64}", "4x8 -> 4x8", 0, 128),
        ("bitcast_convert %a", "4x8 -> 4x8", 0, 256),
    ],
)
def test_flops_and_bytes_of_other_operations(
    op: str, arguments: str, count: int, bytes: int
) -> None:
    source, result = (f"tensor<{part}xf32>" for part in arguments.split(" -> "))
    name, _, rest = op.partition(" ")
    inputs = ", ".join([source] * rest.count("%"))
    body = f"%r = tgraph.{op} : ({inputs}) -> {result}"
    found = only(parsed(f"%a: {source}", body), name)
    assert (flops(found), moved(found)) == (count, bytes)
    assert (time(found) == 0) == (bytes == 0)


@pytest.mark.parametrize(
    ("op", "each"),
    [
        ("add %a, %a", 2),
        ("multiply %a, %a", 6),
        ("exponential %a", 20 + 40 + 40),  # a real exponential, a cosine and a sine
    ],
)
def test_flops_of_complex_elementwise_operations(op: str, each: int) -> None:
    type = "tensor<4x8xcomplex<f32>>"
    name, _, _ = op.partition(" ")
    body = f"%r = tgraph.{op} : {type}"
    assert flops(only(parsed(f"%a: {type}", body), name)) == each * 32


def test_flops_of_a_complex_matrix_product() -> None:
    body = """%r = tgraph.dot_general %a, %b {
      lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>}
      : (tensor<4x8xcomplex<f32>>, tensor<8x3xcomplex<f32>>)
      -> tensor<4x3xcomplex<f32>>"""
    arguments = "%a: tensor<4x8xcomplex<f32>>, %b: tensor<8x3xcomplex<f32>>"
    assert flops(only(parsed(arguments, body), "dot_general")) == 8 * 4 * 8 * 3


def test_times_estimates_equal_operations_once() -> None:
    type = "tensor<512x5xf32>"
    module = parsed(
        f"%a: {type}",
        f"""%b = tgraph.negate %a : {type}
      %c = tgraph.negate %b : {type}
      %d = tgraph.negate %c : {type}
      %r = tgraph.concatenate %c, %d {{dimension = 1 : i64, tgraph.in_place}}
        : ({type}, {type}) -> tensor<512x10xf32>""",
    )
    asked: list[Operation] = []

    def of(op: Operation) -> int:
        asked.append(op)
        return time(op)

    (func,) = module.ops
    ops = list(func.regions[0].block.ops)
    b, c, d, *others = ops
    assert times(ops, of) == list(map(time, ops))
    # %d reads and writes rows that lie apart; %c only writes such rows.
    assert asked == [b, c, d, *others]
    assert time(b) < time(c) < time(d)
    asked.clear()
    assert times([b, b.clone(), d], of) == [time(b), time(b), time(d)]
    assert asked == [b, d]


def test_dynamic_slices_and_updates_move_only_the_slice() -> None:
    module = parsed(
        "%a: tensor<64x8xf32>, %b: tensor<1x8xf32>, %i: tensor<i32>",
        """%s = tgraph.dynamic_slice %a, %i, %i {slice_sizes = array<i64: 1, 8>}
          : (tensor<64x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
        %u = tgraph.dynamic_update_slice %a, %b, %i, %i : (tensor<64x8xf32>,
          tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<64x8xf32>""",
    )
    assert moved(only(module, "dynamic_slice")) == 2 * 32 + 4
    assert moved(only(module, "dynamic_update_slice")) == 2 * 32
    assert flops(module) == 0


def test_flops_of_scatter_and_select_and_scatter() -> None:
    module = parsed(
        "%a: tensor<9x4xf32>, %i: tensor<3xi32>, %u: tensor<3x4xf32>, %g: "
        "tensor<3x2xf32>",
        """%r = tgraph.scatter %a, %i, %u {kind = "add",
          update_window_dims = array<i64: 1>, inserted_window_dims = array<i64: 0>,
          scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64}
          : (tensor<9x4xf32>, tensor<3xi32>, tensor<3x4xf32>) -> tensor<9x4xf32>
        %s = tgraph.select_and_scatter %a, %g {kind = "maximum",
          window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 3, 2>,
          padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>}
          : (tensor<9x4xf32>, tensor<3x2xf32>) -> tensor<9x4xf32>""",
    )
    assert flops(only(module, "scatter")) == 12
    assert moved(only(module, "scatter")) == 3 * 48 + 12
    assert flops(only(module, "select_and_scatter")) == 6 * 5 + 6


def test_a_pooling_gradient_takes_longer_along_the_last_dimension() -> None:
    """A window of size 1 in the last dimension lets the kernel compute in vectors."""

    def pooled(window: tuple[int, int]) -> int:
        rows, columns = (64 // n for n in window)
        gradient, moves = f"tensor<{rows}x{columns}xf32>", f"{window[0]}, {window[1]}"
        body = f"""%s = tgraph.select_and_scatter %a, %g {{kind = "maximum",
          window_dimensions = array<i64: {moves}>, window_strides = array<i64: {moves}>,
          padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>}}
          : (tensor<64x64xf32>, {gradient}) -> tensor<64x64xf32>"""
        module = parsed(f"%a: tensor<64x64xf32>, %g: {gradient}", body)
        return time(only(module, "select_and_scatter"))

    assert 5 * pooled((2, 1)) < pooled((1, 2))
    assert pooled((4, 2)) == pooled((1, 2))


GROUP = """
%r = tgraph.fusion(%x = %a, %y = %b)
     : (tensor<64x8xf32>, tensor<8x64xf32>) -> tensor<64x64xf32> {
  %0 = tgraph.dot_general %x, %y {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<64x8xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
  %1 = tgraph.negate %0 : tensor<64x64xf32>
  %2 = tgraph.exponential %1 : tensor<64x64xf32>
  tgraph.yield %2 : tensor<64x64xf32>
}"""


def test_flops_and_bytes_of_a_fusion() -> None:
    module = parsed("%a: tensor<64x8xf32>, %b: tensor<8x64xf32>", GROUP)
    group = only(module, "fusion")
    assert flops(group) == flops(module) == 64 * 64 * (2 * 8 + 1 + 20)
    assert moved(group) == 4 * (64 * 8 + 8 * 64 + 64 * 64)


LOOP = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %n, %r = tgraph.while %zero, %x : (tensor<i32>, tensor<8xf32>)
                                    -> (tensor<i32>, tensor<8xf32>) {
  ^bb0(%vi: !tgraph.variable<tensor<i32>>, %vx: !tgraph.variable<tensor<8xf32>>):
    %i = tgraph.read %vi : tensor<i32>
    %end = tgraph.constant<500 : i32> : tensor<i32>
    %more = tgraph.compare %i, %end {direction = "DIRECTION"}
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %more : tensor<i1>
  } do {
  ^bb1(%vi: !tgraph.variable<tensor<i32>>, %vx: !tgraph.variable<tensor<8xf32>>):
    %i = tgraph.read %vi : tensor<i32>
    %a = tgraph.read %vx : tensor<8xf32>
    %one = tgraph.constant<1 : i32> : tensor<i32>
    %j = tgraph.add %i, %one : tensor<i32>
    %b = tgraph.sqrt %a : tensor<8xf32>
    tgraph.assign %vi, %j : tensor<i32>
    tgraph.assign %vx, %b : tensor<8xf32>
    tgraph.yield
  }
  func.return %r : tensor<8xf32>
}
"""


def loop(direction: str) -> ModuleOp:
    text = LOOP.replace("DIRECTION", direction)
    return Parser(tensorplan.context(), text).parse_module()


@pytest.mark.parametrize("trips", [ITERATIONS, 500])
def test_loop_costs_its_iterations_at_every_level(trips: int) -> None:
    """The number of iterations of a loop that ends with `NE` is assumed."""
    module = loop("LT" if trips == 500 else "NE")
    assert flops(module) == trips * (1 + 1 + 8)
    assert repetitions(only(module, "sqrt")) == trips
    assert time(module) >= trips * 3 * LAUNCH
    planned = tensorplan.plan(module)
    assert flops(planned) == trips * (1 + 1 + 8)
    assert tensorplan.report(planned)["flops"] == trips * (1 + 1 + 8)


def parallel(end: str) -> str:
    """A parallel loop with an outer upper bound of 9 and an inner one of `end`."""
    types = ", ".join(6 * ["index"])
    return f"""
      "scf.parallel"(%2, %2, %9, {end}, %3, %2) <{{
        operandSegmentSizes = array<i32: 2, 2, 2, 0>}}> ({{
      ^body(%i: index, %j: index):
        REPEATED
        scf.reduce
      }}) : ({types}) -> ()"""


@pytest.mark.parametrize(
    ("loop", "trips"),
    [
        ("scf.for %i = %2 to %9 step %3 { REPEATED }", 3),
        ("scf.for %i = %9 to %2 step %3 { REPEATED }", 0),
        ("scf.for %i = %2 to %n step %3 { REPEATED }", ITERATIONS),
        ("scf.for %i = %2 to %9 step %n { REPEATED }", ITERATIONS),
        ("affine.for %i = 1 to 8 step 2 { REPEATED }", 4),
        ("affine.for %i = 0 to %n { REPEATED }", ITERATIONS),
        (parallel("%9"), 12),
        (parallel("%n"), ITERATIONS),
        (
            "scf.for %i = %2 to %9 step %3 { affine.for %j = 0 to %n { REPEATED } }",
            3 * ITERATIONS,
        ),
        ("scf.if %c { REPEATED }", 1),
    ],
)
def test_repetitions_of_upstream_loops(loop: str, trips: int) -> None:
    repeated = "tgraph.exponential %x outs(%y) : memref<8xf32>"
    module = parsed(
        "%c: i1, %n: index, %x: memref<8xf32>, %y: memref<8xf32>",
        f"""%2 = arith.constant 2 : index
        %3 = arith.constant 3 : index
        %9 = arith.constant 9 : index
        {loop.replace("REPEATED", repeated)}""",
    )
    op = only(module, "exponential")
    assert repetitions(op) == trips
    assert flops(module) == trips * flops(op)


def test_branch_costs_its_more_expensive_side() -> None:
    module = parsed(
        "%p: tensor<i1>, %x: tensor<8xf32>",
        """%r = tgraph.if %p, %x : (tensor<i1>, tensor<8xf32>) -> tensor<8xf32> {
        ^bb0(%a: tensor<8xf32>):
          %1 = tgraph.exponential %a : tensor<8xf32>
          tgraph.yield %1 : tensor<8xf32>
        } else {
        ^bb0(%a: tensor<8xf32>):
          %1 = tgraph.negate %a : tensor<8xf32>
          tgraph.yield %1 : tensor<8xf32>
        }""",
    )
    assert flops(module) == 20 * 8


def test_flops_of_bodies_of_reductions_and_sorts() -> None:
    module = parsed(
        "%x: tensor<4x8xf32>, %low: tensor<f32>",
        """%r = tgraph.reduce_by %x, %low {dimensions = array<i64: 1>}
            : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32> {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = tgraph.maximum %a, %b : tensor<f32>
          tgraph.yield %c : tensor<f32>
        }
        %s = tgraph.sort %x {dimension = 1 : i64} : tensor<4x8xf32> {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %0 = tgraph.compare %a, %b {direction = "GT"}
            : (tensor<f32>, tensor<f32>) -> tensor<i1>
          tgraph.yield %0 : tensor<i1>
        }""",
    )
    assert flops(only(module, "reduce_by")) == 4 * 7
    assert flops(only(module, "sort")) == 4 * 8 * 3  # log2(8) rounds of merging


COPIES = """
%b = tgraph.exponential %a : tensor<65536xf32, "cpu:0">
%c = tgraph.device_copy %b
  : (tensor<65536xf32, "cpu:0">) -> tensor<65536xf32, "cpu:1">
%d = tgraph.negate %a : tensor<65536xf32, "cpu:0">
%e = tgraph.negate %c : tensor<65536xf32, "cpu:1">
"""


def test_devices_run_concurrently() -> None:
    module = parsed('%a: tensor<65536xf32, "cpu:0">', COPIES)
    ops = [op for op in module.walk() if op.name.startswith("tgraph.")]
    exponential, copy, negate, _ = map(time, ops)
    assert copy == time_to_copy(4 * 65536)
    assert duration(module) == exponential + copy + negate + copy // 8


def test_time_of_a_pooling_gradient_of_a_scalar() -> None:
    """A scalar has no last dimension for the rule above."""
    module = parsed(
        "%x: tensor<f32>, %y: tensor<f32>",
        """%0 = tgraph.select_and_scatter %x, %y {kind = "maximum",
        window_dimensions = array<i64>, window_strides = array<i64>,
        padding_low = array<i64>, padding_high = array<i64>} : tensor<f32>""",
    )
    assert arithmetic(only(module, "select_and_scatter")) > 0
