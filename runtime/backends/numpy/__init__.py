"""NumPy kernels that write into given memory, one for each family of operations.

backend.py       the calls of any operation
base.py          the registry of kernels
elementwise.py   elementwise operations, alone and in loops, tile by tile
forms.py         what NumPy has for them: ufuncs, and what takes several calls
fusion.py        groups of operations, without storing what is between them
rows.py          groups of rows, some at a time
moving.py        constants, copies and whatever only moves elements
dot.py, convolution.py   on matrix products
reducing.py      reduce, windows
reductions.py    along the rows and columns of matrices
indexing.py      gather, scatter, dynamic slices
blas.py          the threads of NumPy's products
functions.py     what calls call that NumPy has not
bodies.py        sort, and reductions by any function of single elements
random.py        random bits
matrices.py      linear algebra, by the routines in lapack.py
spectral.py      Fourier transforms
special.py       the error function
numbers.py       what arith and math operations compute
linalg.py        linalg operations
"""
