"""Planning: buffers with lifespans in, offsets out. Knows nothing of IR.

problem.py    the vocabulary: Buffer, Problem, Plan; the lower bound
registry.py   strategies by name; solve()
validate.py   the check that every plan passes, sharing no code with a strategy
csv_format.py buffers as CSV, as minimalloc has it
naive.py, greedy.py, field.py   the strategies
auto.py       ours: heuristics (skyline.py), the core first (core.py, repair.py), then
              exact search (search.py), over sections.py, in several orders (orders.py);
              kernels.py compiles their loops where numba is installed
nnvm/         NNVM's planner of shared storages; storages.py lays them out in bytes
relay.py      TVM Relay's, on the same graph
inductor_*.py PyTorch Inductor's: reuse of equal buffers, and its allocation tree
scheduling/   orders of operations with fewer bytes live at once
rematerialization.py, exact_rematerialization.py   what to compute again instead of
              keeping it
streams.py    lifespans for operations that run side by side
lending.py    buffers in memory that others do not use yet
offload.py    values in another memory between two uses
climb.py      a local search for buffers of any kind: first fit in varied orders
budget.py     what a search may still spend: work, or seconds on the clock
deadline.py   when searches have to end

>>> from tensorplan.planning import Buffer, Problem, solve
>>> a, b, c = Buffer("a", 64, 0, 2), Buffer("b", 64, 1, 3), Buffer("c", 64, 2, 4)
>>> solve(Problem([a, b, c])).offsets
[0, 64, 0]
"""

from tensorplan.planning import (  # registers the strategies
    auto,
    field,
    greedy,
    inductor_reuse,
    inductor_tree,
    naive,
    nnvm,
    relay,
)
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
    names,
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
