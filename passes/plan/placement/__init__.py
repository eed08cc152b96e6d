"""The parts of plan-memory. What it asks about a program is in analysis/.

stream_order.py      lives on several streams
output_reuse.py  results' memory for other buffers, until the result is written
runtime_offsets.py   offsets that are computed from sizes
"""
