"""Writes the families of tgraph's operations as linalg, arith, math, scf and memref.

code.py       builds upstream operations in order: scalars, loops, element types
memory.py     arrays in memrefs, their views, and workspace
nests.py      loop nests as `linalg.generic`
scalars.py    elementwise operations on scalars
reducing.py   reductions and products
named.py      products as linalg's named operations
windows.py    convolutions and reductions of windows
indexing.py   scatter, slices at dynamic starts, and the gradient of max pooling
gathers.py    the positions of elements that gathers and scatters access
moving.py     concatenation and padding
bodies.py     sorts, and reductions by any function of elements
random.py     random bits
types.py      replaces the types of all values
"""
