"""What reports, pictures and explanations are made of.

report.py       the figures of a planned module
placements.py   its buffers, one by one
printed.py      its text, with the line of each operation and the name of each value
peaks.py        why an arena is as large as it is
trials.py       what would lower it, by trying
donation.py     one of these options: an argument that holds a result afterwards
"""
