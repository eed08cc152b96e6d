"""Chains of operations computed in tiles: which can be, what pays, the rewriting.

In slices, one after the other:

dimensions.py      along which dimension of its operands an operation can be tiled
regions.py         operations that can be tiled together
bytes.py           what a region needs in tiles, and how much longer it takes
search.py          the regions and tiles that lower the peak
rewriting.py       regions written out in tiles

In loops, through sums and windows:

parts.py           which operations combine tiles
windows.py         which rows convolutions and pooling read
loops.py           operations that one loop can compute
twice.py           values that are computed again, behind a reduction of them
ends.py            elementwise chains that widen what a loop stores
loop_search.py     the loops that may lower the peak, and their tiles
loop_rewriting.py  loops written out

What is not tiled:

claims.py          what an operation takes alone, and whether tiles of it take less
"""
