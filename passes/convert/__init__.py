"""Passes that convert one dialect to another.

linalg/   convert-tgraph-to-linalg: each family of operations

The parts of convert-stablehlo-to-tgraph are in frontends/stablehlo/.
"""
