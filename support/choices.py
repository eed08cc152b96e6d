"""Words that are none of those that are allowed: what to say, and what was meant.

Imports nothing, so that every folder can use it.
"""

from collections.abc import Iterable


class ChoiceError(ValueError):
    """A word is none of those that are allowed.

    value: the word.
    allowed: those that there are.
    """

    def __init__(self, what: str, value: str, allowed: Iterable[str]):
        self.value = value
        self.allowed = list(allowed)
        super().__init__(f"{what} is {one_of(value, self.allowed)}")


def one_of(value: str, allowed: Iterable[str]) -> str:
    """`'c', expected one of a, b`, with a suggestion if `value` is near to one."""
    words = list(allowed)
    return f"{value!r}, expected one of {', '.join(words)}{suggest(value, words)}"


def suggest(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing if no known word is near."""
    from difflib import get_close_matches  # few words are wrong

    near = get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
