"""Native code for elementwise operations, reductions, fused groups and indexing.

backend.py      the calls of an operation or a fusion
code.py         LLVM IR as text: values, arithmetic, loops
elements.py     element types in memory and in registers
complexes.py    complex numbers in registers
math.py         exp, log, tanh, ... of vectors
operations.py   the elementwise operations
graphs.py       an operation or fusion as a graph over one iteration space
accumulators.py   partial results of reductions, in registers
nests.py        chooses the loops of a graph: order, vectors, passes
loops.py        lowers loop nests to LLVM IR
interleaving.py   vectors of short rows, such as the colors of pixels
functions.py    the calls of loop nests
integers.py     products and convolutions of 8-bit integers
dot_products.py   sums of products of 8-bit integers, two or four at a time
products.py     products with vectors, and of wide integers, as loop nests
stencils.py     convolutions of one feature
planes.py       convolutions in groups of few features, channels first
taps.py         gradients of the weights of depthwise convolutions
widening.py     contractions of f16 and of mixed types, as f32 by oneDNN
panels.py       products of matrices of any layout, without packed copies
few_rows.py     a few rows by a transposed matrix
strips.py       a vector by a matrix with long rows
slices.py       groups that read slices at dynamic starts in place
indexing.py     gathers, scatters and dynamic slices
bodies.py       reductions by regions on single elements
transposing.py  copies into another order of dimensions, and transposes of rows
windows.py      reductions in windows, as reductions of views
pooling.py      windows over holes or padding, and gradients of maximum pooling
scans.py        cumulative sums, products and extremes
fourier.py      Fourier transforms
lapack.py       LAPACK on batches of matrices
sorting.py      sorts by any comparator, and the first elements of a sort

oneDNN or NumPy computes other contractions in a fusion. All of this needs llvmlite
(extra `fast`), which is imported when the first function is made. NumPy computes
without it, with `TENSORPLAN_NATIVE=0`, and for operations that are not supported.
"""
