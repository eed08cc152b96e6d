"""Questions about a program that passes, checkers and reports ask. Changes nothing.

functions.py        which functions are on tensors, and their attributes
sizes.py            symbolic sizes as values of the IR, and back
storage/            what is stored, where, and until when
memory_graph.py     a function as the schedulers of planning/ see it
cost.py             what operations cost: FLOPs, bytes moved, time
layout.py           how a tensor lies in a buffer
operations.py       what operations read, also once groups of them are fusions
versions.py         what variables hold when
concatenations.py   whose operands are computed into the result
updates.py          parts of variables that are computed in place
scans.py            what loops put into the rows of a tensor
loops.py            how often loops run
control_flow.py     the numbered steps of a function on memrefs
allocations.py      what of it can be placed, and how it is used
liveness.py         the steps in which buffers are live
dependencies.py     which operations have to wait for which
addresses.py        where the address of a buffer goes
"""
