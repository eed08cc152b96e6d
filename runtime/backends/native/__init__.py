"""Native code for elementwise operations, reductions, fused groups and indexing.

backend.py      the calls of an operation or a fusion
code.py         LLVM IR as text: values, arithmetic, loops
elements.py     element types in memory and in registers
complexes.py    complex numbers in registers
math.py         exp, log, tanh, ... of vectors
operations.py   the elementwise operations
graphs.py       what an operation or fusion computes, over one iteration space
accumulators.py   reductions under way, in registers
nests.py        the loops for that: order, vectors, passes
loops.py        loops to LLVM IR
interleaving.py   vectors of short rows, such as the colors of pixels
functions.py    the calls of loop nests
integers.py     products and convolutions of 8-bit integers
dot_products.py   sums of products of them, two or four at a time
products.py     products with vectors, and of wide integers, as loop nests
stencils.py     convolutions of one feature
widening.py     contractions of f16 and of two types, as f32 by oneDNN
strips.py       a vector by a matrix with long rows
slices.py       groups that read slices at dynamic starts where they lie
indexing.py     gathers, scatters and dynamic slices
bodies.py       reductions by any function
transposing.py  copies into another order of dimensions, and rows into columns
windows.py      reductions in windows that are views
pooling.py      those over holes, and gradients of maximum pooling
scans.py        cumulative sums, products and extremes
lapack.py       LAPACK on batches of matrices
sorting.py      sorts by any comparator, and the first of a sort

oneDNN or NumPy computes other contractions in a fusion. The rest needs llvmlite (extra
`fast`), which is imported when the first function is made. Without it, for what is not
supported, and with `TENSORPLAN_NATIVE=0`, NumPy computes.
"""
