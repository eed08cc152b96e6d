"""Reverse-mode differentiation of tensor programs.

requests.py  what tgraph-gradient's options ask for
reverse.py   writes the gradient of a program, last operation first
site.py      what a rule sees and how it writes: `GradientSite`, `Term`, `@gradient_of`
writing.py   shape operations, as rules write them
elementwise.py, shaping.py, reducing.py, windows.py, indexing.py, matrices.py,
spectral.py  the rules
"""

from . import elementwise, indexing, matrices, reducing, shaping, spectral, windows

__all__ = [
    "elementwise",
    "indexing",
    "matrices",
    "reducing",
    "shaping",
    "spectral",
    "windows",
]
