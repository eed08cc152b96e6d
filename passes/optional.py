"""The contract of a pass that may be omitted, declared in its class.

The default sequence, explanations, and property tests are derived from it.
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.passes import ModulePass


@dataclass(frozen=True)
class OptionalPass(ModulePass):
    """A pass on tensors that may be omitted at any position without changing results.

    EXACT: whether every value is bitwise identical.
    IDEMPOTENT: whether a second run, with default options, changes nothing.
    LOWERS_PEAK: whether the pass is meant to lower the peak; it then never raises it.
    TOPIC: the topic of the pass in explanations, which try a plan without it; or "".
    """

    EXACT: ClassVar[bool] = True
    IDEMPOTENT: ClassVar[bool] = True
    LOWERS_PEAK: ClassVar[bool] = False
    TOPIC: ClassVar[str] = ""
