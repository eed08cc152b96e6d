"""The parts of plan-spill.

handed_on.py     one buffer for what branches and loops hand on
"""
