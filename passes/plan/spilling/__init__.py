"""The parts of plan-spill.

exchanged.py     unrolls loops that exchange buffers
forwarded.py     unites the buffers that branches and loops forward
"""
