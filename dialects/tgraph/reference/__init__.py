"""The reference interpreter: what each operation of tgraph means, in plain NumPy.

interpreter.py   run_reference: programs; evaluate: single operations
matrices.py      linear algebra
random.py        random bits
"""
