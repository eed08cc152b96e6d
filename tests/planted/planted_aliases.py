"""Faults in which a buffer is used through an alias after its bytes were reused."""

from planted import (
    I8,
    SQUARE,
    M,
    add,
    arena,
    copy,
    each,
    free,
    lines,
    loop,
    plant,
    program,
    squares,
    view,
)

FLAT = "memref<16xf32, strided<[1], offset: ?>>"


def late(alias: str, read: str, at: str, beside: str = "", more: str = "") -> str:
    """`alias` makes an alias of %a, %b overwrites %a if `at` is %c0, then `read` reads
    the alias."""
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), alias, each("x", "b")),
        *(read, copy("b", "z"), more, free()),
        beside=beside,
    )


@plant(sound="%c64", faulty="%c0")
def a_subview(at: str) -> str:
    type = "memref<8xf32, strided<[1], offset: 8>>"
    return late(
        f"%v = memref.subview %a[8] [8] [1] : {M} to {type}\n"
        f"%to = memref.subview %y[0] [8] [1] : {M} to memref<8xf32>",
        copy("v", "to", type, "memref<8xf32>"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def a_dynamic_subview(at: str) -> str:
    type = "memref<?xf32, strided<[1], offset: ?>>"
    return late(
        f"%v = memref.subview %a[%n] [%c8] [1] : {M} to {type}\n"
        f"%to = memref.subview %y[%n] [%c8] [1] : {M} to {type}",
        copy("v", "to", type),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def an_expanded_shape(at: str) -> str:
    return late(
        squares("a", "y"),
        copy("sa", "sy", SQUARE),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def a_transposed_buffer(at: str) -> str:
    type = "memref<4x4xf32, strided<[1, 4]>>"
    return program(
        *(arena(), view("a", type=SQUARE), view("b", at)),
        squares("x", "y"),
        f'%v = "memref.transpose"(%a) <{{permutation = affine_map<(d0, d1) -> (d1, d0)>'
        f"}}> : ({SQUARE}) -> {type}",
        *(copy("sx", "a", SQUARE), each("x", "b"), copy("v", "sy", type, SQUARE)),
        *(copy("b", "z"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def a_loose_cast(at: str) -> str:
    return late(
        f"%v = memref.cast %a : {M} to memref<?xf32>\n"
        f"%to = memref.cast %y : {M} to memref<?xf32>",
        copy("v", "to", "memref<?xf32>"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def an_unranked_cast(at: str) -> str:
    return late(
        f"%u = memref.cast %a : {M} to memref<*xf32>\n"
        f"%v = memref.cast %u : memref<*xf32> to {M}",
        copy("v", "y"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def an_unranked_cast_of_the_arena(at: str) -> str:
    return late(
        f"%u = memref.cast %arena : {I8} to memref<*xi8>\n"
        f"%same = memref.cast %u : memref<*xi8> to {I8}\n" + view("v", of="same"),
        copy("v", "y"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def strided_metadata(at: str) -> str:
    base = "memref<f32>"
    return late(
        '%base, %offset, %size, %stride = "memref.extract_strided_metadata"(%a) : '
        f"({M}) -> ({base}, index, index, index)\n"
        "%v = memref.reinterpret_cast %base to offset: [0], sizes: [16], strides: [1] "
        f": {base} to {M}",
        copy("v", "y"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def a_pointer(at: str) -> str:
    """%a is read through its address."""
    return late(
        f"%address = memref.extract_aligned_pointer_as_index %a : {M} -> index\n"
        "%i64 = arith.index_cast %address : index to i64\n"
        "%ptr = llvm.inttoptr %i64 : i64 to !llvm.ptr",
        "%v = llvm.load %ptr : !llvm.ptr -> f32\n" + f"memref.store %v, %y[%c0] : {M}",
        at,
    )


@plant(sound="%c64", faulty="%c0")
def a_pointer_to_the_arena(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        f"%address = memref.extract_aligned_pointer_as_index %arena : {I8} -> index",
        "%i64 = arith.index_cast %address : index to i64",
        "%ptr = llvm.inttoptr %i64 : i64 to !llvm.ptr",
        *(each("x", "b"), "%v = llvm.load %ptr : !llvm.ptr -> f32"),
        *(f"memref.store %v, %y[%c0] : {M}", copy("b", "z"), free()),
    )


DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"


@plant(sound="%c64", faulty="%c0")
def a_descriptor(at: str) -> str:
    return late(
        f"%s = builtin.unrealized_conversion_cast %a : {M} to {DESCRIPTOR}\n"
        f"%v = builtin.unrealized_conversion_cast %s : {DESCRIPTOR} to {M}",
        copy("v", "y"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def a_table_of_buffers(at: str) -> str:
    """The memref is stored in memory and loaded again."""
    table = f"memref<1x{M}>"
    return late(
        f"%table = memref.alloca() : {table}\nmemref.store %a, %table[%c0] : {table}",
        f"%v = memref.load %table[%c0] : {table}\n" + copy("v", "y"),
        at,
    )


@plant(sound="%c64", faulty="%c0", may_refuse="arenas in memory are not followed")
def a_table_of_arenas(at: str) -> str:
    table = f"memref<1x{I8}>"
    return program(
        *(arena(), view("a"), copy("x", "a"), f"%table = memref.alloca() : {table}"),
        f"memref.store %arena, %table[%c0] : {table}",
        f"%same = memref.load %table[%c0] : {table}",
        *(view("b", at, of="same"), each("x", "b"), copy("a", "y"), copy("b", "z")),
        free(),
    )


@plant(sound="%c64", faulty="%c0")
def what_a_call_gives_back(at: str) -> str:
    return late(
        f"%v = func.call @g(%a) : ({M}) -> {M}",
        copy("v", "y"),
        at,
        beside=f"func.func @g(%a: {M}) -> {M} {{\nreturn %a : {M}\n}}",
    )


def given(*body: str, call: str = "g", beside: str = "") -> str:
    """@g copies %a to %t, and returns one of them. The result is read after %b has
    taken the bytes of %a."""
    copied = lines(f"%t = memref.alloc() : {M}", copy("a", "t"), *body)
    return late(
        f"%v = func.call @{call}(%a, %p) : ({M}, i1) -> {M}",
        copy("v", "y"),
        "%c0",
        beside=f"func.func @g(%a: {M}, %p: i1) -> {M} {{\n{copied}\n}}\n{beside}",
    )


@plant(sound="t", faulty="a")
def what_a_call_allocates(returned: str) -> str:
    return given(f"return %{returned} : {M}")


@plant(sound="t", faulty="a")
def what_one_of_two_returns_allocates(returned: str) -> str:
    return given(
        *("cf.cond_br %p, ^one, ^other", "^one:", f"return %{returned} : {M}"),
        *("^other:", f"return %t : {M}"),
    )


@plant(sound="t", faulty="a", may_refuse="it does not follow choices to a return")
def what_a_call_chooses(other: str) -> str:
    return given(f"%r = arith.select %p, %{other}, %t : {M}", f"return %r : {M}")


@plant(sound="t", faulty="a")
def what_a_callee_of_the_callee_allocates(returned: str) -> str:
    return given(
        f"return %{returned} : {M}",
        call="h",
        beside=f"func.func @h(%a: {M}, %p: i1) -> {M} {{\n"
        f"%r = func.call @g(%a, %p) : ({M}, i1) -> {M}\nreturn %r : {M}\n}}",
    )


@plant(sound="%c64", faulty="%c0", may_refuse="offsets that only a run knows")
def what_a_call_makes_of_the_arena(at: str) -> str:
    """The callee creates the views of both buffers."""
    return program(
        arena(),
        f"%a = func.call @g(%arena, %c0) : ({I8}, index) -> {M}",
        f"%b = func.call @g(%arena, {at}) : ({I8}, index) -> {M}",
        *(copy("x", "a"), each("x", "b"), copy("a", "y"), copy("b", "z"), free()),
        beside=f"func.func @g(%arena: {I8}, %at: index) -> {M} {{\n"
        + lines(view("v", "%at"), f"return %v : {M}\n}}"),
    )


@plant(
    sound="%c64",
    faulty="%c0",
    may_refuse="a dealloc of what another function allocates",
)
def an_arena_from_a_call(at: str) -> str:
    return program(
        f"%arena = func.call @g() : () -> {I8}",
        *(view("a"), view("b", at), copy("x", "a"), each("x", "b"), add("a", "b", "y")),
        free(),
        beside=f"func.func @g() -> {I8} {{\n{arena()}\nreturn %arena : {I8}\n}}",
    )


@plant(sound="%c64", faulty="%c0")
def a_tensor(at: str) -> str:
    """bufferization.to_buffer returns the same memory."""
    tensor = "tensor<16xf32>"
    return late(
        f'%t = "bufferization.to_tensor"(%a) <{{restrict}}> : ({M}) -> {tensor}',
        f"%v = bufferization.to_buffer %t : {tensor} to {M}\n" + copy("v", "y"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def an_aligned_name(at: str) -> str:
    return late(f"%v = memref.assume_alignment %a, 64 : {M}", copy("v", "y"), at)


@plant(sound="%c64", faulty="%c0")
def distinct_names(at: str) -> str:
    """memref.distinct_objects returns an alias of %a that does not overlap %x."""
    return late(
        f'%v, %w = "memref.distinct_objects"(%a, %x) : ({M}, {M}) -> ({M}, {M})',
        copy("v", "y"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def a_view_of_a_view(at: str) -> str:
    """%a is a view of a buffer of bytes, which is a view of the arena."""
    bytes = "memref<64xi8>"
    return program(
        *(arena(), view("inner", type=bytes), view("b", at)),
        f"%a = memref.view %inner[%c0][] : {bytes} to {M}",
        *(copy("x", "a"), each("x", "b"), copy("a", "y"), copy("b", "z"), free()),
    )


@plant(sound="%c32", faulty="%c0")
def two_views_of_a_view(at: str) -> str:
    """Two buffers of 8 elements in one buffer of bytes."""
    bytes, type = "memref<64xi8>", "memref<8xf32>"
    return program(
        *(
            arena(alignment=32),
            view("inner", type=bytes),
            f"%low = memref.subview %x[0] [8] [1] : {M} to {type}",
        ),
        f"%a = memref.view %inner[%c0][] : {bytes} to {type}",
        f"%b = memref.view %inner[{at}][] : {bytes} to {type}",
        f"%ya = memref.subview %y[0] [8] [1] : {M} to {type}",
        f"%za = memref.subview %z[0] [8] [1] : {M} to {type}",
        *(copy("low", "a", type), each("low", "b", type)),
        *(copy("a", "ya", type), copy("b", "za", type), free()),
    )


@plant(sound="%c64", faulty="%c0")
def a_reshape_by_a_shape(at: str) -> str:
    shape = "memref<1xindex>"
    return late(
        f"%shape = memref.alloca() : {shape}\n"
        f"memref.store %c16, %shape[%c0] : {shape}\n"
        f'%v = "memref.reshape"(%a, %shape) : ({M}, {shape}) -> memref<?xf32>\n'
        f"%to = memref.cast %y : {M} to memref<?xf32>",
        copy("v", "to", "memref<?xf32>"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def a_memory_space_cast(at: str) -> str:
    other = "memref<16xf32, 1>"
    return late(
        f'%o = "memref.memory_space_cast"(%a) : ({M}) -> {other}\n'
        f'%v = "memref.memory_space_cast"(%o) : ({other}) -> {M}',
        copy("v", "y"),
        at,
    )


@plant(sound="%c64", faulty="%c0")
def captured_by_a_body(at: str) -> str:
    """The body of a linalg.generic loads from %a, which is not an operand."""
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        "linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = "
        f'["parallel"]}} outs(%b : {M}) {{',
        "^bb0(%old: f32):\n%i = linalg.index 0 : index",
        f"%other = arith.subi %c15, %i : index\n%new = memref.load %a[%other] : {M}",
        *("linalg.yield %new : f32\n}", copy("b", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def updated_atomically(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), each("x", "b")),
        "%one = arith.constant 77.0 : f32",
        f'%old = "memref.atomic_rmw"(%one, %a, %c0) <{{kind = 0 : i64}}> : '
        f"(f32, {M}, index) -> f32",
        *(copy("b", "y"), copy("a", "z"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def read_as_a_vector(at: str) -> str:
    return late(
        "",
        "%pad = arith.constant 0.0 : f32\n"
        f"%v = vector.load %a[%c0] : {M}, vector<16xf32>\n"
        f"vector.store %v, %y[%c0] : {M}, vector<16xf32>",
        at,
    )


@plant(sound="%c64", faulty="%c0")
def prefetched_and_read_in_a_loop(at: str) -> str:
    return late(
        "", loop(f"%v = memref.load %a[%t] : {M}", f"memref.store %v, %y[%t] : {M}"), at
    )


@plant(sound="%c64", faulty="%c0")
def a_buffer_kept_in_a_global(at: str) -> str:
    """A callee stores the memref in a global, and another callee reads it."""
    table = f"memref<1x{M}>"
    get = f"%c0 = arith.constant 0 : index\n%table = memref.get_global @table : {table}"
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        *(f"func.call @keep(%a) : ({M}) -> ()", each("x", "b")),
        *(f"func.call @use(%y) : ({M}) -> ()", copy("b", "z"), free()),
        beside=f'memref.global "private" @table : {table} = uninitialized\n'
        + lines(
            f"func.func @keep(%a: {M}) {{",
            *(get, f"memref.store %a, %table[%c0] : {table}", "return\n}"),
            f"func.func @use(%y: {M}) {{",
            *(get, f"%a = memref.load %table[%c0] : {table}", copy("a", "y")),
            "return\n}",
        ),
    )


@plant(sound="%c64", faulty="%c0")
def read_by_what_is_called_indirectly(at: str) -> str:
    type = f"({M}, {M}) -> ()"
    return late(
        f'%g = "func.constant"() <{{value = @g}}> : () -> ({type})',
        f'"func.call_indirect"(%g, %a, %y) : ({type}, {M}, {M}) -> ()',
        at,
        beside=f"func.func @g(%a: {M}, %y: {M}) {{\n" + copy("a", "y") + "\nreturn\n}",
    )


REGION = f"%v = scf.execute_region -> {M} {{\nscf.yield %a : {M}\n}}"


@plant(sound="%c64", faulty="%c0", modes=("run",))
def what_a_scope_gives_back(at: str, mode: str) -> str:
    """Runs use scf.execute_region, as mlir-opt lowers no scope with memref results."""
    scope = (
        f'%v = "memref.alloca_scope"() ({{\n"memref.alloca_scope.return"(%a) : ({M}) '
        f"-> ()\n}}) : () -> {M}"
    )
    return late(REGION if mode == "run" else scope, copy("v", "y"), at)


@plant(sound="%c64", faulty="%c0")
def what_a_branch_gives_back(at: str) -> str:
    return late(
        f'%v = "affine.if"(%n) ({{\n"affine.yield"(%a) : ({M}) -> ()\n}}, {{\n'
        f'"affine.yield"(%a) : ({M}) -> ()\n}}) {{condition = affine_set<(d0) : '
        f"(d0 - 1 >= 0)>}} : (index) -> {M}",
        copy("v", "y"),
        at,
    )


@plant(sound="%c64", faulty="%c0", modes=("run",))
def what_an_unknown_region_gives_back(at: str, mode: str) -> str:
    """Runs use scf.execute_region instead of the unknown operation."""
    wrap = f'%v = "test.wrap"() ({{\n"test.give"(%a) : ({M}) -> ()\n}}) : () -> {M}'
    return late(REGION if mode == "run" else wrap, copy("v", "y"), at)
