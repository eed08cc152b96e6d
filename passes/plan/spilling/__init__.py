"""The parts of plan-spill.

handed_on.py     unites the buffers that branches and loops forward
"""
