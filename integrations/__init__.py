"""tensorplan inside other programs, in a line or two of theirs.

executorch.py     an algorithm for ExecuTorch's `MemoryPlanningPass`
inductor.py       one more order for Inductor's kernels, in `torch.compile`
jax.py            what `tensorplan.jit` returns
jax_calls.py      a compiled program as an operation of JAX, with its derivatives
minimalloc.py     minimalloc's Python API and its command, `plan-minimalloc`
tflm.py           offsets in a model for TensorFlow Lite Micro: `plan-tflm`
torch.py          the backend `tensorplan` of `torch.compile`
torch_calls.py    runs programs in the memory of PyTorch's tensors
torch_decompositions.py   what its backward passes compute again, and random numbers
torch_weights.py  what follows from the weights of its inference graphs, computed once
"""
