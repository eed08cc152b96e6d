"""Faults of deallocs: repeated, too early, on some paths only, missing, or of memory
that is no arena."""

from planted import (
    I8,
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
    view,
)

USE = lines(view("a"), copy("x", "a"), copy("a", "y"))


@plant(sound="", faulty=free())
def freed_twice(again: str) -> str:
    return program(arena(), USE, free(), again)


@plant(sound=free(), faulty="")
def never_freed(last: str) -> str:
    return program(arena(), USE, last)


@plant(sound=free(), faulty="")
def never_freed_in_a_loop(last: str) -> str:
    return program(loop(arena(), USE, last))


@plant(sound=False, faulty=True)
def freed_in_each_iteration(inside: bool) -> str:
    iterations = (
        loop(copy("x", "y"), free()) if inside else loop(copy("x", "y")) + free()
    )
    return program(arena(), USE, iterations)


@plant(sound=False, faulty=True)
def freed_in_each_iteration_of_an_affine_loop(inside: bool) -> str:
    tail = [free(), "}"] if inside else ["}", free()]
    return program(arena(), USE, "affine.for %i = 0 to 2 {", copy("x", "y"), *tail)


@plant(sound=False, faulty=True)
def freed_in_the_condition_of_a_while(inside: bool) -> str:
    return program(
        *(arena(), USE, "%r = scf.while (%i = %c0) : (index) -> index {"),
        free() if inside else "",
        "%more = arith.cmpi slt, %i, %n : index",
        *("scf.condition(%more) %i : index", "} do {", "^bb0(%j: index):"),
        *("%k = arith.addi %j, %c1 : index", "scf.yield %k : index", "}"),
        "" if inside else free(),
    )


@plant(sound=free(), faulty="")
def freed_on_one_branch_only(other: str) -> str:
    return program(arena(), USE, branch([free()], [copy("x", "z"), other]))


@plant(sound="", faulty=free())
def freed_on_a_branch_and_again_after(early: str) -> str:
    return program(arena(), USE, branch([copy("x", "z"), early]), free())


@plant(sound=free(), faulty="")
def freed_in_one_case_only(other: str) -> str:
    return program(
        *(arena(), USE, "scf.index_switch %n", "case 2 {", free(), "scf.yield", "}"),
        *("default {", other, "scf.yield", "}"),
    )


@plant(sound=free(), faulty="")
def not_freed_where_a_block_leaves_early(early: str) -> str:
    return program(
        *(arena(), USE, "cf.cond_br %p, ^out, ^on", "^out:", early, "return"),
        *("^on:", copy("x", "z"), free()),
    )


@plant(sound="^free", faulty="^skip")
def blocks_that_go_round_the_free(to: str) -> str:
    return program(
        *(arena(), USE, f"cf.cond_br %p, {to}, ^free"),
        *("^free:", free(), "cf.br ^skip", "^skip:"),
    )


@plant(sound="^skip", faulty="^free")
def blocks_that_come_to_the_free_again(to: str) -> str:
    """A block that frees is entered a second time."""
    return program(
        *(arena(), USE, "%no = arith.constant false", "%yes = arith.constant true"),
        "cf.br ^free(%p : i1)",
        *("^free(%again: i1):", free()),
        f"cf.cond_br %again, {to}"
        + ("(%no : i1)" if to == "^free" else "")
        + ", ^skip",
        "^skip:",
    )


@plant(sound=False, faulty=True)
def freed_before_the_last_use(early: bool) -> str:
    last = copy("a", "z")
    return program(arena(), USE, *((free(), last) if early else (last, free())))


@plant(sound=False, faulty=True)
def freed_before_a_use_in_a_loop(early: bool) -> str:
    last = loop(copy("a", "z"))
    return program(arena(), USE, *((free(), last) if early else (last, free())))


@plant(sound=False, faulty=True)
def freed_on_a_branch_before_a_use(early: bool) -> str:
    last = branch([copy("a", "z")], [copy("x", "z")])
    if not early:
        return program(arena(), USE, last, free())
    freed = branch([free()], [copy("x", "z"), free()])
    return program(arena(), USE, freed, last)


@plant(sound=False, faulty=True)
def freed_at_the_end_of_an_iteration(inside: bool) -> str:
    """The next iteration uses the arena. The sound twin frees it after the loop."""
    use = [view("a"), copy("x", "a"), copy("a", "y")]
    if inside:
        return program(
            arena(), loop(*use, branch([free()], on="%p")), branch([], [free()])
        )
    return program(arena(), loop(*use), free())


@plant(sound=False, faulty=True)
def freed_before_a_use_of_a_view_of_a_view(early: bool) -> str:
    part = "memref<8xf32, strided<[1], offset: 8>>"
    low = "memref<8xf32>"
    last = copy("part", "to", part, low)
    return program(
        *(arena(), USE, f"%part = memref.subview %a[8] [8] [1] : {M} to {part}"),
        f"%to = memref.subview %z[0] [8] [1] : {M} to {low}",
        *((free(), last) if early else (last, free())),
    )


