"""Faults of offsets: buffers that overlap, exceed their arena, or have too few bytes.

Arenas are in all kinds of regions and memories.
"""

from planted import (
    I8,
    M,
    add,
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
    view,
)


def both(at: str, of: str = "arena", type: str = I8) -> str:
    """Buffers %a and %b that are live at the same time."""
    return lines(
        view("a", "%c0", of=of, arena=type),
        view("b", at, of=of, arena=type),
        copy("x", "a"),
        each("x", "b"),
        add("a", "b", "y"),
    )


@plant(sound="%c64", faulty="%c32")
def overlap_in_an_entry_block(at: str) -> str:
    return program(arena(), both(at), free())


@plant(sound="%c64", faulty="%c0")
def overlap_in_a_for(at: str) -> str:
    return program(loop(arena(), both(at), free()))


@plant(sound="%c64", faulty="%c0")
def overlap_in_a_nested_for(at: str) -> str:
    return program(loop(loop(arena(), both(at), free(), index="u")))


@plant(sound="%c64", faulty="%c0")
def overlap_in_an_if(at: str) -> str:
    return program(branch([arena(), both(at), free()]))


@plant(sound="%c64", faulty="%c32")
def overlap_in_an_else(at: str) -> str:
    return program(branch([copy("x", "y")], [arena(), both(at), free()]))


@plant(sound="%c64", faulty="%c0")
def overlap_after_a_branch_of_blocks(at: str) -> str:
    return program("cf.br ^next", "^next:", arena(), both(at), free())


