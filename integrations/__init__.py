"""tensorplan inside other programs, in a line or two of theirs.

jax.py    what `tensorplan.jit` returns
"""
