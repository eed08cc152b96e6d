"""Planning: buffers with lifespans in, offsets out. Knows nothing of IR.

problem.py      the vocabulary: Buffer, Problem, Plan; the lower bound
registry.py     strategies by name; solve()
validate.py     the check that every plan passes, sharing no code with a strategy
csv_format.py   buffers as CSV, as minimalloc has it
deadline.py     when searches have to end
output_reuse.py  buffers in memory that others do not use yet
arena.py        an arena, with or without what lies in outputs
solver/         `auto`, the default strategy
scheduling/     orders of operations; what is computed again or lies elsewhere meanwhile
baselines/      the planners of NNVM, Relay, Inductor and the field: to compare with

>>> from tensorplan.planning import Buffer, Problem, solve
>>> a, b, c = Buffer("a", 64, 0, 2), Buffer("b", 64, 1, 3), Buffer("c", 64, 2, 4)
>>> solve(Problem([a, b, c])).offsets
[0, 64, 0]
"""

from .solver import auto, greedy  # registers strategies: ours come first in lists

# isort: split
from .baselines import field, inductor_reuse, inductor_tree, naive, nnvm, relay
from .problem import (
    Buffer,
    Limits,
    Placement,
    Plan,
    Problem,
    Progress,
    Strategy,
    peak_of,
    round_up,
)
from .registry import STRATEGIES, UnsoundPlanError, find, names, solve, strategy
from .validate import validate

__all__ = [
    "STRATEGIES",
    "Buffer",
    "Limits",
    "Placement",
    "Plan",
    "Problem",
    "Progress",
    "Strategy",
    "UnsoundPlanError",
    "auto",
    "field",
    "find",
    "greedy",
    "inductor_reuse",
    "inductor_tree",
    "naive",
    "names",
    "nnvm",
    "peak_of",
    "relay",
    "round_up",
    "solve",
    "strategy",
    "validate",
]
