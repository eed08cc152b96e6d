"""Planners of other systems and of the field, to compare with.

naive.py            no reuse
field.py            what is found in papers and libraries
nnvm/               NNVM's planner of shared storages
relay.py            TVM Relay's, on the same graph
storages.py         lays such storages out in bytes
inductor_reuse.py   PyTorch Inductor's reuse of equal buffers
spilling.py         what ExecuTorch, tt-mlir and Belady's rule keep in fast memory
inductor_tree.py    PyTorch Inductor's tree of allocations
"""
