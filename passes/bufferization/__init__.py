"""How tgraph-bufferize rewrites blocks.

buffers.py   where values lie
blocks.py    the operations of one block
regions.py   loops and branches
"""
