"""Canonicalization of tgraph: merges, folds and removes operations that need not run.

views.py            reshape, transpose, reverse, broadcast
constants.py        constants, and their copies to devices
contractions.py     products, reductions, convolutions, windows
slices.py           slices, dynamic slices and updates
gathers.py          gathers
pads.py             pads, and slices of them
positions.py        sorts, and reductions of indices
common.py           what these share

(Elementwise operations: see ../folding.py.)

The patterns apply only to tensors: on memrefs (levels 2 and 3), every operation writes
its own destination. A replacement keeps the attributes of the operation
(`tgraph.device`, ...), so operations with different attributes are not merged, and one
with attributes is not removed.
"""
