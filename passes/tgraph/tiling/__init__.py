"""Chains of operations computed in tiles: which can be, what pays, the rewriting.

dimensions.py   along which dimension of its operands an operation can be tiled
regions.py      operations that can be tiled together
bytes.py        what a region needs in tiles, and how much longer it takes
search.py       the regions and tiles that lower the peak
rewriting.py    regions written out in tiles
"""
