"""Analyses of programs, for passes, checkers and reports. They change nothing.

functions.py        functions on tensors, and their attributes
sizes.py            symbolic sizes as values of the IR, and back
storage/            what is stored, where, and until when
memory_graph.py     a function as a graph for the schedulers in planning/
cost.py             the cost of operations: FLOPs, bytes moved, time
layout.py           layouts of tensors in buffers
destinations.py     operations of other dialects in destination style
operations.py       the operands of operations, inside fusions too
once.py             answers that are kept while a block stays the same
versions.py         the contents of variables over time
concatenations.py   concatenations with operands computed in place
updates.py          updates of parts of variables in place
scans.py            tensors that loops write row by row
loops.py            trip counts of loops
control_flow.py     the numbered steps of a function on memrefs
allocations.py      allocations that can be placed, and their uses
calls.py            what a call does with its memrefs once it has returned
references.py       the values through which an allocation is reached, and their lives
frees.py            uses of memory after it is freed
residents.py        what an allocation holds, one after the other, and its uses
liveness.py         the steps in which buffers are live
overwriting.py      operations that may compute over what they read
banks.py            buffers that are read together
dependencies.py     dependencies between operations
addresses.py        escaping addresses of buffers
"""
