"""Integrations of tensorplan into other compilers and runtimes.

executorch.py     an algorithm for ExecuTorch's `MemoryPlanningPass`
inductor.py       an additional schedule of Inductor's kernels, in `torch.compile`
jax.py            the functions that `tensorplan.jit` returns
jax_calls.py      a compiled program as a JAX primitive with derivatives
minimalloc.py     minimalloc's Python API and its command, `plan-minimalloc`
tflm.py           offsets in a model for TensorFlow Lite Micro: `plan-tflm`
torch.py          the backend `tensorplan` of `torch.compile`
torch_calls.py    runs the backend's programs in the memory of PyTorch's tensors
torch_decompositions.py   recomputation in its backward passes, and random numbers
torch_weights.py  precomputes values from the weights of its inference graphs
"""
