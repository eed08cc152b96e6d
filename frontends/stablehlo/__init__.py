"""From StableHLO (level 0) to tgraph (level 1).

reading.py       what jaxlib reads: text in pretty form, bytecode
conversion.py    one operation on its way, and what conversions share
elementwise.py, shaping.py, products.py, reducing.py, indexing.py, matrices.py   by
                 families
windows.py       windows that are reduced by any body
custom_calls.py  what JAX calls by name, such as LAPACK's routines
quantized.py     elements that are integers for numbers
loops.py         what becomes a loop: scan, scatter by any body
sizes.py         operations that compute with sizes, or have computed shapes
symbols.py       what the sizes of arguments are called
functions.py     the module: functions, donated arguments
blocks.py        blocks: calls, loops, branches; the table of all conversions
"""
