"""What a pass that may be left out states of itself, in its class.

The default sequence, explanations and the tests of properties follow from it.
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.passes import ModulePass


@dataclass(frozen=True)
class OptionalPass(ModulePass):
    """A pass on tensors without which programs compute the same, at any place.

    EXACT: whether every value stays as it is, bit by bit.
    IDEMPOTENT: whether, by default, it changes nothing in what it has left.
    LOWERS_PEAK: whether it is there for that: then it never raises it, either.
    TOPIC: what it is about, in explanations, which try to leave it out; or nothing.
    """

    EXACT: ClassVar[bool] = True
    IDEMPOTENT: ClassVar[bool] = True
    LOWERS_PEAK: ClassVar[bool] = False
    TOPIC: ClassVar[str] = ""
