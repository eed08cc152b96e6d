"""Planning: from buffers with lifetimes to offsets, independent of any IR.

problem.py      the vocabulary: Buffer, Problem, Plan; the lower bound
registry.py     strategies by name; solve()
validate.py     the check of every plan, which shares no code with the strategies
csv_format.py   buffers as CSV, in the format of minimalloc
deadline.py     deadlines of searches
output_reuse.py  buffers in the memory of results and variables
on_demand.py    stages, for callers that provide memory only while it is used
arena.py        an arena, with or without buffers in outputs
banks.py        offsets that keep buffers that are read together in different banks
solver/         `auto`, the default strategy
scheduling/     orders of operations, rematerialization, and offloading
baselines/      the planners of NNVM, Relay, Inductor and others, for comparison

>>> from tensorplan.planning import Buffer, Problem, solve
>>> a, b, c = Buffer("a", 64, 0, 2), Buffer("b", 64, 1, 3), Buffer("c", 64, 2, 4)
>>> solve(Problem([a, b, c])).offsets
[0, 64, 0]
"""

from .solver import auto, greedy  # registers strategies; these come first in lists

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