@plant(sound="%c64", faulty="%c0")
def overlap_on_one_path_of_blocks(at: str) -> str:
    return program(
        "cf.cond_br %p, ^l, ^r",
        *("^l:", arena(), both(at), free(), "cf.br ^e"),
        *("^r:", copy("x", "y"), "cf.br ^e", "^e:"),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_a_loop_of_blocks(at: str) -> str:
    return program(
        *("cf.br ^h(%c0 : index)", "^h(%i: index):"),
        *(arena(), both(at), free()),
        "%next = arith.addi %i, %c1 : index",
        "%more = arith.cmpi slt, %next, %n : index",
        *("cf.cond_br %more, ^h(%next : index), ^e", "^e:"),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_a_case(at: str) -> str:
    return program(
        "scf.index_switch %n",
        *("case 1 {", arena(), both(at), free(), "scf.yield", "}"),
        *("default {", copy("x", "y"), "scf.yield", "}"),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_a_while(at: str) -> str:
    return program(
        "%r = scf.while (%i = %c0) : (index) -> index {",
        "%more = arith.cmpi slt, %i, %n : index",
        *("scf.condition(%more) %i : index", "} do {", "^bb0(%j: index):"),
        *(arena(), both(at), free()),
        *("%k = arith.addi %j, %c1 : index", "scf.yield %k : index", "}"),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_the_condition_of_a_while(at: str) -> str:
    return program(
        "%r = scf.while (%i = %c0) : (index) -> index {",
        *(arena(), both(at), free()),
        "%more = arith.cmpi slt, %i, %n : index",
        *("scf.condition(%more) %i : index", "} do {", "^bb0(%j: index):"),
        *("%k = arith.addi %j, %c1 : index", "scf.yield %k : index", "}"),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_an_execute_region(at: str) -> str:
    return program("scf.execute_region {", arena(), both(at), free(), "scf.yield", "}")


@plant(sound="%c64", faulty="%c0")
def overlap_in_an_alloca_scope(at: str) -> str:
    """Has no loops: mlir-opt lowers them first, and lowers only single-block scopes."""
    return program(
        '"memref.alloca_scope"() ({',
        *(arena(), view("a"), view("b", at)),
        f"%v = vector.load %x[%c0] : {M}, vector<16xf32>",
        "%w = arith.negf %v : vector<16xf32>",
        f"vector.store %v, %a[%c0] : {M}, vector<16xf32>",
        f"vector.store %w, %b[%c0] : {M}, vector<16xf32>",
        *(copy("a", "y"), free(), '"memref.alloca_scope.return"() : () -> ()'),
        "}) : () -> ()",
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_an_affine_for(at: str) -> str:
    return program("affine.for %i = 0 to 2 {", arena(), both(at), free(), "}")


@plant(sound="%c64", faulty="%c0")
def overlap_in_an_affine_if(at: str) -> str:
    return program(
        '"affine.if"(%n) ({',
        *(arena(), both(at), free(), '"affine.yield"() : () -> ()'),
        "}, {}) {condition = affine_set<(d0) : (d0 - 1 >= 0)>} : (index) -> ()",
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_a_parallel_loop(at: str) -> str:
    """One iteration, so the overlap is the only fault."""
    return program(parallel(arena(), both(at), free(), to="%c1"))


@plant(sound="%c64", faulty="%c0")
def overlap_in_a_called_function(at: str) -> str:
    return program(
        f"func.call @g(%x, %y) : ({M}, {M}) -> ()",
        beside=f"func.func @g(%x: {M}, %y: {M}) {{\n%c0 = arith.constant 0 : index\n"
        "%c64 = arith.constant 64 : index\n"
        + lines(arena(), both(at), free(), "return\n}"),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_an_arena_that_is_an_argument(at: str) -> str:
    return program(
        arena(),
        f"func.call @g(%arena, %x, %y) : ({I8}, {M}, {M}) -> ()",
        free(),
        beside=f"func.func @g(%arena: {I8}, %x: {M}, %y: {M}) {{\n"
        "%c0 = arith.constant 0 : index\n%c64 = arith.constant 64 : index\n"
        + lines(both(at), "return\n}"),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_a_global(at: str) -> str:
    return program(
        f"%arena = memref.get_global @pool : {I8}",
        both(at),
        beside=f'memref.global "private" @pool : {I8} = uninitialized',
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_two_names_of_a_global(at: str) -> str:
    return program(
        f"%one = memref.get_global @pool : {I8}",
        f"%two = memref.get_global @pool : {I8}",
        *(view("a", of="one"), view("b", at, of="two")),
        *(copy("x", "a"), each("x", "b"), add("a", "b", "y")),
        beside=f'memref.global "private" @pool : {I8} = uninitialized',
    )


@plant(sound="%c64", faulty="%c0")
def overlap_in_an_alloca(at: str) -> str:
    return program(
        f"%arena = memref.alloca() {{alignment = 64 : i64}} : {I8}", both(at)
    )


@plant(
    sound=16,
    faulty=8,
    beyond="a program may well look at one buffer through overlapping views",
)
def overlap_in_an_arena_of_floats(at: int) -> str:
    whole, b = "memref<64xf32>", f"memref<16xf32, strided<[1], offset: {at}>>"
    return program(
        f"%arena = memref.alloc() {{alignment = 64 : i64}} : {whole}",
        f"%a = memref.subview %arena[0] [16] [1] : {whole} to {M}",
        f"%b = memref.subview %arena[{at}] [16] [1] : {whole} to {b}",
        *(copy("x", "a"), each("x", "b", M, to=b)),
        *(copy("a", "y"), copy("b", "z", b, M), free(type=whole)),
    )


@plant(
    sound=16,
    faulty=8,
    beyond="a program may well look at one buffer through overlapping views",
)
def overlap_of_reinterpreted_floats(at: int) -> str:
    whole, b = "memref<64xf32>", f"memref<16xf32, strided<[1], offset: {at}>>"
    return program(
        f"%arena = memref.alloc() {{alignment = 64 : i64}} : {whole}",
        "%a = memref.reinterpret_cast %arena to offset: [0], sizes: [16], "
        f"strides: [1] : {whole} to {M}",
        f"%b = memref.reinterpret_cast %arena to offset: [{at}], sizes: [16], "
        f"strides: [1] : {whole} to {b}",
        *(copy("x", "a"), each("x", "b", M, to=b)),
        *(copy("a", "y"), copy("b", "z", b, M), free(type=whole)),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_through_a_cast(at: str) -> str:
    loose = "memref<?xi8>"
    return program(
        arena(),
        f"%cast = memref.cast %arena : {I8} to {loose}",
        both(at, "cast", loose),
        free(),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_of_a_view_and_one_through_a_cast(at: str) -> str:
    loose = "memref<?xi8>"
    return program(
        arena(),
        f"%cast = memref.cast %arena : {I8} to {loose}",
        *(view("a"), view("b", at, of="cast", arena=loose)),
        *(copy("x", "a"), each("x", "b"), add("a", "b", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_through_a_subview_of_bytes(at: str) -> str:
    half = "memref<128xi8>"
    return program(
        arena(),
        f"%half = memref.subview %arena[0] [128] [1] : {I8} to {half}",
        both(at, "half", half),
        free(),
    )


@plant(sound=128, faulty=64)
def overlap_of_the_halves(at: int) -> str:
    """%a lies in the low half of the arena, which the written high half overlaps."""
    low, high = "memref<128xi8>", f"memref<128xi8, strided<[1], offset: {at}>>"
    return program(
        arena(),
        f"%low = memref.subview %arena[0] [128] [1] : {I8} to {low}",
        f"%off = memref.subview %arena[{at}] [128] [1] : {I8} to {high}",
        view("a", "%c64", of="low", arena=low),
        copy("x", "a"),
        "%byte = arith.constant 1 : i8",
        loop(
            f"memref.store %byte, %off[%t] : {high}",
            to="%c64",
        ),
        *(copy("a", "y"), free()),
    )


@plant(sound="%arena", faulty="%other")
def overlap_where_arenas_are_selected(which: str) -> str:
    """If `which` is %other, %a and %b lie in the same arena when %p is true."""
    return program(
        *(arena(), arena("other")),
        f"%either = arith.select %p, %arena, {which} : {I8}",
        *(view("a", of="other"), view("b", of="either")),
        *(copy("x", "a"), each("x", "b"), copy("a", "y"), copy("b", "z")),
        *(free(), free("other")),
    ).replace("arith.select %p, %arena, %other", "arith.select %p, %other, %arena")


@plant(sound="%c64", faulty="%c0")
def overlap_in_an_arena_that_a_loop_carries(at: str) -> str:
    return program(
        arena(),
        f"%r = scf.for %t = %c0 to %n step %c1 iter_args(%k = %arena) -> ({I8}) {{",
        both(at, "k"),
        f"scf.yield %k : {I8}",
        "}",
        free(),
    )


@plant(sound="%c64", faulty="%c32")
def overlap_in_an_arena_that_a_block_is_given(at: str) -> str:
    return program(
        *(arena(), f"cf.br ^next(%arena : {I8})", f"^next(%k: {I8}):"),
        *(both(at, "k"), free("k")),
    )


@plant(sound="%c64", faulty="%c0", may_refuse="offsets that only a run knows")
def overlap_chosen_by_a_condition(at: str) -> str:
    return program(
        f"%at = arith.select %p, %c128, {at} : index",
        *(arena(), both("%at"), free()),
    )


@plant(sound="%c128", faulty="%c64", may_refuse="offsets that only a run knows")
def overlap_in_one_iteration(first: str) -> str:
    """The offset depends on the induction variable."""
    return program(
        *(arena(size=512), view("a", "%c64", arena="memref<512xi8>"), copy("x", "a")),
        loop(
            "%times = arith.muli %t, %c64 : index",
            f"%at = arith.addi %times, {first} : index",
            view("b", "%at", arena="memref<512xi8>"),
            each("x", "b"),
            copy("b", "z"),
        ),
        *(copy("a", "y"), free(type="memref<512xi8>")),
    )


@plant(sound=512, faulty=192, may_refuse="offsets that only a run knows")
def past_the_arena_by_the_counter(size: int) -> str:
    type = f"memref<{size}xi8>"
    return program(
        arena(size=size),
        loop(
            "%at = arith.muli %t, %c128 : index",
            view("a", "%at", arena=type),
            *(copy("x", "a"), copy("a", "y")),
        ),
        free(type=type),
    )


@plant(sound="%c64", faulty="%c0", may_refuse="offsets that only a run knows")
def overlap_at_an_offset_that_is_loaded(at: str) -> str:
    one = "memref<1xindex>"
    return program(
        f"%where = memref.alloca() : {one}",
        f"memref.store {at}, %where[%c0] : {one}",
        f"%at = memref.load %where[%c0] : {one}",
        *(arena(), both("%at"), free()),
    )


@plant(sound="%c192", faulty="%c256")
def past_the_end(at: str) -> str:
    return program(arena(), view("a", at), copy("x", "a"), copy("a", "y"), free())


@plant(sound="%c192", faulty="%c256")
def past_the_end_in_a_loop(at: str) -> str:
    return program(loop(arena(), view("a", at), copy("x", "a"), copy("a", "y"), free()))


@plant(sound="%c0", faulty="%below")
def below_the_start(at: str) -> str:
    return program(
        "%below = arith.constant -64 : index",
        *(arena(), view("a", at), copy("x", "a"), copy("a", "y"), free()),
    )


@plant(sound=256, faulty=128)
def past_an_arena_that_is_an_argument(size: int) -> str:
    """The callee uses more bytes than the caller's arena has."""
    given = f"memref<{size}xi8>"
    return program(
        arena(size=size),
        f"%cast = memref.cast %arena : {given} to memref<?xi8>",
        f"func.call @g(%cast, %x, %y) : (memref<?xi8>, {M}, {M}) -> ()",
        free(type=given),
        beside=f"func.func @g(%arena: memref<?xi8>, %x: {M}, %y: {M}) {{\n"
        "%c0 = arith.constant 0 : index\n%c128 = arith.constant 128 : index\n"
        + lines(both("%c128", type="memref<?xi8>"), "return\n}"),
    )


@plant(sound="%c256", faulty="%c64")
def past_an_arena_of_dynamic_size(size: str) -> str:
    return program(
        f"%arena = memref.alloc({size}) {{alignment = 64 : i64}} : memref<?xi8>",
        *(both("%c64", type="memref<?xi8>"), free(type="memref<?xi8>")),
    )


@plant(sound="%c256", faulty="%c64")
def past_an_arena_through_a_false_cast(size: str) -> str:
    """A cast claims that the arena has 256 bytes."""
    return program(
        f"%bytes = memref.alloc({size}) {{alignment = 64 : i64}} : memref<?xi8>",
        f"%arena = memref.cast %bytes : memref<?xi8> to {I8}",
        *(both("%c64"), free("bytes", "memref<?xi8>")),
    )


@plant(sound="f32", faulty="f64")
def a_wider_element_type(type: str) -> str:
    """A buffer of 16 elements has the bytes of 16 elements of f32."""
    b = f"memref<16x{type}>"
    return program(
        *(arena(), view("a", "%c64"), view("b", "%c0", b), copy("x", "a")),
        f"%one = arith.constant 77.0 : {type}",
        loop(f"memref.store %one, %b[%t] : {b}", to="%c16"),
        *(copy("a", "y"), free()),
    )


@plant(sound=64, faulty=48)
def an_integer_of_24_bits(at: int) -> str:
    """16 elements of i24 take 64 bytes in LLVM's layout, not 48."""
    return program(
        f"%at = arith.constant {at} : index",
        *(arena(alignment=16), view("b", "%c0", "memref<16xi24>"), view("a", "%at")),
        *("%one = arith.constant 77 : i24", copy("x", "a")),
        loop("memref.store %one, %b[%t] : memref<16xi24>", to="%c16"),
        *(copy("a", "y"), free()),
    )


@plant(sound=128, faulty=96)
def an_integer_of_48_bits(at: int) -> str:
    return program(
        f"%at = arith.constant {at} : index",
        *(arena(alignment=16), view("b", "%c0", "memref<16xi48>"), view("a", "%at")),
        *("%one = arith.constant 77 : i48", copy("x", "a")),
        loop("memref.store %one, %b[%t] : memref<16xi48>", to="%c16"),
        *(copy("a", "y"), free()),
    )


@plant(sound=16, faulty=17)
def more_elements_than_bytes(size: int) -> str:
    b = f"memref<{size}xf32>"
    return program(
        *(arena(), view("a", "%c64"), view("b", "%c0", b), copy("x", "a")),
        "%one = arith.constant 77.0 : f32",
        f"affine.for %i = 0 to {size} {{ memref.store %one, %b[%i] : {b} }}",
        *(copy("a", "y"), free()),
    )


@plant(sound="%c16", faulty="%c32")
def more_elements_than_bytes_at_run_time(size: str) -> str:
    b = "memref<?xf32>"
    return program(
        *(arena(), view("a", "%c64"), copy("x", "a")),
        f"%b = memref.view %arena[%c0][{size}] : {I8} to {b}",
        "%one = arith.constant 77.0 : f32",
        f"%end = memref.dim %b, %c0 : {b}",
        loop(f"memref.store %one, %b[%t] : {b}", to="%end"),
        *(copy("a", "y"), free()),
    )


SEEN = ("run",)
"""The programs that run read an address; the checked program does not."""


def address(of: str, modulo: int, mode: str) -> str:
    """Stores the address of %`of` modulo `modulo` into %y."""
    if mode == "checked":
        return ""
    return lines(
        f"%address = memref.extract_aligned_pointer_as_index %{of} : {M} -> index",
        f"%modulo = arith.constant {modulo} : index",
        "%rest = arith.remui %address, %modulo : index",
        "%as_i64 = arith.index_cast %rest : index to i64",
        "%as_f32 = arith.sitofp %as_i64 : i64 to f32",
        f"memref.store %as_f32, %y[%c0] : {M}",
    )


@plant(sound="%c64", faulty="%c32", modes=SEEN)
def an_offset_that_is_not_aligned(at: str, mode: str) -> str:
    return program(
        arena(), view("a", at), copy("x", "a"), address("a", 64, mode), free()
    )


@plant(sound="%c64", faulty="%c32", modes=SEEN)
def an_offset_that_is_not_aligned_in_a_branch(at: str, mode: str) -> str:
    return program(
        branch([arena(), view("a", at), copy("x", "a"), address("a", 64, mode), free()])
    )


@plant(sound=64, faulty=256, modes=SEEN)
def an_alignment_above_that_of_the_arena(assumed: int, mode: str) -> str:
    return program(
        *(arena(), view("a")),
        f"%b = memref.assume_alignment %a, {assumed} : {M}",
        *(copy("x", "b"), address("b", assumed, mode), copy("b", "z"), free()),
    )


@plant(sound="%c128", faulty="%c64", modes=SEEN)
def an_alignment_that_the_offset_does_not_have(at: str, mode: str) -> str:
    return program(
        *(arena(alignment=128), view("a", at)),
        f"%b = memref.assume_alignment %a, 128 : {M}",
        *(copy("x", "b"), address("b", 128, mode), copy("b", "z"), free()),
    )


@plant(sound=64, faulty=1, modes=SEEN)
def an_arena_with_less_alignment_than_its_elements(alignment: int, mode: str) -> str:
    return program(
        *(arena(alignment=alignment), view("a")),
        *(copy("x", "a"), address("a", 4, mode), copy("a", "z"), free()),
    )


@plant(sound=(4, "%c4"), faulty=(1, "%c2"), modes=SEEN)
def an_element_that_is_not_at_its_natural_alignment(
    given: tuple[int, str], mode: str
) -> str:
    alignment, at = given
    return program(
        *(arena(alignment=alignment), view("a", at)),
        *(copy("x", "a"), address("a", 4, mode), copy("a", "z"), free()),
    )


@plant(sound="%c8", faulty="%c15")
def a_dynamic_subview_past_its_buffer(first: str) -> str:
    part = "memref<8xf32, strided<[1], offset: ?>>"
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f"%part = memref.subview %a[{first}] [8] [1] : {M} to {part}",
        "%one = arith.constant 77.0 : f32",
        loop(f"memref.store %one, %part[%t] : {part}", to="%c8"),
        *(copy("b", "y"), free()),
    )


@plant(sound="%t", faulty="%far")
def a_subview_past_its_buffer_in_one_iteration(first: str) -> str:
    part = "memref<8xf32, strided<[1], offset: ?>>"
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        "%one = arith.constant 77.0 : f32",
        loop(
            "%far = arith.muli %t, %c8 : index",
            f"%part = memref.subview %a[{first}] [8] [1] : {M} to {part}",
            loop(f"memref.store %one, %part[%u] : {part}", to="%c8", index="u"),
        ),
        *(copy("b", "y"), free()),
    )


@plant(sound="%c1", faulty="%c4")
def a_dynamic_stride_past_its_buffer(step: str) -> str:
    part = "memref<8xf32, strided<[?]>>"
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f"%part = memref.subview %a[0] [8] [{step}] : {M} to {part}",
        "%one = arith.constant 77.0 : f32",
        loop(f"memref.store %one, %part[%t] : {part}", to="%c8"),
        *(copy("b", "y"), free()),
    )


@plant(sound="%c8", faulty="%c32")
def a_dynamic_size_past_its_buffer(size: str) -> str:
    part = "memref<?xf32, strided<[1]>>"
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f"%part = memref.subview %a[0] [{size}] [1] : {M} to {part}",
        "%one = arith.constant 77.0 : f32",
        loop(f"memref.store %one, %part[%t] : {part}", to=size),
        *(copy("b", "y"), free()),
    )


@plant(sound="%c0", faulty="%c16")
def a_dynamic_reinterpret_cast_past_its_buffer(first: str) -> str:
    part = "memref<16xf32, strided<[1], offset: ?>>"
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f"%part = memref.reinterpret_cast %a to offset: [{first}], sizes: [16], "
        f"strides: [1] : {M} to {part}",
        "%one = arith.constant 77.0 : f32",
        loop(f"memref.store %one, %part[%t] : {part}", to="%c16"),
        *(copy("b", "y"), free()),
    )


@plant(sound=8, faulty=24, beyond="the program's own index is wrong, whatever the plan")
def an_index_past_its_buffer(first: int) -> str:
    """The index of a store, not a view, exceeds the buffer."""
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f"%at = arith.constant {first} : index\n%one = arith.constant 77.0 : f32",
        f"memref.store %one, %a[%at] : {M}",
        *(copy("b", "y"), free()),
    )


@plant(
    sound="%t",
    faulty="%far",
    beyond="the program's own index is wrong, whatever the plan",
)
def an_index_past_its_buffer_in_one_iteration(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        "%one = arith.constant 77.0 : f32",
        loop(
            "%far = arith.muli %t, %c8 : index",
            f"memref.store %one, %a[{at}] : {M}",
        ),
        *(copy("b", "y"), free()),
    )


@plant(sound=0, faulty=8, beyond="the program's own index is wrong, whatever the plan")
def an_affine_index_past_its_buffer(shift: int) -> str:
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        "%one = arith.constant 77.0 : f32",
        f"affine.for %i = 0 to 16 {{ affine.store %one, %a[%i + {shift}] : {M} }}",
        *(copy("b", "y"), free()),
    )


@plant(sound=4, faulty=5)
def a_false_cast_of_a_dynamic_shape(rows: int) -> str:
    """The cast claims a row that the buffer lacks."""
    square, cast = "memref<4x4xf32>", f"memref<{rows}x4xf32>"
    return program(
        *(arena(), view("a", type=square), view("b", "%c64"), copy("x", "b")),
        f"%loose = memref.cast %a : {square} to memref<?x4xf32>",
        f"%c = memref.cast %loose : memref<?x4xf32> to {cast}",
        "%one = arith.constant 77.0 : f32",
        f"affine.for %i = 0 to {rows} {{ affine.store %one, %c[%i, 0] : {cast} }}",
        *(copy("b", "y"), free()),
    )


@plant(sound="[4, 4]", faulty="[4, 8]")
def a_collapsed_shape_of_a_larger_view(sizes: str) -> str:
    rows, columns = sizes.strip("[]").split(", ")
    wide = f"memref<{rows}x{columns}xf32>"
    flat = f"memref<{int(rows) * int(columns)}xf32>"
    return program(
        *(arena(), view("a", type=wide), view("b", "%c64"), copy("x", "b")),
        f"%flat = memref.collapse_shape %a [[0, 1]] : {wide} into {flat}",
        "%one = arith.constant 77.0 : f32",
        f"affine.for %i = 0 to {int(rows) * int(columns)} {{ "
        f"affine.store %one, %flat[%i] : {flat} }}",
        *(copy("b", "y"), free()),
    )


@plant(sound="%c64", faulty="%c32")
def overlap_of_vectors(at: str) -> str:
    v = "memref<1xvector<16xf32>>"
    return program(
        *(arena(), view("a", type=v), view("b", at), copy("x", "b")),
        "%ones = arith.constant dense<1.0> : vector<16xf32>",
        f"memref.store %ones, %a[%c0] : {v}",
        *(copy("b", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def overlap_under_vector_stores(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at)),
        f"%v = vector.load %x[%c0] : {M}, vector<16xf32>",
        "%w = arith.negf %v : vector<16xf32>",
        f"vector.store %v, %a[%c0] : {M}, vector<16xf32>",
        f"vector.store %w, %b[%c0] : {M}, vector<16xf32>",
        *(copy("a", "y"), copy("b", "z"), free()),
    )


@plant(sound="%c1", faulty="%n")
def a_size_that_only_a_run_knows(count: str) -> str:
    """%b has more than 16 elements if %n is 2 or 3."""
    b = "memref<?xf32>"
    return program(
        *(arena(), view("a", "%c64"), copy("x", "a")),
        f"%size = arith.muli {count}, %c16 : index",
        f"%b = memref.view %arena[%c0][%size] : {I8} to {b}",
        f"%one = arith.constant 77.0 : f32\n%end = memref.dim %b, %c0 : {b}",
        loop(f"memref.store %one, %b[%t] : {b}", to="%end"),
        *(copy("a", "y"), free()),
    )


@plant(sound="%c4", faulty="%n")
def an_arena_of_a_size_that_only_a_run_knows(count: str) -> str:
    type = "memref<?xi8>"
    return program(
        f"%size = arith.muli {count}, %c64 : index",
        f"%arena = memref.alloc(%size) {{alignment = 64 : i64}} : {type}",
        *(both("%c64", type=type), free(type=type)),
    )


@plant(sound=16, faulty=64, modes=SEEN)
def an_alignment_of_a_part(assumed: int, mode: str) -> str:
    part = "memref<8xf32, strided<[1], offset: 8>>"
    return program(
        *(arena(), view("a"), copy("x", "a")),
        f"%part = memref.subview %a[8] [8] [1] : {M} to {part}",
        f"%v = memref.assume_alignment %part, {assumed} : {part}",
        f"%w = memref.reinterpret_cast %v to offset: [8], sizes: [8], strides: [1] : "
        f"{part} to {part}",
        f"%out = memref.subview %z[8] [8] [1] : {M} to {part}",
        copy("w", "out", part),
        ""
        if mode == "checked"
        else lines(
            f"%b = memref.extract_aligned_pointer_as_index %w : {part} -> index",
            "%byte = arith.addi %b, %c32 : index",
            f"%modulo = arith.constant {assumed} : index",
            "%rest = arith.remui %byte, %modulo : index",
            "%as_i64 = arith.index_cast %rest : index to i64",
            "%as_f32 = arith.sitofp %as_i64 : i64 to f32",
            f"memref.store %as_f32, %y[%c0] : {M}",
        ),
        free(),
    )


@plant(sound="i64", faulty="i8")
def an_offset_through_a_narrow_integer(type: str) -> str:
    """200 is -56 in 8 bits."""
    bytes, part = "memref<256xi8>", "memref<8xi8, strided<[1], offset: ?>>"
    return program(
        *(arena(size=512), view("a", "%c0", arena="memref<512xi8>"), copy("x", "a")),
        f"%big = memref.view %arena[%c64][] : memref<512xi8> to {bytes}",
        "%step = arith.constant 200 : index",
        "scf.for %far = %c0 to %c256 step %step {",
        f"%narrow = arith.index_cast %far : index to {type}",
        f"%at = arith.index_cast %narrow : {type} to index",
        f"%part = memref.subview %big[%at] [8] [1] : {bytes} to {part}",
        "%byte = arith.constant 77 : i8",
        loop(f"memref.store %byte, %part[%t] : {part}", to="%c8"),
        "}",
        *(copy("a", "y"), free(type="memref<512xi8>")),
    )
