"""Faults of operations whose destination overlaps operands that they still read."""

from planted import (
    SQUARE,
    M,
    arena,
    branch,
    copy,
    each,
    free,
    lines,
    loop,
    parallel,
    plant,
    program,
    squares,
    view,
)

EIGHT = "memref<8xf32>"
REVERSED = "(d0) -> (15 - d0)"


def over(operation: str, at: str, first: str = "", read: str = "") -> str:
    """Writes %a, and computes %b from it, in place if `at` is %c0."""
    return program(
        *(arena(alignment=4), view("a"), view("b", at)),
        *(first or copy("x", "a"), operation, read or copy("b", "y"), free()),
    )


def itself(operation: str, target: str) -> str:
    """Runs an operation that reads %a and writes `target`: %a or the disjoint %b."""
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), operation),
        *(copy(target, "y"), free()),
    )


@plant(sound="b", faulty="a")
def a_reversed_map(target: str) -> str:
    return itself(each("a", target, read=REVERSED), target)


@plant(sound="b", faulty="a")
def a_reversed_map_in_a_loop(target: str) -> str:
    return program(
        loop(
            *(arena(), view("a"), view("b", "%c64"), copy("x", "a")),
            *(each("a", target, read=REVERSED), copy(target, "y"), free()),
        )
    )


@plant(sound="b", faulty="a")
def a_rotated_map(target: str) -> str:
    return itself(each("a", target, read="(d0) -> ((d0 + 15) mod 16)"), target)


@plant(sound="b", faulty="a")
def a_first_element_for_all(target: str) -> str:
    return itself(each("a", target, read="(d0) -> (0)"), target)


@plant(sound="%c64", faulty="%c0")
def neighbors_in_one_buffer(at: str) -> str:
    """Elements 1 to 15 are computed from elements 0 to 14."""
    part, to = "memref<15xf32>", "memref<15xf32, strided<[1], offset: 1>>"
    return over(
        lines(
            f"%from = memref.subview %a[0] [15] [1] : {M} to {part}",
            f"%to = memref.subview %b[1] [15] [1] : {M} to {to}",
            each("from", "to", part, to=to),
        ),
        at,
        first=copy("x", "a"),
        read=lines(
            f"%out = memref.subview %y[1] [15] [1] : {M} to {to}",
            copy("to", "out", to),
        ),
    )


@plant(sound="c", faulty="a")
def overlapping_parts(source: str) -> str:
    """Element i + 4 is computed from element i of the same buffer, or of a copy."""
    to = "memref<8xf32, strided<[1], offset: 4>>"
    return program(
        *(arena(), view("a"), view("c", "%c64"), copy("x", "a"), copy("x", "c")),
        f"%from = memref.subview %{source}[0] [8] [1] : {M} to {EIGHT}",
        f"%to = memref.subview %a[4] [8] [1] : {M} to {to}",
        *(each("from", "to", EIGHT, to=to), copy("a", "y"), free()),
    )


@plant(sound="%c64", faulty="%c4")
def one_element_apart(at: str) -> str:
    """%b starts at the second element of %a, and is computed from %a."""
    return over(each("a", "b"), at)


@plant(sound="b", faulty="a")
def a_sum_with_a_reversed_operand(target: str) -> str:
    same = "affine_map<(d0) -> (d0)>"
    return itself(
        lines(
            f"linalg.generic {{indexing_maps = [{same}, affine_map<{REVERSED}>, "
            f'{same}], iterator_types = ["parallel"]}} ins(%x, %a : {M}, {M}) '
            f"outs(%{target} : {M}) {{",
            "^bb0(%in0: f32, %in1: f32, %old: f32):",
            "%new = arith.addf %in0, %in1 : f32\nlinalg.yield %new : f32\n}",
        ),
        target,
    )


