"""Faults on paths through branches and loops: reads of bytes that another buffer has
overwritten, or that were never written."""

from planted import (
    I8,
    SQUARE,
    M,
    add,
    arena,
    branch,
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


@plant(sound=copy("x", "a"), faulty="")
def read_and_never_written(write: str) -> str:
    return program(arena(), view("a"), write, copy("a", "y"), free())


@plant(sound=copy("x", "a"), faulty="")
def computed_with_and_never_written(write: str) -> str:
    return program(arena(), view("a"), write, each("a", "y"), free())


@plant(sound=copy("x", "a"), faulty="")
def written_on_one_branch(other: str) -> str:
    write = branch([copy("x", "a")], [other])
    return program(arena(), view("a"), write, copy("a", "y"), free())


@plant(sound=copy("x", "a"), faulty="")
def written_in_one_case(other: str) -> str:
    return program(
        *(arena(), view("a"), "scf.index_switch %n", "case 1 {", copy("x", "a")),
        *("scf.yield", "}", "default {", other, "scf.yield", "}"),
        *(copy("a", "y"), free()),
    )


@plant(sound=copy("x", "a"), faulty="")
def written_on_one_path_of_blocks(other: str) -> str:
    return program(
        *(arena(), view("a"), "cf.cond_br %p, ^l, ^r", "^l:", copy("x", "a")),
        *("cf.br ^e", "^r:", other, "cf.br ^e", "^e:", copy("a", "y"), free()),
    )


@plant(sound=copy("x", "a"), faulty="")
def written_in_a_loop_that_may_not_run(before: str) -> str:
    return program(
        *(arena(), view("a"), before, loop(copy("x", "a"))), copy("a", "y"), free()
    )


@plant(sound=copy("x", "a"), faulty="")
def written_in_the_body_of_a_while(before: str) -> str:
    return program(
        *(arena(), view("a"), before, "%r = scf.while (%i = %c0) : (index) -> index {"),
        "%more = arith.cmpi slt, %i, %n : index",
        *("scf.condition(%more) %i : index", "} do {", "^bb0(%j: index):"),
        copy("x", "a"),
        *("%k = arith.addi %j, %c1 : index", "scf.yield %k : index", "}"),
        *(copy("a", "y"), free()),
    )


@plant(sound="%c16", faulty="%c15")
def written_all_but_the_last_element(end: str) -> str:
    return program(
        *(arena(), view("a")),
        loop(
            f"%v = memref.load %x[%t] : {M}", f"memref.store %v, %a[%t] : {M}", to=end
        ),
        *(copy("a", "y"), free()),
    )


@plant(sound="%c16", faulty="%n")
def written_as_often_as_asked(end: str) -> str:
    return program(
        *(arena(), view("a")),
        loop(
            f"%v = memref.load %x[%t] : {M}", f"memref.store %v, %a[%t] : {M}", to=end
        ),
        *(copy("a", "y"), free()),
    )


@plant(sound=16, faulty=12)
def written_in_part_by_an_affine_loop(end: int) -> str:
    return program(
        *(arena(), view("a"), f"affine.for %i = 0 to {end} {{"),
        f"%v = affine.load %x[%i] : {M}\naffine.store %v, %a[%i] : {M}\n}}",
        *(copy("a", "y"), free()),
    )


def half(of: str, name: str, first: int) -> str:
    layout = f", strided<[1], offset: {first}>" if first else ""
    type = f"memref<8xf32{layout}>"
    return f"%{name} = memref.subview %{of}[{first}] [8] [1] : {M} to {type}"


@plant(sound=8, faulty=0)
def one_half_written_twice(second: int) -> str:
    low, high = "memref<8xf32>", "memref<8xf32, strided<[1], offset: 8>>"
    to = high if second else low
    return program(
        *(arena(), view("a"), half("a", "la", 0), half("a", "ha", second)),
        *(half("x", "lx", 0), half("x", "hx", 8)),
        *(copy("lx", "la", low), copy("hx", "ha", high, to), copy("a", "y"), free()),
    )


@plant(sound=copy("x", "a"), faulty="")
def stale_bytes_read_by_linalg(write: str) -> str:
    """Nothing writes %a. Its bytes have the contents of the dead buffer %b."""
    return program(
        *(arena(), view("b"), each("x", "b"), copy("b", "z")),
        *(view("a"), write, each("a", "y"), free()),
    )


@plant(sound=copy("x", "a"), faulty="")
def stale_bytes_added_to(write: str) -> str:
    """The body of a linalg.generic reads the output %a, which nothing wrote."""
    same = "affine_map<(d0) -> (d0)>"
    return program(
        *(arena(), view("b"), each("x", "b"), copy("b", "z"), view("a"), write),
        f"linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = "
        f'["parallel"]}} ins(%x : {M}) outs(%a : {M}) {{',
        "^bb0(%in0: f32, %old: f32):\n%new = arith.addf %in0, %old : f32",
        *("linalg.yield %new : f32\n}", copy("a", "y"), free()),
    )


@plant(sound=True, faulty=False)
def a_sum_without_its_zero(is_filled: bool) -> str:
    """linalg.matmul accumulates into an output that is not filled with zeros."""
    fill = (
        "%zero = arith.constant 0.0 : f32\n"
        f"linalg.fill ins(%zero : f32) outs(%a : {SQUARE})"
        if is_filled
        else ""
    )
    return program(
        *(arena(), view("a", type=SQUARE), fill),
        squares("x", "y"),
        f"linalg.matmul ins(%sx, %sx : {SQUARE}, {SQUARE}) outs(%a : {SQUARE})",
        *(copy("a", "sy", SQUARE), free()),
    )


@plant(sound="%c64", faulty="%c0")
def kept_for_the_next_iteration(at: str) -> str:
    """Each iteration reads %a, then overwrites its bytes with %b."""
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        loop(
            *(copy("a", "y"), each("y", "b"), copy("b", "z")),
        ),
        *(copy("a", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def used_after_a_loop(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        *(loop(each("x", "b"), copy("b", "z")), copy("a", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def used_after_one_branch(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        *(branch([each("x", "b"), copy("b", "z")]), copy("a", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def used_after_a_case(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        *("scf.index_switch %n", "case 3 {", each("x", "b"), copy("b", "z")),
        *("scf.yield", "}", "default {", "scf.yield", "}", copy("a", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def used_in_both_regions_of_a_while(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        "%r = scf.while (%i = %c0) : (index) -> index {",
        "%more = arith.cmpi slt, %i, %n : index",
        copy("a", "y"),
        *("scf.condition(%more) %i : index", "} do {", "^bb0(%j: index):"),
        *(each("x", "b"), copy("b", "z")),
        *("%k = arith.addi %j, %c1 : index", "scf.yield %k : index", "}", free()),
    )


@plant(sound="%c64", faulty="%c0")
def used_round_a_loop_of_blocks(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), "cf.br ^h(%c0 : index)"),
        *("^h(%i: index):", copy("a", "y"), each("x", "b"), copy("b", "z")),
        "%next = arith.addi %i, %c1 : index",
        "%more = arith.cmpi slt, %next, %n : index",
        *("cf.cond_br %more, ^h(%next : index), ^e", "^e:", free()),
    )


@plant(sound="%c64", faulty="%c0")
def given_to_a_block(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), each("x", "b")),
        f"cf.cond_br %p, ^l(%a : {M}), ^l(%b : {M})",
        *(f"^l(%k: {M}):", copy("k", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def yielded_by_a_branch(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        f"%r = scf.if %p -> ({M}) {{\nscf.yield %a : {M}\n}} else {{",
        f"scf.yield %x : {M}\n}}",
        *(each("x", "b"), copy("r", "y"), copy("b", "z"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def selected(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        f"%r = arith.select %p, %a, %x : {M}",
        *(each("x", "b"), copy("r", "y"), copy("b", "z"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def carried_to_and_fro(at: str) -> str:
    """A loop swaps two buffers in each iteration."""
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), copy("x", "b")),
        f"%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%k = %a, %l = %b) -> "
        f"({M}, {M}) {{",
        *(add("k", "x", "l"), f"scf.yield %l, %k : {M}, {M}", "}"),
        *(copy("r#0", "y"), copy("r#1", "z"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def carried_by_a_while_to_and_fro(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), copy("x", "b")),
        f"%r:3 = scf.while (%i = %c0, %k = %a, %l = %b) : (index, {M}, {M}) -> "
        f"(index, {M}, {M}) {{",
        "%more = arith.cmpi slt, %i, %n : index",
        f"scf.condition(%more) %i, %l, %k : index, {M}, {M}",
        f"}} do {{\n^bb0(%j: index, %m: {M}, %o: {M}):",
        *(add("m", "x", "o"), "%next = arith.addi %j, %c1 : index"),
        f"scf.yield %next, %m, %o : index, {M}, {M}\n}}",
        *(copy("r#1", "y"), copy("r#2", "z"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def given_to_a_call_together(at: str) -> str:
    """The callee writes %b, then reads %a and %b."""
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), copy("x", "b")),
        *(f"func.call @g(%a, %b, %x, %y) : ({M}, {M}, {M}, {M}) -> ()", free()),
        beside=f"func.func @g(%a: {M}, %b: {M}, %x: {M}, %y: {M}) {{\n"
        + lines(each("x", "b"), add("a", "b", "y"), "return\n}"),
    )


@plant(sound="%c64", faulty="%c0", may_refuse="offsets that only a run knows")
def taken_by_what_is_called(at: str) -> str:
    """The callee places a buffer in the caller's arena, over a buffer of the caller."""
    return program(
        *(arena(), view("a"), copy("x", "a")),
        f"func.call @g(%arena, {at}, %x, %z) : ({I8}, index, {M}, {M}) -> ()",
        *(copy("a", "y"), free()),
        beside=f"func.func @g(%arena: {I8}, %at: index, %x: {M}, %z: {M}) {{\n"
        + lines(view("b", "%at"), each("x", "b"), copy("b", "z"), "return\n}"),
    )


@plant(sound="%c64", faulty="%c0", may_refuse="the callee is given the arena itself")
def taken_by_a_recursive_call(at: str) -> str:
    signature = f"({I8}, index, {M}, {M}) -> ()"
    return program(
        *(arena(), f"func.call @g(%arena, %n, %x, %y) : {signature}", free()),
        beside=f"func.func @g(%arena: {I8}, %n: index, %x: {M}, %y: {M}) {{\n"
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
        "%c64 = arith.constant 64 : index\n"
        + lines(
            *(view("a"), view("b", at), copy("x", "a"), each("x", "b")),
            "%more = arith.cmpi sgt, %n, %c0 : index",
            branch(
                [
                    "%less = arith.subi %n, %c1 : index",
                    f"func.call @g(%arena, %less, %x, %y) : {signature}",
                ],
                on="%more",
            ),
            *(add("a", "b", "y"), "return\n}"),
        ),
    )


@plant(sound="%c64", faulty="%c0", may_refuse="offsets that only a run knows")
def in_a_global_that_what_is_called_uses(at: str) -> str:
    pool = f"%arena = memref.get_global @pool : {I8}"
    return program(
        *(pool, view("a"), copy("x", "a")),
        f"func.call @g({at}, %x, %z) : (index, {M}, {M}) -> ()",
        copy("a", "y"),
        beside=f'memref.global "private" @pool : {I8} = uninitialized\n'
        f"func.func @g(%at: index, %x: {M}, %z: {M}) {{\n"
        + lines(pool, view("b", "%at"), each("x", "b"), copy("b", "z"), "return\n}"),
    )


@plant(sound="%c64", faulty="%c0")
def kept_round_an_inner_loop(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at)),
        loop(
            copy("x", "a"),
            loop(each("a", "b"), copy("b", "z"), index="u"),
            copy("a", "y"),
        ),
        free(),
    )


@plant(sound="%c64", faulty="%c0")
def written_before_a_branch_that_reads(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), each("x", "b")),
        *(copy("b", "z"), branch([copy("a", "y")]), free()),
    )


@plant(sound=False, faulty=True)
def made_in_a_loop_and_read_in_the_next_iteration(stale: bool) -> str:
    """Each iteration creates the view anew, with undefined contents."""
    read = branch([copy("a", "y")], on="%later")
    order = (read, copy("x", "a")) if stale else (copy("x", "a"), read)
    return program(
        arena(),
        loop(
            *(view("b"), each("x", "b"), copy("b", "z"), view("a")),
            *("%later = arith.cmpi sgt, %t, %c0 : index", *order),
        ),
        free(),
    )


@plant(sound=False, faulty=True)
def a_result_that_is_written_on_one_path(one: bool) -> str:
    """%b is read on both paths, but written on one."""
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a")),
        branch([each("a", "b")], None if one else [copy("x", "b")]),
        *(copy("b", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def used_in_an_affine_loop(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        "affine.for %i = 0 to 16 {",
        f"%v = affine.load %a[%i] : {M}\n%w = arith.addf %v, %v : f32",
        f"affine.store %w, %b[15 - %i] : {M}\n}}",
        *(copy("b", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def used_in_a_loop_of_scalars(at: str) -> str:
    """b[15 - t] = a[t] + a[t]: from t = 8 on, a[t] has been overwritten."""
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        loop(
            f"%v = memref.load %a[%t] : {M}",
            "%to = arith.subi %c15, %t : index",
            "%w = arith.addf %v, %v : f32",
            f"memref.store %w, %b[%to] : {M}",
            to="%c16",
        ),
        *(copy("b", "y"), free()),
    )


@plant(sound="%c64", faulty="%c32")
def an_execute_region_between(at: str) -> str:
    return program(
        *(arena(alignment=32), view("a"), view("b", at), copy("x", "a")),
        *("scf.execute_region {", each("x", "b"), copy("b", "z"), "scf.yield", "}"),
        *(copy("a", "y"), free()),
    )


@plant(sound="%c64", faulty="%c0")
def blocks_in_an_execute_region(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a")),
        *("scf.execute_region {", "cf.cond_br %p, ^l, ^r", "^l:", each("x", "b")),
        *(copy("b", "z"), "cf.br ^r", "^r:", "scf.yield", "}", copy("a", "y"), free()),
    )


@plant(sound=4, faulty=2)
def parts_that_overlap_and_leave_a_gap(second: int) -> str:
    """Two parts of 12 elements overlap, and miss the last two of 16 elements."""
    low, high = "memref<12xf32>", f"memref<12xf32, strided<[1], offset: {second}>>"
    return program(
        *(arena(), view("a")),
        f"%la = memref.subview %a[0] [12] [1] : {M} to {low}",
        f"%ha = memref.subview %a[{second}] [12] [1] : {M} to {high}",
        f"%lx = memref.subview %x[0] [12] [1] : {M} to {low}",
        f"%hx = memref.subview %x[{second}] [12] [1] : {M} to {high}",
        *(copy("lx", "la", low), copy("hx", "ha", high), copy("a", "y"), free()),
    )


@plant(sound=copy("x", "a"), faulty="")
def one_element_written_by_a_store(first: str) -> str:
    return program(
        *(arena(), view("a"), first, f"%v = memref.load %x[%c0] : {M}"),
        *(f"memref.store %v, %a[%c0] : {M}", copy("a", "y"), free()),
    )


@plant(sound=copy("x", "a"), faulty="")
def every_other_element_written(first: str) -> str:
    """The map of the output skips every other element."""
    eight = "memref<8xf32>"
    return program(
        *(arena(), view("a"), first),
        f"%half = memref.subview %x[0] [8] [1] : {M} to {eight}",
        "linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> "
        f'(d0 * 2)>], iterator_types = ["parallel"]}} ins(%half : {eight}) outs(%a : '
        f"{M}) {{\n^bb0(%in0: f32, %old: f32):\n%new = arith.negf %in0 : f32",
        *("linalg.yield %new : f32\n}", copy("a", "y"), free()),
    )


@plant(sound=copy("x", "a"), faulty="")
def written_by_who_is_called_who_does_not(inside: str) -> str:
    return program(
        *(arena(), view("a"), f"func.call @g(%a, %x) : ({M}, {M}) -> ()"),
        *(copy("a", "y"), free()),
        beside=f"func.func @g(%a: {M}, %x: {M}) {{\n{inside}\nreturn\n}}",
    )


@plant(sound="%c64", faulty="%c0")
def at_a_known_place_in_a_global_that_what_is_called_uses(at: str) -> str:
    pool = f"%arena = memref.get_global @pool : {I8}"
    return program(
        *(pool, view("a"), copy("x", "a"), f"func.call @g(%x, %z) : ({M}, {M}) -> ()"),
        copy("a", "y"),
        beside=f'memref.global "private" @pool : {I8} = uninitialized\n'
        f"func.func @g(%x: {M}, %z: {M}) {{\n%c0 = arith.constant 0 : index\n"
        "%c64 = arith.constant 64 : index\n"
        + lines(pool, view("b", at), each("x", "b"), copy("b", "z"), "return\n}"),
    )


@plant(sound="other", faulty="arena")
def one_arena_given_twice(second: str) -> str:
    return program(
        *(arena(), arena("other")),
        f"func.call @g(%arena, %{second}, %x, %y) : ({I8}, {I8}, {M}, {M}) -> ()",
        *(free(), free("other")),
        beside=f"func.func @g(%one: {I8}, %two: {I8}, %x: {M}, %y: {M}) {{\n"
        "%c0 = arith.constant 0 : index\n"
        + lines(
            *(view("a", of="one"), view("b", of="two"), copy("x", "a"), each("x", "b")),
            *(add("a", "b", "y"), "return\n}"),
        ),
    )


@plant(sound="%c64", faulty="%c0")
def given_to_a_case_of_blocks(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), each("x", "b")),
        "%flag = arith.index_cast %n : index to i32",
        f"cf.switch %flag : i32, [default: ^l(%b : {M}), 2: ^l(%a : {M})]",
        *(f"^l(%k: {M}):", copy("k", "y"), free()),
    )
