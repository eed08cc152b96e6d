"""What a few passes on tensors are made of.

channels.py   for inference: parameters, values along few dimensions
devices.py    who names a device, and what follows from that
"""
