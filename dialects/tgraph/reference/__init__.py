"""The reference interpreter: the meaning of each operation of tgraph, in plain NumPy.

interpreter.py   run_reference: programs
evaluation.py    evaluate: single operations with one result, from a table of functions
elementwise.py, shaping.py, reducing.py, indexing.py, spectral.py
                 the functions, in files named as those of the operations
bodies.py        reductions and sorts by a region on single elements
matrices.py      linear algebra
random.py        random bits
results.py       the shape and the element type of a result
"""
