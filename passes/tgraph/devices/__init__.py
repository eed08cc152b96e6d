"""Parts of the passes that give tensors devices.

placement.py     who names a device, and what follows once all is known
inheritance.py   what is not placed runs where what it reads is (tgraph-place-devices)
inference.py     what has to be on one device is one class (tgraph-infer-devices)
"""
