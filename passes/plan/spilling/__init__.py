"""The parts of plan-spill.

forwarded.py     unites the buffers that branches and loops forward
"""
