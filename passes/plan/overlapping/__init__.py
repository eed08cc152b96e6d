"""The parts of plan-overlap-copies.

copies.py        copies that may become transfers, and existing transfers
iterations.py    copies that continue from one iteration of a loop to the next
writing.py       writes transfers
"""
