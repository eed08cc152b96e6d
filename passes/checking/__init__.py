"""The proof of plan-check. Imports nothing of `memory/`, which it proves right.

buffers.py          a memory and the buffers in it
memories.py         which memories of a function hold buffers, and where
result_pools.py     results with buffers in their memory: pools that the caller gives
pointees.py         which memrefs may be which buffers
ranges.py           between which numbers an index lies
extents.py          which bytes of its buffer a memref reaches
effects.py          what operations do with memrefs, through calls and regions
written.py          what of buffers is written
sharing.py          which buffers share bytes
ownership.py        who has the bytes of a memory, on all paths of a function
operands.py         what an operation writes against what it reads: in-place decisions
happens_before.py   which steps are surely over before which, on several streams
symbolic_plan.py    symbolic sizes: numbers to check with, and the proof for all
unchecked.py        what is left unproved, counted
"""
