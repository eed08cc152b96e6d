"""The reference interpreter: the meaning of each operation of tgraph, in plain NumPy.

interpreter.py   run_reference: programs; evaluate: single operations
matrices.py      linear algebra
random.py        random bits
"""
