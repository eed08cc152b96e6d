"""Faults of buffers that share bytes although nothing orders the streams that use them.

The operations of a stream run in program order. Between streams, operations wait only
for values, and for accesses of the same buffers. Native runs therefore also use the
same operations in another legal order.
"""

from planted import M, arena, branch, free, lines, loop, plant, program, view

MODES = ("program", "swapped")


def on(stream: int, operation: str, *operands: str) -> str:
    """An operation on a stream; the last of `operands` is its destination."""
    *read, written = (f"%{operand}" for operand in operands)
    return (
        f"tgraph.{operation} {', '.join(read)} outs({written}) "
        f"{{tgraph.stream = {stream} : i32}} : {M}"
    )


def ordered(mode: str, operations: list[str], swapped: list[int]) -> str:
    if mode == "swapped":
        operations = [operations[n] for n in swapped]
    return lines(*operations)


def two_chains(mode: str) -> str:
    """On two streams, computes %y from %x through %a, and %z through %b."""
    chains = [
        on(0, "negate", "x", "a"),
        on(0, "negate", "a", "y"),
        on(1, "add", "x", "x", "b"),
        on(1, "negate", "b", "z"),
    ]
    return ordered(mode, chains, [0, 2, 1, 3])


@plant(sound="%c64", faulty="%c0", modes=MODES, is_ours=True)
def two_chains_in_a_block(at: str, mode: str) -> str:
    return program(arena(), view("a"), view("b", at), two_chains(mode), free())


@plant(
    sound="%c64",
    faulty="%c0",
    modes=MODES,
    is_ours=True,
    may_refuse="a stream inside of a region, or several blocks",
)
def two_chains_in_a_loop(at: str, mode: str) -> str:
    return program(arena(), view("a"), view("b", at), loop(two_chains(mode)), free())


@plant(
    sound="%c64",
    faulty="%c0",
    modes=MODES,
    is_ours=True,
    may_refuse="a stream inside of a region, or several blocks",
)
def two_chains_in_an_arena_in_a_loop(at: str, mode: str) -> str:
    return program(loop(arena(), view("a"), view("b", at), two_chains(mode), free()))


@plant(
    sound="%c64",
    faulty="%c0",
    modes=MODES,
    is_ours=True,
    may_refuse="a stream inside of a region, or several blocks",
)
def two_chains_in_a_branch(at: str, mode: str) -> str:
    return program(
        arena(), view("a"), view("b", at), branch([two_chains(mode)]), free()
    )


@plant(
    sound="%c64",
    faulty="%c0",
    modes=MODES,
    is_ours=True,
    may_refuse="a stream inside of a region, or several blocks",
)
def two_chains_in_both_branches(at: str, mode: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at)),
        *(branch([two_chains(mode)], [two_chains(mode)]), free()),
    )


@plant(
    sound="%c64",
    faulty="%c0",
    modes=MODES,
    is_ours=True,
    may_refuse="a stream inside of a region, or several blocks",
)
def the_next_iteration(at: str, mode: str) -> str:
    """In one iteration, stream 1 uses %a, then %b. Meanwhile, stream 0 may write %a for
    the next iteration, because it does not wait for uses of %b."""
    write_a, sum_up = on(0, "negate", "x", "a"), on(1, "add", "a", "x", "c")
    take, show = on(1, "add", "x", "x", "b"), on(1, "add", "b", "c", "z")
    views = lines(arena(), view("a"), view("c", "%c128"), view("b", at))
    if mode != "swapped":
        return program(views, loop(write_a, sum_up, take, show), free())
    return program(
        views,
        "%last = arith.subi %n, %c1 : index\n%any = arith.cmpi sgt, %n, %c0 : index",
        branch(
            [
                *(write_a, sum_up),
                loop(write_a, take, show, sum_up, to="%last"),
                *(take, show),
            ],
            on="%any",
        ),
        free(),
    )


@plant(
    sound="%c64",
    faulty="%c0",
    modes=MODES,
    is_ours=True,
    may_refuse="a stream inside of a region, or several blocks",
)
def before_a_loop_and_in_it(at: str, mode: str) -> str:
    """The chain of stream 1 starts before the loop of stream 0 and ends after it."""
    first, last = on(1, "add", "x", "x", "a"), on(1, "negate", "a", "z")
    inner = loop(on(0, "negate", "x", "b"), on(0, "negate", "b", "y"))
    order = (first, inner, last) if mode == "swapped" else (first, last, inner)
    return program(arena(), view("a"), view("b", at), *order, free())


@plant(sound="%c64", faulty="%c0", modes=MODES, is_ours=True)
def ordered_by_one_buffer_only(at: str, mode: str) -> str:
    """Stream 1 waits for the first operation of stream 0, but not for the last."""
    operations = [
        on(0, "negate", "x", "c"),
        on(0, "add", "x", "x", "a"),
        on(0, "negate", "a", "y"),
        on(1, "negate", "c", "b"),
        on(1, "negate", "b", "z"),
    ]
    views = lines(arena(), view("a"), view("b", at), view("c", "%c128"))
    order = ordered(mode, operations, [0, 1, 3, 2, 4])
    return program(views, order, free())


@plant(sound="%c64", faulty="%c0", modes=MODES, is_ours=True)
def three_streams(at: str, mode: str) -> str:
    """%c orders streams 0 and 1; nothing orders stream 2 with either."""
    operations = [
        on(0, "negate", "x", "c"),
        on(1, "negate", "c", "a"),
        on(1, "negate", "a", "y"),
        on(2, "add", "x", "x", "b"),
        on(2, "negate", "b", "z"),
    ]
    views = lines(arena(), view("a"), view("b", at), view("c", "%c128"))
    return program(views, ordered(mode, operations, [0, 1, 3, 2, 4]), free())


@plant(sound="%c64", faulty="%c0", modes=MODES, is_ours=True)
def readers_of_one_buffer(at: str, mode: str) -> str:
    """Reads of the same buffer do not order two streams."""
    operations = [
        on(0, "negate", "x", "c"),
        on(0, "add", "c", "x", "a"),
        on(0, "negate", "a", "y"),
        on(1, "add", "c", "c", "b"),
        on(1, "negate", "b", "z"),
    ]
    views = lines(arena(), view("a"), view("b", at), view("c", "%c128"))
    return program(views, ordered(mode, operations, [0, 1, 3, 2, 4]), free())


@plant(
    sound="%c64",
    faulty="%c0",
    modes=MODES,
    is_ours=True,
    may_refuse="a stream inside of a region, or several blocks",
)
def the_same_arena_in_blocks(at: str, mode: str) -> str:
    return program(
        *(arena(), view("a"), view("b", at), "cf.br ^next", "^next:"),
        *(two_chains(mode), free()),
    )
