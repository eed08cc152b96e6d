"""The passes that place memory. Beside them lie parts of one pass or of a few.

placement/         plan-memory: streams, the caller's memory, symbolic offsets
spilling/          plan-spill: one buffer for what control flow hands on
overlapping/       plan-overlap-copies: copies, iterations, transfers
shared_memory.py   plan-in-place: allocations that may be one
cached.py          plans on disk, for processes that compile the same program
"""
