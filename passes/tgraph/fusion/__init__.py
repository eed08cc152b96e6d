"""Decides which operations are computed together: pure algorithms, and their limits.

graph.py            operations as the algorithms see them
postdominators.py   TVM Relay's groups
nnvm.py             NNVM's groups
duplication.py      values at the peak, computed again where they are read
clipping.py         masks of clipped values, from the results
residuals.py        what is kept across the peak, by a minimum cut
peak.py             groups that would cost memory, and what to store instead
groups.py           groups cut to what a `tgraph.fusion` may hold
slices.py           slices at dynamic starts that groups read where they lie
liveness.py         live bytes of a function, with and without groups
"""
