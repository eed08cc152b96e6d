"""NumPy kernels that write into given memory, one for each family of operations.

backend.py       the calls of any operation
base.py          the registry of kernels
elementwise.py   elementwise operations, alone and in loops, tile by tile
forms.py         elementwise operations as ufuncs or as several calls
fusion.py        groups of operations, without storing intermediate values
rows.py          groups of rows, some rows at a time
moving.py        constants, copies and other operations that only move elements
dot.py, convolution.py   matrix products, and convolutions as matrix products
reducing.py      reductions, windows
reductions.py    reductions along the rows and columns of matrices
indexing.py      gather, scatter, dynamic slices
blas.py          sets the threads of NumPy's products
functions.py     functions that calls use and NumPy lacks
bodies.py        sort, and reductions by regions on single elements
random.py        random bits
matrices.py      linear algebra, by the routines in lapack.py
spectral.py      Fourier transforms
special.py       the error function
numbers.py       arith and math operations
linalg.py        linalg operations
"""
