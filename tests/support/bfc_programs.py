"""Parses the language in which vectors of BFC describe their programs.

    for s in 1..1023: alloc(s); record A; free all; record B
    128 x alloc(4 MiB); free first 127; deallocate_free_regions(0)
    alloc/free 4096; then 1024 times {alloc 4096, 16384; free in that order}

`read` returns a list of steps for each statement, in the format of the vectors. Sizes
without a unit are bytes. Words after a size are ignored.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Step = Mapping[str, Any]

_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = r"\d+(?: ?(?:KiB|MiB|GiB))?"


def read(vector: Mapping[str, Any]) -> list[list[Step]]:
    """The steps of each statement of the program, in `program` or `description`."""
    text = vector["program"]
    if text == "see description":
        text = vector["description"].partition(": ")[2]
    reader = _Reader()
    return [list(reader.steps(part)) for part in _split(text.rstrip("."))]


def _split(text: str) -> list[str]:
    """Splits `text` at semicolons outside of braces."""
    parts = re.findall(r"(?:[^;{]|\{[^}]*\})+", text)
    return [part.strip().removeprefix("then ") for part in parts]


class _Reader:
    def __init__(self) -> None:
        self.live: list[str] = []  # the names of live allocations
        self.count = 0

    def steps(self, text: str) -> Iterator[Step]:
        if found := re.fullmatch(r"for (\w+) in (\d+)\.\.(\d+): (.*)", text):
            name, first, last, body = found.groups()
            for value in range(int(first), int(last) + 1):
                yield from self.steps(re.sub(rf"\b{name}\b", str(value), body))
        elif found := re.fullmatch(r"(\d+) (?:x|times) (.*)", text):
            body = found[2].removeprefix("{").removesuffix("}")
            for _ in range(int(found[1])):
                before = len(self.live)
                for part in _split(body):
                    yield from self._step(part, before)
        else:
            yield from self._step(text, 0)

    def _step(self, text: str, before: int) -> Iterator[Step]:
        """Yields the steps of one statement; `before` allocations were live when the
        enclosing braces began."""
        if found := re.match(rf"alloc/free ({_SIZE})", text):
            yield from self._allocate([found[1]])
            yield from self._free(self.live[-1:])
        elif found := re.match(rf"alloc[( ]({_SIZE}(?:, {_SIZE})*)", text):
            yield from self._allocate(found[1].split(", "))
        elif text == "free all":
            yield from self._free(self.live)
        elif found := re.fullmatch(r"free (?:the )?(first|last) (\d+)", text):
            count = int(found[2])
            first, last = self.live[:count], self.live[-count:]
            yield from self._free(first if found[1] == "first" else last)
        elif re.fullmatch(r"free all but the last", text):
            yield from self._free(self.live[:-1])
        elif re.fullmatch(r"free in (?:that|the same) order", text):
            yield from self._free(self.live[before:])
        elif re.fullmatch(r"free in (?:the )?reverse order", text):
            yield from self._free(self.live[before:][::-1])
        elif found := re.fullmatch(r"record (\w+)", text):
            yield {"op": "dump", "record": found[1]}
        elif found := re.fullmatch(rf"deallocate_free_regions\(({_SIZE})\)", text):
            yield {"op": "deallocate_free_regions", "rounded_bytes": _bytes(found[1])}
        elif found := re.fullmatch(r"set_safe_frontier\((\d+)\)", text):
            yield {"op": "set_safe_frontier", "count": int(found[1])}
        elif text in ("clear_stats", "dump"):
            yield {"op": text}
        else:
            raise ValueError(f"{text!r} is no statement of a program")

    def _allocate(self, sizes: Sequence[str]) -> Iterator[Step]:
        for size in sizes:
            self.live.append(f"block {self.count}")
            self.count += 1
            yield {"op": "alloc", "name": self.live[-1], "bytes": _bytes(size)}

    def _free(self, names: Sequence[str]) -> Iterator[Step]:
        for name in list(names):
            self.live.remove(name)
            yield {"op": "free", "name": name}


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+) ?(\w*)", text)
    assert found
    return int(found[1]) * _UNITS[found[2]]
