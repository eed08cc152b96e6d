"""Faults of buffers that branches and loops forward: they share one slot or rotate
through several slots, while more of them are live than there are slots."""

from planted import M, add, arena, copy, each, free, lines, plant, program, view

BYTES = "memref<64xi8>"
TURN = "(d0) -> (15 - d0)"


def next_slot(type: str = BYTES) -> str:
    return f"%now = memref.view %s0[%c0][] {{tgraph.buffer}} : {type} to {M}"


def slots(*places: str, type: str = BYTES) -> str:
    return lines(*(view(f"slot{n}", at, type) for n, at in enumerate(places)))


def rotating(
    body: list[str],
    *places: str,
    first: str = "%c0",
    passed: str = "%s1, %s0",
    after: str = "",
    type: str = BYTES,
) -> str:
    """A loop writes %now in slot %s0; it is %was in the next iteration."""
    types = ", ".join((M, *(type for _ in places)))
    carried = "".join(f", %s{n} = %slot{n}" for n in range(len(places)))
    return program(
        *(arena(), view("first", first), copy("x", "first"), slots(*places, type=type)),
        f"%last:{len(places) + 1} = scf.for %t = %c0 to %n step %c1 iter_args("
        f"%was = %first{carried}) -> ({types}) {{",
        *(next_slot(type), *body),
        *(f"scf.yield %now, {passed} : {types}", "}", after),
        f'"memref.copy"(%last#0, %y) : ({M}, {M}) -> ()',
        free(),
    )


STEP = lines(each("was", "now", read=TURN), add("now", "x", "now"))


@plant(sound="%s1, %s0", faulty="%s0, %s1")
def slots_that_are_not_swapped(passed: str) -> str:
    return rotating([STEP], "%c64", "%c0", passed=passed)


@plant(sound="%s1, %s0", faulty="%s1, %s1")
def a_slot_that_is_passed_on_twice(passed: str) -> str:
    return rotating([STEP], "%c64", "%c0", passed=passed)


@plant(sound="%c64", faulty="%c0")
def two_slots_at_one_place(at: str) -> str:
    return rotating([STEP], at, "%c0", first="%c128")


@plant(sound="%c0", faulty="%c64")
def the_first_in_the_slot_that_is_written_first(first: str) -> str:
    return rotating([STEP], "%c64", "%c0", first=first)


@plant(sound="%c128", faulty="%c0")
def the_first_is_read_after_the_loop(first: str) -> str:
    return rotating([STEP], "%c64", "%c0", first=first, after=copy("first", "z"))


@plant(sound="%c128", faulty="%c0")
def another_in_a_slot_after_the_loop(at: str) -> str:
    after = lines(view("b", at), each("x", "b"), copy("b", "z"))
    return rotating([STEP], "%c64", "%c0", after=after)


@plant(sound="%c128", faulty="%c64")
def another_in_a_slot_in_the_loop(at: str) -> str:
    body = lines(STEP, view("b", at), each("x", "b"), copy("b", "z"))
    return rotating([body], "%c64", "%c0")


@plant(sound=BYTES, faulty="memref<32xi8>", unsound=False)
def a_slot_that_is_too_small(type: str) -> str:
    return rotating([STEP], "%c64", "%c0", first="%c128", type=type)


def in_two_loops(started: str = "%t0, %t1", passed: str = "%end#1, %end#2") -> str:
    """An outer loop carries the buffer that an inner loop's last iteration wrote."""
    types = f"{M}, {BYTES}, {BYTES}"
    values = [f"%s0 = {started[:3]}", f"%s1 = {started[5:]}"]
    return program(
        *(arena(), view("first", "%c0"), copy("x", "first"), slots("%c64", "%c0")),
        "%last:3 = scf.for %r = %c0 to %n step %c1 iter_args("
        f"%begin = %first, %t0 = %slot0, %t1 = %slot1) -> ({types}) {{",
        "%end:3 = scf.for %t = %c0 to %n step %c1 iter_args("
        f"%was = %begin, {', '.join(values)}) -> ({types}) {{",
        *(next_slot(), STEP),
        f"scf.yield %now, %s1, %s0 : {types}\n}}",
        f"scf.yield %end#0, {passed} : {types}\n}}",
        f'"memref.copy"(%last#0, %y) : ({M}, {M}) -> ()',
        free(),
    )


@plant(sound="%end#1, %end#2", faulty="%end#2, %end#1")
def slots_that_the_loop_around_swaps(passed: str) -> str:
    return in_two_loops(passed=passed)


@plant(sound="%end#1, %end#2", faulty="%t0, %t1")
def slots_that_the_loop_around_turns_back(passed: str) -> str:
    return in_two_loops(passed=passed)


@plant(sound="%t0, %t1", faulty="%t1, %t0")
def slots_that_each_run_begins_with_in_the_wrong_order(started: str) -> str:
    return in_two_loops(started=started)


