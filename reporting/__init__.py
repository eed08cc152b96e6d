"""What people and programs are told about a plan: reports, pictures, explanations.

report.py             the figures of a planned module
placements.py         its buffers, one by one
printed.py            its text, with the line of each operation, the name of each value
peaks.py              why an arena is as large as it is
trials.py             what would lower it, by trying
frontier.py           the curve of time against bytes
donation.py           one of these: an argument that holds a result afterwards
explanation.py        all of that about one program; explanation_text.py has it in words
wording.py            what texts are made of: sizes, tables
"""