@plant(sound="b", faulty="a")
def a_sum_of_an_operand_and_its_reverse(target: str) -> str:
    """One buffer is two operands, with different maps."""
    same = "affine_map<(d0) -> (d0)>"
    return itself(
        lines(
            f"linalg.generic {{indexing_maps = [{same}, affine_map<{REVERSED}>, "
            f'{same}], iterator_types = ["parallel"]}} ins(%a, %a : {M}, {M}) '
            f"outs(%{target} : {M}) {{",
            "^bb0(%in0: f32, %in1: f32, %old: f32):",
            "%new = arith.subf %in0, %in1 : f32\nlinalg.yield %new : f32\n}",
        ),
        target,
    )


@plant(sound="%c64", faulty="%c0")
def two_results_in_one_place(at: str) -> str:
    same = "affine_map<(d0) -> (d0)>"
    return program(
        *(arena(), view("a"), view("b", at)),
        f"linalg.generic {{indexing_maps = [{same}, {same}, {same}], iterator_types = "
        f'["parallel"]}} ins(%x : {M}) outs(%a, %b : {M}, {M}) {{',
        "^bb0(%in0: f32, %old: f32, %old1: f32):\n%new = arith.negf %in0 : f32",
        "linalg.yield %in0, %new : f32, f32\n}",
        *(copy("a", "y"), copy("b", "z"), free()),
    )


@plant(sound="b", faulty="a")
def two_results_that_are_one(target: str) -> str:
    same = "affine_map<(d0) -> (d0)>"
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "b")),
        f"linalg.generic {{indexing_maps = [{same}, {same}, {same}], iterator_types = "
        f'["parallel"]}} ins(%x : {M}) outs(%a, %{target} : {M}, {M}) {{',
        "^bb0(%in0: f32, %old: f32, %old1: f32):\n%new = arith.negf %in0 : f32",
        "linalg.yield %in0, %new : f32, f32\n}",
        *(copy("a", "y"), free()),
    )


def on_squares(operation: str, target: str, more: str = "") -> str:
    """`itself` on %a and %b with 4 by 4 elements; the operation may also read %sx."""
    return program(
        *(
            arena(),
            view("a", type=SQUARE),
            view("b", "%c64", SQUARE),
            squares("x", "y"),
        ),
        *(copy("sx", "a", SQUARE), copy("sx", "b", SQUARE), operation),
        *(copy(target, "sy", SQUARE), more, free()),
    )


@plant(sound="b", faulty="a")
def a_transpose(target: str) -> str:
    return on_squares(
        f"linalg.transpose ins(%a : {SQUARE}) outs(%{target} : {SQUARE}) "
        "permutation = [1, 0]",
        target,
    )


@plant(sound="b", faulty="a")
def a_transposed_map(target: str) -> str:
    return on_squares(
        "linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, "
        'affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} '
        f"ins(%a : {SQUARE}) outs(%{target} : {SQUARE}) {{\n^bb0(%in0: f32, %old: f32):"
        "\n%new = arith.negf %in0 : f32\nlinalg.yield %new : f32\n}",
        target,
    )


@plant(sound="b", faulty="a")
def a_product(target: str) -> str:
    return on_squares(
        f"linalg.matmul ins(%a, %sx : {SQUARE}, {SQUARE}) outs(%{target} : {SQUARE})",
        target,
    )


@plant(sound="b", faulty="a")
def a_product_on_its_right_operand(target: str) -> str:
    return on_squares(
        f"linalg.matmul ins(%sx, %a : {SQUARE}, {SQUARE}) outs(%{target} : {SQUARE})",
        target,
    )


