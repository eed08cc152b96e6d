"""Parts that several passes on tensors share.

candidates.py   tries lowerings on copies of the program, and estimates their cost
channels.py     finds parameters, and values that vary along few dimensions
constants.py    writes tensors with one number for all elements
fitting.py      finds how few bytes may be live to meet a budget
iterations.py   finds the iterations of one row in and after an unrolled loop
kept_rows.py    makes loops carry the few rows of a stack that are read
merged_sums.py  sums over merged dimensions in the order in which operands are stored
reshaped.py     writes values in another shape without copying memory
row_updates.py  updates variables row by row, from rows that are computed in sequence
loops.py        visits the loops of a block for passes that replace them
rows.py         finds the parts of concatenations of rows
simplifying.py  canonicalizes regions, and eliminates common subexpressions in them
streams.py      finds functions whose operations have streams
ungrouping.py   takes groups apart
unrolled.py     rewrites loops over several rows per iteration row by row
"""
