"""Parts of the passes that give tensors devices.

placement.py     reads named devices; inserts copies and writes types at the end
inheritance.py   places operations where their operands or users are
                 (tgraph-place-devices)
inference.py     places operations by classes that must be on one device
                 (tgraph-infer-devices)
"""
