"""The proof of plan-check, which shares no code with the planner.

It imports neither passes/, nor planning/, nor the analysis of storage. It shares and
trusts the memory effects that operations declare (dialects/memory.py,
dialects/linalg_memory.py) and the interpretation of functions and index arithmetic
(analysis/functions.py, analysis/sizes.py).

plan_check.py       the whole check; passes/plan/check.py says what is proved
buffers.py          a memory and the buffers in it
memories.py         the memories of a function that hold buffers
arenas.py           arenas of callers, in globals, and at addresses
caller_pools.py     arguments with buffers in their memory
pointees.py         the buffers that a memref may refer to
references.py       the buffers that a memref stands for at a time
ranges.py           bounds of indices
extents.py          the bytes of its buffer that a memref may access
effects.py          effects of operations on memrefs, through calls and regions
under_way.py        what runs while a transfer is under way
written.py          the parts of buffers that are written
sharing.py          buffers that share bytes
accesses.py         effects of each operation on buffers
ownership.py        the owners of bytes, on all paths of a function
operands.py         operands that an operation may overwrite: in-place decisions
happens_before.py   the order of steps on several streams
target.py           capacities, addresses and accesses of the memories of the target
symbolic_plan.py    symbolic sizes: numbers to check with, and the proof for all
unchecked.py        counts of what is not proved
foreign.py          plans that other compilers made, which have no IR
"""
