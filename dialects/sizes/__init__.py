"""Symbolic sizes as data. analysis/sizes.py reads and writes them as IR.

symbolic.py    polynomials in names, with floor divisions
intervals.py   the range of a size's values
dims.py        `#tgraph.dims`: the sizes of a type
"""
