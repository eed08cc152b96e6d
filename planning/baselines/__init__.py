"""Planners of other systems and of the field, to compare with.

naive.py            no reuse
field.py            planners from papers and libraries
nnvm/               NNVM's planner of shared storages
relay.py            TVM Relay's planner, on the same graph
storages.py         lays out shared storages in bytes
inductor_reuse.py   PyTorch Inductor's reuse of equal buffers
spilling.py         spilling as in ExecuTorch and tt-mlir, and by Belady's rule
inductor_tree.py    PyTorch Inductor's tree of allocations
"""
