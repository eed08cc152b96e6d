"""Reverse-mode differentiation of tensor programs.

requests.py  adds the gradients that the options of tgraph-gradient ask for
reverse.py   writes the gradient of a program, last operation first
site.py      the interface of rules: `GradientSite`, `Term`, `@gradient_of`
writing.py   writes shape operations for rules
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
