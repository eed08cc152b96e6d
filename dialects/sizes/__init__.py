"""Symbolic sizes: what they are. analysis/sizes.py reads and writes them as IR.

symbolic.py    polynomials in names, with floor divisions
intervals.py   between which numbers one lies
dims.py        `#tgraph.dims`: the sizes of a type
"""