@plant(sound="b", faulty="a")
def rows_summed_over_what_is_summed(target: str) -> str:
    row, to = "memref<4xf32, strided<[1], offset: 12>>", "memref<4xf32>"
    return program(
        *(
            arena(),
            view("a", type=SQUARE),
            view("b", "%c64", SQUARE),
            squares("x", "y"),
        ),
        *(copy("sx", "a", SQUARE), copy("sx", "b", SQUARE)),
        f"%row = memref.reinterpret_cast %{target} to offset: [12], sizes: [4], "
        f"strides: [1] : {SQUARE} to {row}",
        "linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, "
        'affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} '
        f"ins(%a : {SQUARE}) outs(%row : {row}) {{\n^bb0(%in0: f32, %old: f32):"
        "\n%new = arith.addf %in0, %old : f32\nlinalg.yield %new : f32\n}",
        f"%out = memref.subview %y[0] [4] [1] : {M} to {to}",
        *(copy("row", "out", row, to), free()),
    )


@plant(sound="b", faulty="a")
def a_row_spread_over_itself(target: str) -> str:
    row = "memref<4xf32, strided<[1], offset: 4>>"
    return on_squares(
        f"%row = memref.reinterpret_cast %a to offset: [4], sizes: [4], strides: [1] : "
        f"{SQUARE} to {row}\n"
        "linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, "
        'affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} '
        f"ins(%row : {row}) outs(%{target} : {SQUARE}) {{\n^bb0(%in0: f32, %old: f32):"
        "\n%new = arith.negf %in0 : f32\nlinalg.yield %new : f32\n}",
        target,
    )


@plant(sound="%c64", faulty="%c0")
def a_copy_to_the_next_elements(at: str) -> str:
    part, to = "memref<12xf32>", "memref<12xf32, strided<[1], offset: 4>>"
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        f"%from = memref.subview %a[0] [12] [1] : {M} to {part}",
        f"%to = memref.subview %b[4] [12] [1] : {M} to {to}",
        each("from", "to", part, to=to),
        f"%out = memref.subview %y[4] [12] [1] : {M} to {to}",
        *(copy("to", "out", to), free()),
    )


@plant(sound="%c64", faulty="%c0")
def a_body_that_loads_from_the_result(at: str) -> str:
    """The body loads another element of %a, which %b overlaps."""
    return over(
        "linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = "
        f'["parallel"]}} outs(%b : {M}) {{\n^bb0(%old: f32):\n%i = linalg.index 0 : '
        f"index\n%other = arith.subi %c15, %i : index\n%new = memref.load %a[%other] : "
        f"{M}\nlinalg.yield %new : f32\n}}",
        at,
    )


@plant(sound="b", faulty="a")
def a_body_that_loads_from_its_own_result(target: str) -> str:
    return itself(
        "linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = "
        f'["parallel"]}} outs(%{target} : {M}) {{\n^bb0(%old: f32):\n'
        "%i = linalg.index 0 : index\n%other = arith.subi %c15, %i : index\n"
        f"%new = memref.load %a[%other] : {M}\nlinalg.yield %new : f32\n}}",
        target,
    )


@plant(sound="%c64", faulty="%c0")
def elements_of_another_width(at: str) -> str:
    """f32 to f64 in place: result i overwrites the elements 2i and 2i + 1."""
    wide = "memref<16xf64>"
    return program(
        *(arena(), view("a"), view("b", at, wide), copy("x", "a")),
        "linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> "
        f'(d0)>], iterator_types = ["parallel"]}} ins(%a : {M}) outs(%b : {wide}) {{',
        "^bb0(%in0: f32, %old: f64):\n%new = arith.extf %in0 : f32 to f64",
        "linalg.yield %new : f64\n}",
        loop(
            f"%v = memref.load %b[%t] : {wide}\n%w = arith.truncf %v : f64 to f32",
            f"memref.store %w, %y[%t] : {M}",
            to="%c16",
        ),
        free(),
    )


@plant(sound="b", faulty="a")
def a_strided_layout_over_a_dense_one(target: str) -> str:
    """Element i of the result is computed from element i of a reversed view."""
    back = "memref<16xf32, strided<[-1], offset: 15>>"
    return itself(
        "%back = memref.reinterpret_cast %a to offset: [15], sizes: [16], "
        f"strides: [-1] : {M} to {back}\n" + each("back", target, back, to=M),
        target,
    )


