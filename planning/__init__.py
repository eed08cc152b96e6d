"""Planning: buffers with lifespans in, offsets out. Knows nothing of IR.

problem.py    the vocabulary: Buffer, Problem, Plan; the lower bound
registry.py   strategies by name; solve()
validate.py   the check that every plan passes, sharing no code with a strategy
naive.py, greedy.py   the strategies

>>> from tensorplan.planning import Buffer, Problem, solve
>>> a, b, c = Buffer("a", 64, 0, 2), Buffer("b", 64, 1, 3), Buffer("c", 64, 2, 4)
>>> solve(Problem([a, b, c])).offsets
[0, 64, 0]
"""

from tensorplan.planning import greedy, naive  # registers the strategies
from tensorplan.planning.problem import (
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
from tensorplan.planning.registry import (
    STRATEGIES,
    UnsoundPlanError,
    find,
    solve,
    strategy,
)
from tensorplan.planning.validate import validate

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
    "find",
    "greedy",
    "naive",
    "peak_of",
    "round_up",
    "solve",
    "strategy",
    "validate",
]
