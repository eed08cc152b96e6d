"""Memref IR made ready to run.

memory.py       where each value lies: in arguments, arenas, allocators' regions
program.py      the steps that compute
control.py      numbers between operations on memrefs, loops and branches
steps.py        what a program consists of: buffers, arrays in them, calls
relocation.py   how calls follow arguments in other memory
workspaces.py   how much memory its kernels take, for plan-workspaces
"""
