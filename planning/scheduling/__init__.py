"""Schedules tasks for a low peak of live bytes; pure algorithms, no IR.

graph.py                     tasks, their dependencies, and live bytes
greedy.py                    list scheduling, forwards and backwards: near-linear
parts.py                     cuts a graph into parts that can be ordered separately
partial.py                   orders built task by task, for the two searches
exact.py                     best-first search: proves the lowest peak of small parts
beam.py                      beam search: for larger parts
improve.py                   local search: tasks moved across the peak
schedule.py                  the scheduler, which combines these
makespan.py                  the time that an order takes
residuals.py                 values to keep so that the rest can be recomputed
rematerialization.py         values to recompute instead of keeping them
exact_rematerialization.py   the cheapest values to recompute, for small graphs
residency.py                 values to move out of a memory between two uses
exact_residency.py           the cheapest values to move, proved by OR-tools
offload.py                   the copies of these values, concurrent with the tasks
streams.py                   live ranges for operations that run concurrently
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