def of_three(*places: str, passed: str = "%s1, %s2, %s0") -> str:
    """Each iteration reads the results of the two previous iterations."""
    types = ", ".join((M, M, BYTES, BYTES, BYTES))
    return program(
        *(arena(), view("first", "%c128"), view("second", "%c64")),
        *(copy("x", "first"), each("x", "second"), slots(*places)),
        f"%last:5 = scf.for %t = %c0 to %n step %c1 iter_args(%was = %first, "
        "%older = %second, %s0 = %slot0, %s1 = %slot1, %s2 = %slot2) "
        f"-> ({types}) {{",
        *(next_slot(), STEP),
        copy("older", "z"),
        f"scf.yield %now, %was, {passed} : {types}\n}}",
        f'"memref.copy"(%last#0, %y) : ({M}, {M}) -> ()',
        free(),
    )


@plant(sound="%c64", faulty="%c128")
def two_slots_where_three_are_live(at: str) -> str:
    return of_three("%c0", at, "%c128")


@plant(sound="%s1, %s2, %s0", faulty="%s2, %s0, %s1")
def slots_that_rotate_the_wrong_way(passed: str) -> str:
    return of_three("%c0", "%c64", "%c128", passed=passed)


READ = copy("was", "z")
WRITE = lines(each("x", "now"), f"memref.store %twice, %now[%c0] : {M}")


@plant(sound=lines(READ, WRITE), faulty=lines(WRITE, READ))
def one_slot_where_the_one_before_is_read_later(body: str) -> str:
    return program(
        *(arena(), view("first", "%c64"), copy("x", "first")),
        f"%last = scf.for %t = %c0 to %n step %c1 iter_args(%was = %first) -> ({M}) {{",
        *(view("now"), f"%once = memref.load %was[%c0] : {M}"),
        *("%twice = arith.addf %once, %once : f32", body),
        *(f"scf.yield %now : {M}", "}", copy("last", "y"), free()),
    )


@plant(sound="%s1, %s0", faulty="%s0, %s1")
def slots_of_a_while_that_are_not_swapped(passed: str) -> str:
    types = f"index, {M}, {BYTES}, {BYTES}"
    return program(
        *(arena(), view("first"), copy("x", "first"), slots("%c64", "%c0")),
        "%last:4 = scf.while (%i = %c0, %o = %first, %a = %slot0, %b = %slot1) : "
        f"({types}) -> ({types}) {{",
        "%more = arith.cmpi slt, %i, %n : index",
        f"scf.condition(%more) %i, %o, %a, %b : {types}",
        f"}} do {{\n^bb0(%j: index, %was: {M}, %s0: {BYTES}, %s1: {BYTES}):",
        *(next_slot(), STEP),
        "%next = arith.addi %j, %c1 : index",
        f"scf.yield %next, %now, {passed} : {types}\n}}",
        f'"memref.copy"(%last#1, %y) : ({M}, {M}) -> ()',
        free(),
    )


def in_blocks(passed: str = "%s1, %s0", begin: str = "%slot0, %slot1") -> str:
    types = f"index, {M}, {BYTES}, {BYTES}"
    return program(
        *(arena(), view("first"), copy("x", "first"), slots("%c64", "%c0")),
        f"cf.br ^head(%c0, %first, {begin} : {types})",
        f"^head(%i: index, %was: {M}, %s0: {BYTES}, %s1: {BYTES}):",
        "%more = arith.cmpi slt, %i, %n : index",
        "cf.cond_br %more, ^body, ^end",
        *("^body:", next_slot(), STEP),
        "%next = arith.addi %i, %c1 : index",
        f"cf.br ^head(%next, %now, {passed} : {types})",
        *("^end:", copy("was", "y"), free()),
    )


@plant(sound="%s1, %s0", faulty="%s0, %s1")
def slots_of_blocks_that_are_not_swapped(passed: str) -> str:
    return in_blocks(passed)


@plant(sound="%slot0, %slot1", faulty="%slot1, %slot0")
def slots_that_blocks_begin_with_in_the_wrong_order(begin: str) -> str:
    return in_blocks(begin=begin)


def either(at: str, then: str, after: str = "") -> str:
    """%r is %a, or on one path %b, which is written there."""
    return program(
        *(arena(), view("a"), copy("x", "a"), f"%r = scf.if %p -> ({M}) {{"),
        *(view("b", at), each("x", "b", read=TURN), then),
        *(f"scf.yield %b : {M}", "} else {", f"scf.yield %a : {M}", "}"),
        *(after, copy("r", "y"), free()),
    )


@plant(sound="", faulty=copy("a", "z"))
def one_slot_where_the_other_is_read_on_the_same_path(then: str) -> str:
    return either("%c0", then)


@plant(sound="%c64", faulty="%c0")
def one_slot_where_the_other_is_read_after_both_paths(at: str) -> str:
    return either(at, "", after=copy("a", "z"))


