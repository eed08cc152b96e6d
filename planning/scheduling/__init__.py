"""Orders of operations with a low peak of live bytes; pure algorithms, no IR.

graph.py                     the vocabulary: what comes before what, what is live
greedy.py                    list scheduling, forwards and backwards: near-linear
parts.py                     where a graph can be cut
partial.py                   orders built task by task, for the two searches
exact.py                     best-first search: proves the lowest peak of small parts
beam.py                      beam search: parts too large for that
improve.py                   local search: tasks moved across the peak
schedule.py                  all of them together
makespan.py                  how long an order takes
residuals.py                 what is kept so that the rest can be computed again
rematerialization.py         what is computed again rather than kept
exact_rematerialization.py   the same with the fewest FLOPs, for small graphs
residency.py                 what leaves a memory between two uses, at the least cost
exact_residency.py           the same, proved to be the least, by OR-tools
offload.py                   when that is copied, beside the tasks
streams.py                   lifespans for operations that run side by side
"""

from .graph import Task, TaskGraph, peak_of, profile
from .makespan import makespan, mixtures
from .schedule import Schedule, schedule

__all__ = [
    "Schedule",
    "Task",
    "TaskGraph",
    "makespan",
    "mixtures",
    "peak_of",
    "profile",
    "schedule",
]
