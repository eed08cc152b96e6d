"""`auto`, the default strategy: heuristics first, then an exact search.

auto.py       what is tried, in which order, and when it is enough
greedy.py     one buffer after another, into a gap
gaps.py       which gaps there are
skyline.py    one buffer after another onto a skyline
orders.py     in many orders
squeaky.py    in orders that learn from the plans before
backbone.py   the longest-lived buffers alone, first, and the rest around them
spine.py      the buffers that hold a part together, first; the rest in pieces
boxes.py      buffers that fill a rectangle together, as one
core.py       the buffers that make a plan hard, first
repair.py     a plan with too many bytes, made smaller in places
search.py     the exact search
climb.py      better orders for buffers of any kind
upward.py     that for gaps, given offsets and several alignments
sections.py   in parts of time that do not touch
budget.py     how much work is left
kernels.py    inner loops, compiled by numba if it is there
"""

from . import auto as auto
from . import greedy as greedy
