"""Faults of transfers that one iteration of a loop starts and the next waits for.

    start %x -> %a                                            the prologue
    scf.for iter_args(%cur = %a, %next = %b) {
      wait; start %x -> %next; %cur -> %y; yield %next, %cur
    }
    wait; %last -> %z                                         the epilogue

A transfer may copy at any time from its start to the wait. Native runs use programs
that copy at the start, or at the wait, when the target is %cur. Each iteration
overwrites its slot with its result, so every transfer affects the values.
"""

import re

from planted import M, arena, branch, copy, each, free, plant, program, view
from planted_transfers import MODES, TAG, start, wait

_TAGS = f"%tag = memref.alloca() : {TAG}\n%other_tag = memref.alloca() : {TAG}"


def begin(target: str, mode: str, source: str = "x") -> str:
    return between(start(mode), source, target)


def end(target: str, mode: str, source: str = "x", tag: str = "tag") -> str:
    """The wait for the transfer from `source` to `target`."""
    return between(wait(mode).replace("%tag", f"%{tag}"), source, target)


def between(text: str, source: str, target: str) -> str:
    names = {"%a": f"%{source}", "%b": f"%{target}"}
    return re.sub(r"%[ab]\b", lambda name: names[name[0]], text)


USE = f"{each('cur', 'cur')}\n{copy('cur', 'y')}"


def pipeline(
    mode: str,
    *body: str,
    prologue: str | None = None,
    epilogue: str | None = None,
    forwarded: str = "%next, %cur",
    after: str = "",
) -> str:
    """A program with the loop `body`; prologue and epilogue are sound by default."""
    return program(
        *(_TAGS, arena(), view("a"), view("b", "%c64")),
        begin("a", mode) if prologue is None else prologue,
        "%last, %other = scf.for %t = %c0 to %n step %c1 "
        f"iter_args(%cur = %a, %next = %b) -> ({M}, {M}) {{",
        *body,
        f"scf.yield {forwarded} : {M}, {M}\n}}",
        end("last", mode) if epilogue is None else epilogue,
        *(copy("last", "z"), free(), after),
    )


@plant(sound=True, faulty=False, modes=MODES)
def no_iteration_waits(waits: bool, mode: str) -> str:
    return pipeline(mode, end("cur", mode) if waits else "", begin("next", mode), USE)


@plant(sound=True, faulty=False, modes=MODES)
def a_slot_is_read_before_the_wait(waits_first: bool, mode: str) -> str:
    first, second = (end("cur", mode), USE) if waits_first else (USE, end("cur", mode))
    return pipeline(mode, first, second, begin("next", mode))


@plant(sound="next", faulty="cur", modes=MODES)
def a_slot_is_overwritten_while_it_is_read(target: str, mode: str) -> str:
    forwarded = "%next, %cur" if target == "next" else "%cur, %next"
    body = end("cur", mode), begin(target, mode), USE
    return pipeline(mode, *body, forwarded=forwarded)


@plant(sound=True, faulty=False, modes=MODES)
def a_tag_is_used_again_while_it_is_pending(waits_first: bool, mode: str) -> str:
    """The wait may end when only the later of two transfers is complete."""
    if waits_first:
        return pipeline(mode, end("cur", mode), begin("next", mode), USE)
    return pipeline(mode, begin("next", mode), end("next", mode), USE)


@plant(sound=True, faulty=False, modes=("early",))
def there_is_no_prologue(is_there: bool, mode: str) -> str:
    body = end("cur", mode), begin("next", mode), USE
    return pipeline(mode, *body, prologue=None if is_there else "")


@plant(sound=True, faulty=False, modes=MODES)
def a_transfer_is_pending_at_the_return(waits: bool, mode: str) -> str:
    body = end("cur", mode), begin("next", mode), USE
    if waits:
        return pipeline(mode, *body)
    late = end("last", mode) if mode == "late" else ""
    return pipeline(mode, *body, epilogue="", after=late)


@plant(sound="tag", faulty="other_tag", modes=MODES)
def an_iteration_waits_for_another_tag(tag: str, mode: str) -> str:
    is_late = mode == "late" and tag != "tag"
    wait = "" if is_late else end("cur", mode, tag=tag)
    return pipeline(mode, wait, begin("next", mode), USE)


@plant(sound="%c128", faulty="%c64", modes=MODES)
def the_slot_of_the_next_iteration_is_taken(at: str, mode: str) -> str:
    other = (view("c", at), each("x", "c"), copy("c", "y"))
    return pipeline(mode, end("cur", mode), begin("next", mode), USE, *other)


@plant(sound="%c128", faulty="%c0", modes=MODES)
def the_slot_of_the_prologue_is_taken(at: str, mode: str) -> str:
    """Another buffer uses the slot in the iteration that waits, before the wait."""
    other = (view("c", at), each("x", "c"), copy("c", "y"))
    return pipeline(mode, *other, end("cur", mode), begin("next", mode), USE)


@plant(sound=True, faulty=False, modes=MODES)
def only_some_iterations_start_a_transfer(all: bool, mode: str) -> str:
    starts = begin("next", mode)
    if not all:
        starts = branch([starts])
    ends = end("cur", mode) if all or mode == "checked" else ""
    return pipeline(mode, ends, starts, USE)


def out(mode: str, *body: str, forwarded: str = "%next, %cur") -> str:
    """A program that copies results out while the next iteration computes."""
    return program(
        *(_TAGS, arena(), view("a"), view("b", "%c64")),
        *(each("x", "b"), begin("y", mode, "b")),
        "%last, %other = scf.for %t = %c0 to %n step %c1 "
        f"iter_args(%cur = %a, %next = %b) -> ({M}, {M}) {{",
        *body,
        f"scf.yield {forwarded} : {M}, {M}\n}}",
        *(end("y", mode, "other"), free()),
    )


@plant(sound="%next, %cur", faulty="%cur, %next", modes=MODES)
def a_slot_is_written_while_it_is_copied_out(forwarded: str, mode: str) -> str:
    """The transfer of the previous iteration still reads the slot."""
    before = "next" if forwarded == "%next, %cur" else "cur"
    body = copy("x", "cur"), end("y", mode, before), copy("y", "z"), each("x", "cur")
    return out(mode, *body, begin("y", mode, "cur"), forwarded=forwarded)


@plant(sound=True, faulty=False, modes=MODES)
def what_is_copied_out_is_read_before_the_wait(waits_first: bool, mode: str) -> str:
    read, wait = copy("y", "z"), end("y", mode, "next")
    rest = each("x", "cur"), begin("y", mode, "cur")
    return out(mode, *((wait, read) if waits_first else (read, wait)), *rest)