# tgraph operations, lowered to linalg.


def ours(operation: str, target: str, type: str = M) -> str:
    if type == M:
        return itself(operation, target)
    return on_squares(operation, target)


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_reverse(target: str) -> str:
    return ours(
        f"tgraph.reverse %a outs(%{target}) {{dimensions = array<i64: 0>}} : {M}",
        target,
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_reverse_in_a_loop(target: str) -> str:
    return program(
        loop(
            *(arena(), view("a"), view("b", "%c64"), copy("x", "a")),
            f"tgraph.reverse %a outs(%{target}) {{dimensions = array<i64: 0>}} : {M}",
            *(copy(target, "y"), free()),
        )
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_transpose(target: str) -> str:
    return ours(
        f"tgraph.transpose %a outs(%{target}) {{permutation = array<i64: 1, 0>}} : "
        f"{SQUARE}",
        target,
        SQUARE,
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_dot_general(target: str) -> str:
    return ours(
        f"tgraph.dot_general %a, %sx outs(%{target}) {{lhs_contracting_dimensions = "
        f"array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>}} : {SQUARE}",
        target,
        SQUARE,
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_concatenate(target: str) -> str:
    high, low = "memref<8xf32, strided<[1], offset: 8>>", EIGHT
    return itself(
        f"%low = memref.subview %a[0] [8] [1] : {M} to {low}\n"
        f"%high = memref.subview %a[8] [8] [1] : {M} to {high}\n"
        f"tgraph.concatenate %high, %low outs(%{target}) {{dimension = 0 : i64}} : "
        f"({high}, {low}) -> {M}",
        target,
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_fusion_that_reverses(target: str) -> str:
    t = "tensor<16xf32>"
    return itself(
        f"tgraph.fusion(%v = %a, %w = %x) outs(%{target}) : ({M}, {M}) -> {M} {{\n"
        f"%r = tgraph.reverse %v {{dimensions = array<i64: 0>}} : {t}\n"
        f"%s = tgraph.add %r, %w : {t}\ntgraph.yield %s : {t}\n}}",
        target,
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_fusion_that_transposes(target: str) -> str:
    t = "tensor<4x4xf32>"
    return on_squares(
        f"tgraph.fusion(%v = %a) outs(%{target}) : {SQUARE} {{\n"
        f"%r = tgraph.transpose %v {{permutation = array<i64: 1, 0>}} : {t}\n"
        f"%u = tgraph.add %r, %r : {t}\ntgraph.yield %u : {t}\n}}",
        target,
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_fusion_that_computes_indices_from_what_it_scatters_to(target: str) -> str:
    t, i = "tensor<16xf32>", "tensor<16xi32>"
    return itself(
        f"tgraph.fusion(%v = %a) outs(%{target}) : {M} {{\n"
        f"%i = tgraph.convert %v : ({t}) -> {i}\n%u = tgraph.negate %v : {t}\n"
        '%s = tgraph.scatter %v, %i, %u {kind = "add", update_window_dims = array<i64>,'
        " inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = "
        f"array<i64: 0>, index_vector_dim = 1 : i64}} : ({t}, {i}, {t}) -> {t}\n"
        f"tgraph.yield %s : {t}\n}}",
        target,
    )


@plant(sound="%c64", faulty="%c4", is_ours=True)
def tgraph_add_one_element_apart(at: str) -> str:
    return over(f"tgraph.add %a, %x outs(%b) : {M}", at)


@plant(sound="c", faulty="a", is_ours=True)
def tgraph_negate_of_overlapping_parts(source: str) -> str:
    to = "memref<8xf32, strided<[1], offset: 4>>"
    return program(
        *(arena(), view("a"), view("c", "%c64"), copy("x", "a"), copy("x", "c")),
        f"%from = memref.subview %{source}[0] [8] [1] : {M} to {EIGHT}",
        f"%to = memref.subview %a[4] [8] [1] : {M} to {to}",
        f"tgraph.negate %from outs(%to) : ({EIGHT}) -> {to}",
        *(copy("a", "y"), free()),
    )


@plant(sound="c", faulty="a", is_ours=True)
def tgraph_negate_of_a_backwards_view(source: str) -> str:
    back = "memref<16xf32, strided<[-1], offset: 15>>"
    return program(
        *(arena(), view("a"), view("c", "%c64"), copy("x", "a"), copy("x", "c")),
        f"%back = memref.reinterpret_cast %{source} to offset: [15], sizes: [16], "
        f"strides: [-1] : {M} to {back}",
        f"tgraph.negate %back outs(%a) : ({back}) -> {M}",
        *(copy("a", "y"), free()),
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_pad_over_its_operand(target: str) -> str:
    return itself(
        f"%low = memref.subview %a[0] [12] [1] : {M} to memref<12xf32>\n"
        f"%pad = memref.alloca() : memref<f32>\n%zero = arith.constant 0.0 : f32\n"
        f"memref.store %zero, %pad[] : memref<f32>\n"
        f"tgraph.pad %low, %pad outs(%{target}) {{low = array<i64: 4>, high = "
        f"array<i64: 0>, interior = array<i64: 0>}} : (memref<12xf32>, memref<f32>) -> "
        f"{M}",
        target,
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_select_by_a_shifted_condition(target: str) -> str:
    """The condition, of i1, lies in the memory of the result, of f32."""
    flags = "memref<16xi1>"
    over = "%c0" if target == "a" else "%c64"
    return program(
        *(arena(), view("f", over, flags), view("a", "%c0")),
        f'tgraph.compare %x, %y outs(%f) {{direction = "LT"}} : ({M}, {M}) -> {flags}',
        f"tgraph.select %f, %x, %y outs(%a) : ({flags}, {M}, {M}) -> {M}",
        *(copy("a", "z"), free()),
    )


@plant(sound="b", faulty="a", is_ours=True)
def tgraph_in_a_branch(target: str) -> str:
    operation = (
        f"tgraph.reverse %a outs(%{target}) {{dimensions = array<i64: 0>}} : {M}"
    )
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        *(branch([operation]), copy(target, "y"), free()),
    )


@plant(sound="x", faulty="y", is_ours=True)
def tgraph_outside_of_arenas(source: str) -> str:
    """The operation reads the caller's memory while writing it. The arena is sound."""
    return program(
        *(arena(), view("a"), copy("x", "a"), copy("x", "y"), copy("a", "z")),
        f"tgraph.reverse %{source} outs(%y) {{dimensions = array<i64: 0>}} : {M}",
        free(),
    )


@plant(sound="b", faulty="a", beyond="loads and stores mean what they say")
def a_parallel_loop_in_place(target: str) -> str:
    """Iterations may run in any order; in sequence, each reads what the last stored."""
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        parallel(
            f"%v = memref.load %a[%t] : {M}",
            "%to = arith.addi %t, %c1 : index",
            f"memref.store %v, %{target}[%to] : {M}",
            to="%c15",
        ),
        *(copy(target, "y"), free()),
    )


@plant(sound="b", faulty="a")
def one_buffer_given_to_a_call_twice(target: str) -> str:
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f"func.call @g(%a, %{target}) : ({M}, {M}) -> ()",
        *(copy(target, "y"), free()),
        beside=f"func.func @g(%from: {M}, %to: {M}) {{\n"
        + lines(each("from", "to", read=REVERSED), "return\n}"),
    )


@plant(sound="c", faulty="a")
def overlapping_parts_given_to_a_call(source: str) -> str:
    part = "memref<8xf32, strided<[1], offset: ?>>"
    return program(
        *(arena(), view("a"), view("c", "%c64"), copy("x", "a"), copy("x", "c")),
        f"%from = memref.subview %{source}[%c0] [8] [1] : {M} to {part}",
        f"%to = memref.subview %a[%c4] [8] [1] : {M} to {part}",
        f"func.call @g(%from, %to) : ({part}, {part}) -> ()",
        *(copy("a", "y"), free()),
        beside=f"func.func @g(%from: {part}, %to: {part}) {{\n"
        + lines(each("from", "to", part), "return\n}"),
    )


@plant(sound="b", faulty="r")
def what_a_call_allocates(target: str) -> str:
    any = "memref<?xf32>"
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f"%r = func.call @g(%a) : ({M}) -> {M}",
        f"%v = memref.cast %r : {M} to {any}",
        *(each("v", target, any, to=M, read=REVERSED), copy(target, "y"), free()),
        beside=f"func.func @g(%x: {M}) -> {M} {{\n"
        + lines(f"%r = memref.alloc() : {M}", copy("x", "r"), f"return %r : {M}\n}}"),
    )


@plant(sound="b", faulty="a")
def an_element_that_is_written_twice(target: str) -> str:
    """The second write computes from the result of the first."""
    pairs = "memref<8x2xf32>"
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f"%w = memref.expand_shape %x [[0, 1]] output_shape [8, 2] : {M} into {pairs}",
        f"%from = memref.subview %a[0] [8] [1] : {M} to {EIGHT}",
        f"%to = memref.subview %{target}[0] [8] [1] : {M} to {EIGHT}",
        "linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, "
        "affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], "
        f'iterator_types = ["parallel", "parallel"]}} ins(%from, %w : {EIGHT}, '
        f"{pairs}) outs(%to : {EIGHT}) {{\n^bb0(%in0: f32, %in1: f32, %old: f32):",
        "%new = arith.negf %in0 : f32\nlinalg.yield %new : f32\n}",
        *(copy(target, "y"), free()),
    )


@plant(sound="%c8", faulty="%n")
def dynamic_parts_that_overlap(first: str) -> str:
    part = "memref<8xf32, strided<[1], offset: ?>>"
    return program(
        *(arena(), view("a"), copy("x", "a")),
        f"%from = memref.subview %a[%c0] [8] [1] : {M} to {part}",
        f"%to = memref.subview %a[{first}] [8] [1] : {M} to {part}",
        each("from", "to", part),
        *(copy("a", "y"), free()),
    )


@plant(sound="b", faulty="a")
def carried_twice(second: str) -> str:
    """A loop reverses %k into %l and swaps them; both start as the same buffer."""
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f"%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%k = %a, %l = %{second}) -> "
        f"({M}, {M}) {{",
        *(each("k", "l", read=REVERSED), f"scf.yield %l, %k : {M}, {M}", "}"),
        *(copy("r#0", "y"), free()),
    )


@plant(sound="b", faulty="a")
def a_body_that_stores_into_its_operand(target: str) -> str:
    """The body stores into an element that a later iteration reads; the sound twin,
    into another buffer."""
    return program(
        *(arena(), view("a"), view("b", "%c64"), view("c", "%c128")),
        *(copy("x", "a"), copy("x", "b")),
        "linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> "
        f'(d0)>], iterator_types = ["parallel"]}} ins(%a : {M}) outs(%c : {M}) {{',
        "^bb0(%in0: f32, %old: f32):\n%i = linalg.index 0 : index",
        "%other = arith.subi %c15, %i : index\n%new = arith.negf %in0 : f32",
        f"memref.store %new, %{target}[%other] : {M}\nlinalg.yield %new : f32\n}}",
        *(copy("c", "y"), free()),
    )


@plant(sound="c", faulty="a", is_ours=True)
def tgraph_reverse_of_one_of_two(other: str) -> str:
    return program(
        *(arena(), view("a"), view("b", "%c64"), view("c", "%c128")),
        *(copy("x", "a"), copy("x", "b"), copy("x", "c")),
        f"%s = arith.select %p, %{other}, %c : {M}",
        f"tgraph.reverse %s outs(%a) {{dimensions = array<i64: 0>}} : {M}",
        *(copy("a", "y"), free()),
    )
