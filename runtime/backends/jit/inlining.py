"""Loops and branches of native functions as one native function.

A loop often computes a number, or a row of a few elements. Calling a function for each
operation by its address takes longer than that. The functions therefore become parts of
one function, whose words are the words of all of them, one after the other:

    define i32 @{name}(ptr noalias readonly %words) nounwind {
      ...                            ; the words, to registers
    next:
      call i32 @{name}_0(ptr %at1)          ; the condition
      ...
      br i1 %holds, label %run, label %done
    run:
      call i32 @{name}_1(ptr %at4)          ; the body
      ...
      br label %next

A loop inside a loop is such a function itself.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

HEAD = "define i32 @{name}(ptr noalias readonly %words) nounwind {"
"""How the text of a function begins that can be a part of others."""

_PART = "define internal i32 @{{name}}_{}(ptr noalias readonly %words) alwaysinline {{"

LONGEST = 30_000
"""Characters of LLVM IR in all parts: longer ones take much more time than the calls,
to compile too."""

_LOOP = """  br label %next
next:
{first}  %is_set = load i8, ptr %flag
  %holds = icmp ne i8 %is_set, 0
  br i1 %holds, label %run, label %done
run:
{second}  br label %next
"""

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


def loop(condition: Sequence[Part], body: Sequence[Part]) -> str | None:
    """The text of a function that runs the first parts and, as long as they set a flag,
    the second and they again; None if it is too long. The words: the address of the
    flag, then those of all parts."""
    return _function(_LOOP, condition, body)


def branch(then: Sequence[Part], otherwise: Sequence[Part]) -> str | None:
    """The same of a function that runs the first parts if the flag is set, else the
    second."""
    return _function(_BRANCH, then, otherwise)


def _function(form: str, *regions: Sequence[Part]) -> str | None:
    parts = [part for region in regions for part in region]
    texts = list(dict.fromkeys(part.text for part in parts))
    if sum(map(len, texts)) > LONGEST or not all(t.startswith(HEAD) for t in texts):
        return None
    first, second = regions
    calls = {
        "first": _calls(first, texts, 1),
        "second": _calls(second, texts, 1 + sum(part.words for part in first)),
    }
    copied = _copied(1 + sum(part.words for part in parts))
    body = form.replace("%flag", "%word0").format(**calls)
    head = f"{HEAD}\nentry:\n{copied}{body}done:\n  ret i32 0\n}}"
    return "\n".join([head, *_definitions(texts)])


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


def _copied(count: int) -> str:
    """Copies words to where LLVM makes registers of them."""
    lines = [f"  %copy = alloca [{count} x ptr]\n"]
    for n in range(count):
        lines.append(f"  %from{n} = getelementptr ptr, ptr %words, i64 {n}\n")
        lines.append(f"  %to{n} = getelementptr ptr, ptr %copy, i64 {n}\n")
        lines.append(f"  %word{n} = load ptr, ptr %from{n}\n")
        lines.append(f"  store ptr %word{n}, ptr %to{n}\n")
    return "".join(lines)


def _definitions(texts: Sequence[str]) -> Iterable[str]:
    """The functions under names of their own, and what they call, once."""
    declared: dict[str, None] = {}
    for number, text in enumerate(texts):
        part = text.replace("@{name}_", f"@{{name}}_{number}_")
        for line in part.replace(HEAD, _PART.format(number), 1).splitlines():
            if line.startswith("declare "):
                declared[line] = None
            else:
                yield line
    yield from declared
