"""The passes that place memory, and parts that they consist of.

placement/         plan-memory: streams, the caller's memory, symbolic offsets
spilling/          plan-spill: one buffer for each value that control flow forwards
overlapping/       plan-overlap-copies: copies, iterations, transfers
shared_memory.py   plan-in-place: allocations that may be merged
cached.py          plans on disk, for processes that compile the same program
"""
