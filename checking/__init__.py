"""The checks of plan-check, which share no code with the planner.

They import neither passes/, nor planning/, nor the analysis of storage. They share and
trust the memory effects that operations declare (dialects/memory.py,
dialects/linalg_memory.py) and the interpretation of functions and index arithmetic
(analysis/functions.py, analysis/sizes.py).

plan_check.py       the whole check; passes/plan/check.py says what is proved
buffers.py          a memory and the buffers in it
memories.py         the memories of a function that hold buffers
arenas.py           arenas that callers pass, in globals, and at addresses
caller_pools.py     arguments with buffers in their memory
pointees.py         the buffers that a memref may refer to
references.py       the buffers that a memref refers to at a given time
ranges.py           bounds of indices
extents.py          the bytes of its buffer that a memref may access
effects.py          effects of operations on memrefs, through calls and regions
under_way.py        the operations that run while a transfer is in flight
written.py          the parts of buffers that have been written
sharing.py          buffers that share bytes
accesses.py         effects of each operation on buffers
ownership.py        the owners of bytes, on all paths of a function
operands.py         in-place decisions: operands that an operation may overwrite
happens_before.py   the order of steps on several streams
target.py           capacities, addresses and accesses of the memories of the target
symbolic_plan.py    symbolic sizes: values to check with, and the proof for all values
unchecked.py        counts of facts that are not proved
foreign.py          plans of other compilers, which have no IR
"""
