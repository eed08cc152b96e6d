"""What a few passes on tensors are made of.

candidates.py   lowerings that are tried on copies of the program, and which is best
channels.py     for inference: parameters, values along few dimensions
constants.py    tensors with one number for all elements
fitting.py      how few bytes have to be live to meet a budget
iterations.py   iterations of loops in which several rows are computed, and after them
kept_rows.py    loops that carry the rows of a stack that are read, where few are
reshaped.py     values in another shape, without reshaping what is in memory
row_updates.py  updates of variables row by row, where rows are computed one by one
loops.py        loops that a pass makes anew
rows.py         concatenations of rows, part by part
streams.py      functions whose operations have streams
ungrouping.py   groups taken apart
unrolled.py     loops that read and write several rows in each iteration, row by row
"""
