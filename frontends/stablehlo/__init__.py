"""Conversion of StableHLO (level 0) to tgraph (level 1).

reading.py       reads text in pretty form and bytecode, by jaxlib
conversion.py    the conversion of one operation, and helpers
elementwise.py, shaping.py, products.py, reducing.py, indexing.py, matrices.py   by
                 families
normalization.py batch norms, for inference and for training
windows.py       reductions of windows by any body
custom_calls.py  custom calls of JAX, such as LAPACK's routines
quantized.py     quantized element types
loops.py         operations that become loops: scan, scatter by any body
sizes.py         operations that compute with sizes, or have computed shapes
symbols.py       the names of the sizes of arguments
tokens.py        removes tokens
functions.py     modules: functions, donated arguments
blocks.py        blocks: calls, loops, branches; the table of all conversions
"""
