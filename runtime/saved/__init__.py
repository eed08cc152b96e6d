"""Saves planned and compiled programs to files, to run them without their IR.

names.py     the functions that a file may name
writing.py   writes a program's calls as data
reading.py   makes the calls again, in memory of this process; knows no IR

A file is a zip archive without compression. `program.json` has the inputs and results,
the memories, oneDNN's primitives and the calls; `code/DIGEST.o` is the machine code of
a native function; `constants/N.npy` are the bytes of a memory. The arrays of calls are
written as positions in memories, like the relocations of an object file.
"""
