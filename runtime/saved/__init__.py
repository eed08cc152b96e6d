"""Programs in files: planned, compiled, and ready to run without their IR.

names.py     the functions that a file may name
writing.py   a program's calls as data
reading.py   the calls again, in memory of this process; knows no IR

A file is a zip archive without compression: `program.json` has the inputs and results,
the memories, the primitives of oneDNN and the calls; `code/DIGEST.o` is the machine
code of a native function; `constants/N.npy` are the bytes of a memory. The arrays of
calls are written as places in memories, as an object file has relocations.
"""