@plant(sound=False, faulty=True)
def freed_under_another_name_before_a_use(early: bool) -> str:
    loose = "memref<?xi8>"
    gone = free("cast", loose)
    last = copy("a", "z")
    return program(
        *(arena(), USE, f"%cast = memref.cast %arena : {I8} to {loose}"),
        *((gone, last) if early else (last, gone)),
    )


@plant(sound="", faulty=free("cast", "memref<?xi8>"))
def freed_again_under_another_name(again: str) -> str:
    return program(
        *(arena(), USE, f"%cast = memref.cast %arena : {I8} to memref<?xi8>"),
        *(free(), again),
    )


@plant(sound="arena", faulty="other")
def freed_by_a_choice_of_two(which: str) -> str:
    """If %p, %other is freed twice and %arena never."""
    return program(
        *(arena(), arena("other"), USE),
        f"%either = arith.select %p, %{which}, %arena : {I8}",
        *(free("either"), free("other")),
    )


@plant(sound=False, faulty=True, may_refuse="which arena is freed, the branch decides")
def freed_by_what_a_branch_yields(early: bool) -> str:
    last = copy("a", "z")
    gone = free("either")
    return program(
        *(arena(), arena("other"), USE),
        f"%either, %rest = scf.if %p -> ({I8}, {I8}) {{",
        f"scf.yield %arena, %other : {I8}, {I8}",
        f"}} else {{\nscf.yield %other, %arena : {I8}, {I8}\n}}",
        *((gone, last) if early else (last, gone)),
        free("rest"),
    )


@plant(sound="return", faulty=free() + "\nreturn")
def freed_by_who_is_called_too(end: str) -> str:
    return program(
        *(arena(), f"func.call @g(%arena, %x, %y) : ({I8}, {M}, {M}) -> ()", free()),
        beside=f"func.func @g(%arena: {I8}, %x: {M}, %y: {M}) {{\n"
        "%c0 = arith.constant 0 : index\n" + lines(USE, end, "}"),
    )


@plant(sound=False, faulty=True)
def freed_by_who_is_called_before_a_use(early: bool) -> str:
    call = f"func.call @g(%arena) : ({I8}) -> ()"
    last = copy("a", "z")
    return program(
        *(arena(), USE, *((call, last) if early else (last, call))),
        beside=f"func.func @g(%arena: {I8}) {{\n{free()}\nreturn\n}}",
    )


@plant(sound=False, faulty=True)
def what_is_called_frees_the_callers_buffer(early: bool) -> str:
    """The callee frees the arena through a view at offset 0."""
    flat = "memref<16xf32>"
    return program(
        *(arena(), USE, f"func.call @g(%a) : ({flat}) -> ()"),
        "" if early else free(),
        beside=f"func.func @g(%a: {flat}) {{\n"
        + ("memref.dealloc %a : memref<16xf32>\n" if early else "")
        + "return\n}",
        # A view at offset 0 has the address of its arena, so this frees it too early.
        results=copy("a", "z") + "\nreturn" if early else "return",
    ).replace(free() + "\nreturn", copy("a", "z") + "\n" + free() + "\nreturn")


@plant(sound="", faulty=f"memref.dealloc %a : {M}")
def a_view_is_freed_too(again: str) -> str:
    return program(arena(), USE, again, free())


@plant(sound="", faulty=f"memref.dealloc %a : {M}")
def a_view_in_a_loop_is_freed_too(again: str) -> str:
    return program(loop(arena(), USE, again, free()))


@plant(sound="", faulty="memref.dealloc %part : memref<8xf32, strided<[1], offset: 8>>")
def a_part_is_freed_too(again: str) -> str:
    part = "memref<8xf32, strided<[1], offset: 8>>"
    return program(
        *(arena(), USE, f"%part = memref.subview %a[8] [8] [1] : {M} to {part}"),
        *(again, free()),
    )


@plant(sound="", faulty=free())
def a_global_arena_is_freed(last: str) -> str:
    return program(
        *(f"%arena = memref.get_global @pool : {I8}", USE, last),
        beside=f'memref.global "private" @pool : {I8} = uninitialized',
    )


@plant(
    sound="",
    faulty=f"memref.dealloc %x : {M}",
    beyond="it is no arena; the caller may have meant it",
)
def an_argument_is_freed(last: str) -> str:
    return program(arena(), USE, free(), last)


@plant(sound=False, faulty=True)
def reallocated_before_a_use(early: bool) -> str:
    """memref.realloc frees the old arena, and %a is read after it."""
    more = "memref<512xi8>"
    last = copy("a", "z")
    grow = f'%more = "memref.realloc"(%arena) : ({I8}) -> {more}'
    order = (grow, last) if early else (last, grow)
    return program(arena(), USE, *order, free("more", more))


