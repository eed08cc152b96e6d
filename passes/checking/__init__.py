"""The proof of plan-check. Imports nothing of `memory/`, which it proves right.

pointees.py         which memrefs may be which buffers
ownership.py        who has the bytes of an arena, on all paths of a function
result_pools.py     results with buffers in their memory: pools that the caller gives
happens_before.py   which steps are surely over before which, on several streams
symbolic_plan.py    symbolic sizes: numbers to check with, and the proof for all
"""
