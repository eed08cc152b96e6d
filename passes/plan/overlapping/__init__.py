"""The parts of plan-overlap-copies.

copies.py        copies that may be transfers, and transfers that there are
iterations.py    copies that an iteration of a loop starts for the next one
writing.py       what makes a transfer of a copy
"""
