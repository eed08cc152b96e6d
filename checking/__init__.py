"""The proof of plan-check, which shares nothing with what makes a plan.

It imports neither passes/ nor planning/ nor the analysis of what is stored. What it
does share, and trusts: what operations declare about memory (dialects/memory.py,
dialects/linalg_memory.py), and how functions and index arithmetic are read
(analysis/functions.py, analysis/sizes.py).

plan_check.py       the whole; passes/plan/check.py says what is proved
buffers.py          a memory and the buffers in it
memories.py         which memories of a function hold buffers, and where
caller_pools.py     arguments with buffers in their memory
pointees.py         which memrefs may be which buffers
ranges.py           between which numbers an index lies
extents.py          which bytes of its buffer a memref reaches
effects.py          what operations do with memrefs, through calls and regions
written.py          what of buffers is written
sharing.py          which buffers share bytes
accesses.py         what each operation does to buffers
ownership.py        who has the bytes of a memory, on all paths of a function
operands.py         what an operation writes against what it reads: in-place decisions
happens_before.py   which steps are surely over before which, on several streams
symbolic_plan.py    symbolic sizes: numbers to check with, and the proof for all
unchecked.py        what is left unproved, counted
"""
