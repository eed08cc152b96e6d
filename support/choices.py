"""Error messages for words outside a set of choices, with the closest choice.

Imports nothing, so that every folder can use it.
"""

from collections.abc import Iterable


class ChoiceError(ValueError):
    """A word is not one of the allowed words.

    value: the word.
    allowed: the allowed words.
    """

    def __init__(self, what: str, value: str, allowed: Iterable[str]):
        self.value = value
        self.allowed = list(allowed)
        super().__init__(f"{what} is {one_of(value, self.allowed)}")


def one_of(value: str, allowed: Iterable[str]) -> str:
    """`'c', expected one of a, b`, with a suggestion if a choice is close."""
    words = list(allowed)
    return f"{value!r}, expected one of {', '.join(words)}{suggest(value, words)}"


def suggest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'X'?`, or an empty text if no known word is close to `word`. A
    word that `word` begins is closest."""
    from difflib import get_close_matches  # here, since few words are wrong

    words = list(known)
    begun = [each for each in words if len(word) > 2 and each.startswith(word)]
    near = begun or get_close_matches(word, words, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
