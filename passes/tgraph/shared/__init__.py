"""What a few passes on tensors are made of.

channels.py   for inference: parameters, values along few dimensions
reshaped.py   values in another shape, without reshaping what is in memory
"""
