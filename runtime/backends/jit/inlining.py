"""Joins loops and branches of native functions into one native function.

A loop often computes a number, or a row of a few elements. Calling a function for each
operation by its address takes longer than that. The functions therefore become parts of
one function, whose words are the words of all of them, one after the other:

    define i32 @{name}(ptr noalias readonly %words) nounwind {
      ...                            ; the words, and small buffers, to registers
    next:
      call i32 @{name}_0(ptr %at1)          ; the condition
      ...
      br i1 %holds, label %run, label %done
    run:
      call i32 @{name}_1(ptr %at4)          ; the body
      ...
      br label %next
    done:
      ...                            ; small buffers, back to memory

A loop inside a loop is such a function itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

HEAD = "define i32 @{name}(ptr noalias readonly %words) nounwind {"
"""How the text of a function begins that can be a part of others."""

_PART = "define internal i32 @{{name}}_{}(ptr noalias readonly %words) alwaysinline {{"

LONGEST = 30_000
"""Characters of LLVM IR in all parts: longer ones take much more time than the calls,
to compile too."""

LARGEST = 64
"""Bytes of a buffer that a loop has a copy of."""

ALIGNMENT = 64
"""Bytes: that of copies, and of the buffers."""

_LOOP = """  br label %next
next:
{first}  %is_set = load i8, ptr %flag
  %holds = icmp ne i8 %is_set, 0
  br i1 %holds, label %run, label %done
run:
{second}  br label %next
"""

_MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"

_BRANCH = """  %is_set = load i8, ptr %flag
  %holds = icmp ne i8 %is_set, 0
  br i1 %holds, label %then, label %else
then:
{first}  br label %done
else:
{second}  br label %done
"""


class Part(NamedTuple):
    """A call of a native function."""

    text: str
    words: int


class Local(NamedTuple):
    """A buffer that some words point to, or into: the function works on a copy of its
    own, which LLVM keeps in registers."""

    size: int
    """Bytes."""
    words: Mapping[int, int]
    """Numbers of words, among those of the function, and their offsets in bytes."""

    @property
    def first(self) -> int:
        """A word that points to the first byte."""
        return next(word for word, offset in self.words.items() if not offset)


def loop(
    condition: Sequence[Part], body: Sequence[Part], locals: Sequence[Local] = ()
) -> str | None:
    """The text of a function that runs the first parts and, as long as they set a flag,
    the second and they again; None if it is too long. The words: the address of the
    flag, then those of all parts."""
    return _function(_LOOP, condition, body, locals)


def branch(then: Sequence[Part], otherwise: Sequence[Part]) -> str | None:
    """The same of a function that runs the first parts if the flag is set, else the
    second."""
    return _function(_BRANCH, then, otherwise, ())


def _function(
    form: str, first: Sequence[Part], second: Sequence[Part], locals: Sequence[Local]
) -> str | None:
    parts = [*first, *second]
    texts = list(dict.fromkeys(part.text for part in parts))
    if sum(map(len, texts)) > LONGEST or not all(t.startswith(HEAD) for t in texts):
        return None
    calls = {
        "first": _calls(first, texts, 1),
        "second": _calls(second, texts, 1 + sum(part.words for part in first)),
    }
    own = _own(locals)
    flag = "%own0" if 0 in own else "%word0"
    copied = _copied(1 + sum(part.words for part in parts), own)
    before, after = _moves(locals)
    body = form.format(**calls).replace("%flag", flag)
    head = f"{HEAD}\nentry:\n{_allocated(locals)}{copied}{before}{body}"
    return "\n".join([f"{head}done:\n{after}  ret i32 0\n}}", *_definitions(texts)])


def _calls(region: Sequence[Part], texts: Sequence[str], word: int) -> str:
    """Calls of parts, whose words begin with that of a number."""
    lines: list[str] = []
    for part in region:
        at = f"%at{word}"
        lines.append(f"  {at} = getelementptr ptr, ptr %copy, i64 {word}\n")
        number = texts.index(part.text)
        lines.append(f"  call i32 @{{name}}_{number}(ptr {at})\n")
        word += part.words
    return "".join(lines)


def _allocated(locals: Sequence[Local]) -> str:
    lines = (
        f"  %local{number} = alloca [{local.size} x i8], align {ALIGNMENT}\n"
        for number, local in enumerate(locals)
    )
    return "".join(lines)


def _own(locals: Sequence[Local]) -> dict[int, str]:
    """The words that point to buffers of the function's own, and where in them."""
    return {
        word: f"getelementptr i8, ptr %local{number}, i64 {offset}"
        for number, local in enumerate(locals)
        for word, offset in local.words.items()
    }


def _copied(count: int, own: Mapping[int, str]) -> str:
    """Copies words to where LLVM makes registers of them."""
    lines = [f"  %copy = alloca [{count} x ptr]\n"]
    for n in range(count):
        lines.append(f"  %from{n} = getelementptr ptr, ptr %words, i64 {n}\n")
        lines.append(f"  %to{n} = getelementptr ptr, ptr %copy, i64 {n}\n")
        lines.append(f"  %word{n} = load ptr, ptr %from{n}\n")
        if n in own:
            lines.append(f"  %own{n} = {own[n]}\n")
        lines.append(f"  store ptr {'%own' if n in own else '%word'}{n}, ptr %to{n}\n")
    return "".join(lines)


def _moves(locals: Sequence[Local]) -> tuple[str, str]:
    """Copies buffers to the function's own, and back."""
    move = "  call void @llvm.memcpy.p0.p0.i64(ptr {}, ptr {}, i64 {}, i1 false)\n"
    pairs = [
        (f"%local{number}", f"%word{local.first}", local.size)
        for number, local in enumerate(locals)
    ]
    before = [move.format(own, given, size) for own, given, size in pairs]
    after = [move.format(given, own, size) for own, given, size in pairs]
    return "".join(before), "".join(after)


def _definitions(texts: Sequence[str]) -> Iterable[str]:
    """The functions under names of their own, and what they call, once."""
    declared: dict[str, None] = {_MEMCPY: None}
    for number, text in enumerate(texts):
        part = text.replace("@{name}_", f"@{{name}}_{number}_")
        for line in part.replace(HEAD, _PART.format(number), 1).splitlines():
            if line.startswith("declare "):
                declared[line] = None
            else:
                yield line
    yield from declared
