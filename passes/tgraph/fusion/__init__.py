"""Decides for tgraph-fuse which operations are computed together.

graph.py            the graph that the grouping algorithms work on
postdominators.py   TVM Relay's grouping algorithm
nnvm.py             NNVM's grouping algorithm
duplication.py      rematerializes values at the peak in the groups that read them
clipping.py         computes masks of clipped values from the clipped values
residuals.py        chooses the values to keep across the peak, by a minimum cut
peak.py             finds groups that raise the peak, and values to store instead
groups.py           cuts groups to the forms that a `tgraph.fusion` may have
slices.py           finds slices at dynamic starts that groups read in place
liveness.py         predicts the live bytes of a function, with and without groups
"""