@plant(sound="%c64", faulty="%c0")
def a_third_where_either_is_still_read(at: str) -> str:
    third = lines(view("c", at), each("x", "c"), copy("c", "z"))
    return either("%c0", "", after=third)


@plant(sound="%c64", faulty="%c0")
def one_slot_of_two_that_are_selected_from(at: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), copy("x", "a"), each("x", "b", read=TURN)),
        *(f"%r = arith.select %p, %a, %b : {M}", copy("r", "y"), free()),
    )


def replacing(body: str) -> str:
    """Each iteration writes %now in the memory of the previous iteration's result."""
    return program(
        *(arena(), view("first"), copy("x", "first")),
        f"%last = scf.for %t = %c0 to %n step %c1 iter_args(%was = %first) -> ({M}) {{",
        *(view("now"), body),
        *(f"scf.yield %now : {M}", "}", copy("last", "y"), free()),
    )


OVER = each("was", "now")


@plant(sound=lines(READ, OVER), faulty=lines(OVER, READ))
def computed_over_the_one_before_which_is_read_later(body: str) -> str:
    return replacing(body)


BACK = (
    "%back = memref.reinterpret_cast %was to offset: [15], sizes: [16], strides: [-1] "
    f": {M} to memref<16xf32, strided<[-1], offset: 15>>"
)


@plant(sound="%c64", faulty="%c0")
def computed_over_the_one_before_in_another_order(at: str) -> str:
    return replacing(
        lines(
            *(view("turned", at), each("was", "turned", read=TURN)),
            each("turned", "now"),
        )
    )


@plant(sound=False, faulty=True)
def computed_over_the_one_before_which_a_view_turns(is_over: bool) -> str:
    strided = "memref<16xf32, strided<[-1], offset: 15>>"
    copied = '"memref.copy"(%back, %apart) : '
    first = lines(BACK, view("apart", "%c64"), f"{copied}({strided}, {M}) -> ()")
    if is_over:
        return replacing(lines(first, each("back", "now", type=strided, to=M)))
    return replacing(lines(first, each("apart", "now")))


def chosen(at: str, *then: str) -> str:
    """%s is %a or %b, which lies at offset `at`."""
    return program(
        *(arena(), view("a"), view("b", at)),
        *(f"%s = arith.select %p, %a, %b : {M}", *then, free()),
    )


@plant(sound="%c64", faulty="%c0")
def one_of_two_while_the_other_is_read_later(at: str) -> str:
    return chosen(at, copy("x", "a"), each("x", "s"), copy("a", "y"), copy("s", "z"))


@plant(sound="%c64", faulty="%c0")
def computed_over_the_other_path_in_another_order(at: str) -> str:
    return program(
        *(arena(), view("a"), copy("x", "a"), f"%r = scf.if %p -> ({M}) {{"),
        *(view("b", at), each("a", "b", read=TURN), f"scf.yield %b : {M}"),
        *("} else {", f"scf.yield %a : {M}", "}", copy("r", "y"), free()),
    )


@plant(
    sound=lines(copy("a", "z"), each("a", "b")),
    faulty=lines(each("a", "b"), copy("a", "z")),
)
def computed_over_the_other_path_which_is_read_later(body: str) -> str:
    return program(
        *(arena(), view("a"), copy("x", "a"), f"%r = scf.if %p -> ({M}) {{"),
        *(view("b"), body, f"scf.yield %b : {M}"),
        *("} else {", f"scf.yield %a : {M}", "}", copy("r", "y"), free()),
    )


def written_again(*body: str, yielded: str = "other") -> str:
    """Each iteration writes all of %first, which is %was in the first iteration."""
    return program(
        *(arena(), view("first"), view("other", "%c128")),
        *(copy("x", "first"), copy("x", "other")),
        f"%last = scf.for %t = %c0 to %n step %c1 iter_args(%was = %first) -> ({M}) {{",
        *(*body, f"scf.yield %{yielded} : {M}", "}"),
        *(copy("last", "y"), free()),
    )


AGAIN = each("was", "first")


@plant(sound="other", faulty="first")
def written_again_from_itself_after_another_had_its_bytes(yielded: str) -> str:
    another = (view("b"), each("x", "b"), copy("b", "z"))
    return written_again(AGAIN, *another, yielded=yielded)


@plant(sound="%c64", faulty="%c0")
def written_again_while_another_that_is_read_later_has_its_bytes(at: str) -> str:
    another = (view("b", at), each("x", "b"), AGAIN, copy("b", "z"))
    return written_again(*another)


@plant(sound="%c64", faulty="%c0")
def written_again_over_what_it_is_computed_of_in_another_order(at: str) -> str:
    last = (copy("first", "z"), view("now", at), each("x", "now"))
    return written_again(each("was", "first", read=TURN), *last, yielded="now")


@plant(sound=lines(READ, AGAIN), faulty=lines(AGAIN, READ))
def written_again_over_what_is_read_later(body: str) -> str:
    last = (view("now"), each("x", "now"))
    return written_again(body, *last, yielded="now")
