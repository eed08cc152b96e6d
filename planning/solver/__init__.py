"""Offset assignment: `auto`, the default strategy, and the greedy strategies.

auto.py       the default strategy: heuristics first, then exact searches
greedy.py     first fit and best fit, in orders by size, start or duration
gaps.py       the free gaps in which the greedy planners place buffers
skyline.py    skyline placement: fills the lowest valley first
orders.py     the orders in which heuristics and searches try buffers
squeaky.py    squeaky wheel optimization: orders that learn from earlier plans
backbone.py   places the longest-lived buffers first, and the rest around them
spine.py      splits a part into pieces, around a few buffers placed first
boxes.py      joins buffers that fill a rectangle, and plans them as one buffer
core.py       places the buffers of the most heavily loaded sections first
repair.py     local search with ejection: fits buffers under a capacity
search.py     exact branch and bound on the skyline, for regular problems
climb.py      hill climbing over the order of first fit
clique.py     a lower bound: the heaviest buffers of which any two overlap
upward.py     exact branch and bound for gaps, given offsets and mixed alignments
sections.py   the input of the searches: units, sections and independent parts
budget.py     the work, or the time, that the searches have left
kernels.py    compiles inner loops with numba if it is installed
"""

from . import auto as auto
from . import greedy as greedy
