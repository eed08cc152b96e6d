"""What plan-memory has to know of a memref program, and how it uses results' memory.

control_flow.py      numbered steps, and how control goes on
addresses.py         where the address of a buffer goes: whether it is only compared
allocations.py       the allocations that can be placed, and how they are used
liveness.py          the ranges of steps in which buffers are live
dependencies.py      which operations have to wait for which
stream_order.py      lives on several streams
lending.py           results' memory for other buffers, until the result is written
runtime_offsets.py   offsets that are computed from sizes
"""
