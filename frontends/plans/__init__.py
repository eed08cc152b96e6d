"""Reads memory plans of other compilers, as `support/foreign_plan.py` describes them.

reading.py           which files hold plans, and in which format
minimalloc.py        buffers with offsets as CSV
executorch.py        the tensors of a program of ExecuTorch
litert.py            LiteRT's models, and where its interpreter has the tensors
inductor.py          the code that PyTorch Inductor generates
inductor_code.py     sizes, names and functions in it
inductor_kernels.py  what its kernels read and write
iree.py              what IREE prints before and after it plans memory
iree_dump.py         the functions in that, and what their operations say
iree_commands.py     commands of IREE as steps
text.py              the text of a dump
tflite.py            types and offsets in `.tflite` files
elements.py          how many bytes an element takes
flatbuffer.py        the tables of ExecuTorch's and LiteRT's files
torch_snapshot.py    what PyTorch's caching allocator did
xla.py               a dump of XLA: the optimized HLO and its buffer assignment
hlo.py               HLO text as plain data
hlo_elements.py      which elements an HLO instruction reads before it writes which
"""
