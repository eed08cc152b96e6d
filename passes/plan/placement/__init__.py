"""The parts of plan-memory. The analyses that it uses are in analysis/.

arena.py             the plan of a memory space, which plan-memory writes into the IR
arena_forms.py       arenas that others own: arguments, globals, addresses
marked.py            arenas with their mark, and views that replace allocations
slots.py             allocations that share a slot, and allocations with several
stream_order.py      live ranges on several streams
output_reuse.py      the caller's memory for other buffers, while it is not needed
runtime_offsets.py   offsets that are computed from sizes at run time
"""
