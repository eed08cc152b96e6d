"""Finds chains of operations to compute in tiles, and rewrites them, for tgraph-tile.

Tiles as slices, one after the other:

dimensions.py         finds the dimensions along which operands are sliced
regions.py            finds operations that can be tiled together
bytes.py              counts the live bytes and the extra time of a region in tiles
search.py             searches the regions and numbers of tiles that lower the peak
rewriting.py          rewrites regions in tiles

Tiles as iterations of a loop, also through sums and windows:

combining.py          finds operations that combine tiles
windows.py            computes the rows that convolutions and pooling read
loops.py              finds operations that one loop can compute
rematerialization.py  rematerializes values that are read after a reduction of them
updates.py            finds values that a loop updates in place
widening_chains.py    finds elementwise chains that widen the values that a loop stores
loop_search.py        searches the loops, and their tiles, that may lower the peak
loop_rewriting.py     rewrites operations as loops

Operations that are not tiled:

claims.py             says whether tiles of an operation may take fewer bytes
"""
