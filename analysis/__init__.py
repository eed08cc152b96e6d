"""Analyses of programs, for passes, checkers and reports. They do not change the IR.

functions.py        functions on tensors, and their attributes
sizes.py            symbolic sizes as IR values, and back
storage/            what is stored, where, and until when
memory_graph.py     a function as a graph for the schedulers in planning/
flops.py            the floating-point operations of operations
cost.py             the cost of operations: bytes moved, time
layout.py           layouts of tensors in buffers
destinations.py     operations of other dialects in destination style
operations.py       the operands of operations, with those inside fusions
caching.py          caches answers about a block while it stays the same
versions.py         the contents of variables over time
concatenations.py   concatenations with operands computed in place
orders.py           products computed in the order of a later copy
updates.py          updates of parts of variables in place
scans.py            tensors that loops write row by row
loops.py            trip counts of loops
forwarding.py       how control flow forwards memrefs
control_flow.py     the numbered steps of a function on memrefs
allocations.py      allocations that can be placed, and their uses
calls.py            whether a call keeps its memrefs after it has returned
references.py       the values through which an allocation is reached, and their ranges
frees.py            uses of memory after it is freed
residents.py        the successive contents of an allocation, and their uses
liveness.py         the steps in which buffers are live
overwriting.py      operations that may write their result over an operand
banks.py            buffers that are read at the same time
dependencies.py     dependencies between operations
addresses.py        whether addresses of buffers escape
"""
