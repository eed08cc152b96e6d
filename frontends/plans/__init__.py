"""Reads memory plans of other compilers to the form in `support/foreign_plan.py`.

reading.py           finds files with plans, and selects the reader by format
minimalloc.py        buffers with offsets as CSV
executorch.py        the tensors of a program of ExecuTorch
litert.py            models of LiteRT, and the addresses of tensors in its interpreter
inductor.py          the code that PyTorch Inductor generates
inductor_code.py     sizes, names and functions in that code
inductor_kernels.py  the operands that its kernels read and write
iree.py              IREE's IR before and after memory planning
iree_dump.py         the functions in a dump of that IR, and properties of operations
iree_commands.py     IREE's commands as steps
text.py              the text of a dump
tflite.py            types and offsets in `.tflite` files
elements.py          the size of an element
flatbuffer.py        tables in flatbuffers, of ExecuTorch and LiteRT
torch_snapshot.py    traces of PyTorch's caching allocator
xla.py               a dump of XLA: the optimized HLO and its buffer assignment
hlo.py               parser of HLO text
hlo_elements.py      the order in which an HLO instruction reads and writes elements
"""
