"""Writes functions on memrefs, for tgraph-bufferize.

blocks.py     the operations of a block, with its loops and branches
constants.py  the module's constants
"""