@plant(sound=False, faulty=True)
def freed_in_one_of_many_iterations(early: bool) -> str:
    """The second iteration frees the arena; the sound twin frees it after the loop."""
    return program(
        *(arena(), USE),
        loop(
            "%last = arith.cmpi eq, %t, %c1 : index",
            branch([free()], on="%last") if early else "",
            copy("a", "z"),
        ),
        "" if early else free(),
        "%short = arith.cmpi slt, %n, %c2 : index",
        branch([free()], on="%short") if early else "",
    )


@plant(sound=False, faulty=True)
def freed_in_a_parallel_loop(inside: bool) -> str:
    body = copy("x", "y")
    iterations = parallel(body, free() if inside else "", to="%c2")
    return program(arena(), USE, iterations, "" if inside else free())


@plant(sound=False, faulty=True)
def freed_through_a_pointer(early: bool) -> str:
    last = copy("a", "z")
    gone = lines(
        f"%at = memref.extract_aligned_pointer_as_index %arena : {I8} -> index",
        "%i64 = arith.index_cast %at : index to i64",
        "%ptr = llvm.inttoptr %i64 : i64 to !llvm.ptr",
        "llvm.call @_mlir_memref_to_llvm_free(%ptr) : (!llvm.ptr) -> ()",
    )
    return program(arena(), USE, *((gone, last) if early else (last, gone)))


@plant(sound=False, faulty=True, may_refuse="a buffer of an arena is returned")
def a_view_outlives_its_arena_as_a_result(early: bool) -> str:
    """The callee returns a buffer of an arena that it has freed."""
    body = lines(
        arena(), USE, free() if early else "", f"return %a, %arena : {M}, {I8}"
    )
    return program(
        f"%b, %left = func.call @g(%x, %y) : ({M}, {M}) -> ({M}, {I8})",
        copy("b", "z"),
        "" if early else free("left"),
        beside=f"func.func @g(%x: {M}, %y: {M}) -> ({M}, {I8}) {{\n"
        f"%c0 = arith.constant 0 : index\n{body}\n}}",
    )


@plant(sound=False, faulty=True)
def a_view_outlives_its_loop(early: bool) -> str:
    """An iteration frees its arena and yields a buffer of it."""
    part = lines(view("a"), each("x", "a"))
    if not early:
        return program(
            *(arena(), part),
            f"%r = scf.for %t = %c0 to %n step %c1 iter_args(%k = %a) -> ({M}) {{",
            *(f"scf.yield %k : {M}", "}", copy("r", "y"), free()),
        )
    return program(
        *(arena("first"), view("b", of="first"), each("x", "b")),
        f"%r = scf.for %t = %c0 to %n step %c1 iter_args(%k = %b) -> ({M}) {{",
        *(arena(), part, free(), f"scf.yield %a : {M}", "}"),
        *(copy("r", "y"), free("first")),
    )


@plant(sound=False, faulty=True)
def a_view_outlives_its_branch(early: bool) -> str:
    part = lines(view("a"), each("x", "a"))
    if not early:
        return program(
            *(arena(), part, f"%r = scf.if %p -> ({M}) {{", f"scf.yield %a : {M}"),
            *("} else {", f"scf.yield %a : {M}", "}", copy("r", "y"), free()),
        )
    return program(
        *(arena("first"), view("b", of="first"), each("x", "b")),
        *(f"%r = scf.if %p -> ({M}) {{", arena(), part, free(), f"scf.yield %a : {M}"),
        *("} else {", f"scf.yield %b : {M}", "}", copy("r", "y"), free("first")),
    )


@plant(
    sound="",
    faulty='"gpu.dealloc"(%arena) : (memref<256xi8>) -> ()',
    modes=("run",),
    may_refuse="a dealloc that nobody knows",
)
def freed_on_a_device_twice(again: str, mode: str) -> str:
    gone = '"gpu.dealloc"(%arena) : (memref<256xi8>) -> ()'
    if mode == "checked":
        make = (
            '%arena = "gpu.alloc"() {operandSegmentSizes = array<i32: 0, 0, 0>} : () '
            f"-> {I8}"
        )
        return program(make, USE, gone, again)
    return program(arena(), USE, free(), free() if again else "")


@plant(sound=False, faulty=True)
def freed_if_it_is_not_the_callers(early: bool) -> str:
    """Frees an allocation or, if not %p, a stack buffer, as if it were the caller's."""
    bytes = "memref<64xi8>"
    gone = free("either" if early else "own", bytes)
    return program(
        f"%own = memref.alloc() {{alignment = 64 : i64}} : {bytes}",
        f"%given = memref.alloca() {{alignment = 64 : i64}} : {bytes}",
        f"%either = arith.select %p, %own, %given : {bytes}",
        view("a", of="own", arena=bytes),
        *(copy("x", "a"), copy("a", "y"), gone),
    )
