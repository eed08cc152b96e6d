"""Lowers memref IR to a program that can run.

memory.py       where each value lies: in an argument, an arena, an allocator's region
compiled.py     builds the steps that compute the operations
control.py      builds the steps of scalars, loops, branches and linalg
program.py      Program, made from IR or a file: its memory, steps and relocation
steps.py        the parts of a program: memory blocks, buffers, views and steps
relocation.py   updates calls when the memory of an argument moves
stages.py       divides a program so that callers can provide memory only while in use
workspaces.py   the workspace of each kernel in bytes, for plan-workspaces
"""
