"""The parts of plan-spill.

route.py         the cost of copies to a slower memory, and which operations access it
moving.py        a buffer that may move, and where its contents are in the slower memory
gaps.py          the residency problem: where such buffers can be away, and the costs
rewriting.py     inserts the copies and allocations of a buffer that moves
exchanged.py     unrolls loops that exchange buffers
forwarded.py     unites the buffers that branches and loops forward
"""
