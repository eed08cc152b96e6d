"""The parts of plan-memory. What it asks about a program is in analysis/.

arena.py             the plan of a memory space, which plan-memory writes down
arena_forms.py       arenas that others own: arguments, globals, addresses
slots.py             allocations that share a slot, and those that have several
stream_order.py      lives on several streams
output_reuse.py      the caller's memory for other buffers, while it is not needed
runtime_offsets.py   offsets that are computed from sizes
"""
