"""The parts of plan-overlap-copies.

copies.py        copies that may be transfers, and transfers that there are
iterations.py    copies that go on from one iteration of a loop to the next
writing.py       what makes a transfer of a copy
"""
