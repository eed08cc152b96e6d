"""Makes memref IR ready to run.

memory.py       where each value lies: in arguments, arenas, allocators' regions
compiled.py     the steps that compute what its operations say
control.py      numbers between operations on memrefs, loops and branches
program.py      a program however it was made: its calls follow its arguments
steps.py        what a program consists of: buffers, arrays in them, calls
relocation.py   how calls follow arguments in other memory
stages.py       what callers provide when, so that memory is there only while in use
workspaces.py   how much memory its kernels take, for plan-workspaces
"""
