"""Joins loops and branches of native functions into one native function.

A loop often computes a scalar, or a row of a few elements. An indirect call for each
operation takes longer than that. The functions are therefore inlined into one function,
whose words are the concatenated addresses of all of them; other words are constants:

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

A nested loop has been joined into such a function before.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

HEAD = "define i32 @{name}(ptr noalias readonly %words) nounwind {"
"""The first line of functions that can be inlined into others."""

_PART = "define internal i32 @{{name}}_{}(ptr noalias readonly %words) alwaysinline {{"

LONGEST = 30_000
"""The maximum characters of LLVM IR in all parts. Longer loops take much more time than
the calls, and much longer to compile.
"""

LARGEST = 64
"""The maximum bytes of a buffer that a loop keeps a copy of."""

ALIGNMENT = 64
"""In bytes: of these buffers, and of their copies."""

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
    addresses: int
    """The number of words that are addresses."""
    numbers: Sequence[int]
    """The words after them."""

    @property
    def words(self) -> int:
        return self.addresses + len(self.numbers)


class Local(NamedTuple):
    """A buffer that some words point into. The function works on its own copy, which
    LLVM keeps in registers."""

    size: int
    """In bytes."""
    words: Mapping[int, int]
    """The offset in bytes that each word points to, by the index of the word."""

    @property
    def first(self) -> int:
        """The index of a word that points to the first byte."""
        return next(word for word, offset in self.words.items() if not offset)


def loop(
    condition: Sequence[Part], body: Sequence[Part], locals: Sequence[Local] = ()
) -> str | None:
    """The text of a function that runs the parts of `condition`; while they set a flag,
    it runs `body` and `condition` again. None if it is too long. The words: the address
    of the flag, then the addresses of all parts."""
    return _function(_LOOP, condition, body, locals)


def branch(then: Sequence[Part], otherwise: Sequence[Part]) -> str | None:
    """The text of a function that runs the parts of `then` if the flag is set, and
    otherwise those of `otherwise`. None if it is too long. The words are as in `loop`.
    """
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
    copied = _copied(parts, own)
    before, after = _moves(locals)
    body = form.format(**calls).replace("%flag", flag)
    head = f"{HEAD}\nentry:\n{_allocated(locals)}{copied}{before}{body}"
    return "\n".join([f"{head}done:\n{after}  ret i32 0\n}}", *_definitions(texts)])


def _calls(region: Sequence[Part], texts: Sequence[str], word: int) -> str:
    """Calls of the parts in `region`, whose words start at index `word` of the copy."""
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
    """The address in the function's own buffers that replaces each word."""
    return {
        word: f"getelementptr i8, ptr %local{number}, i64 {offset}"
        for number, local in enumerate(locals)
        for word, offset in local.words.items()
    }


def _copied(parts: Sequence[Part], own: Mapping[int, str]) -> str:
    """Copies the words to memory that LLVM promotes to registers, with the numbers of
    each part behind its addresses."""
    addresses = range(1 + sum(part.addresses for part in parts))
    lines: list[str] = []
    for n in addresses:
        lines.append(f"  %from{n} = getelementptr ptr, ptr %words, i64 {n}\n")
        lines.append(f"  %word{n} = load ptr, ptr %from{n}\n")
        if n in own:
            lines.append(f"  %own{n} = {own[n]}\n")
    words = (f"ptr {'%own' if n in own else '%word'}{n}" for n in addresses)
    copy = [next(words)]  # the flag's
    for part in parts:
        copy += islice(words, part.addresses)
        copy += (f"i64 {number}" for number in part.numbers)
    lines.append(f"  %copy = alloca [{len(copy)} x ptr]\n")
    for n, word in enumerate(copy):
        lines.append(f"  %to{n} = getelementptr ptr, ptr %copy, i64 {n}\n")
        lines.append(f"  store {word}, ptr %to{n}\n")
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
    """The functions under unique names, and their declarations without duplicates."""
    declared: dict[str, None] = {_MEMCPY: None}
    for number, text in enumerate(texts):
        part = text.replace("@{name}_", f"@{{name}}_{number}_")
        for line in part.replace(HEAD, _PART.format(number), 1).splitlines():
            if line.startswith("declare "):
                declared[line] = None
            else:
                yield line
    yield from declared
