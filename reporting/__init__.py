"""Reports and explanations of a plan, for people and programs.

report.py             statistics of a planned module
arguments.py          the arguments of a planned function, with their bytes
serving.py            how the programs of a server share a memory
placements.py         the buffers of a planned module
kept_values.py        values of the forward pass that a plan keeps
checkpoints.py        the plan's recomputation as a policy for jax.checkpoint
torch_checkpoints.py  the plan's recomputation as selective checkpointing in PyTorch
roles.py              the role of each buffer: parameter, activation, gradient, ...
printed.py            the text of a module, with lines of operations and names of values
peaks.py              what makes up the peak of an arena
trials.py             changes that may lower the peak, tried on copies
frontier.py           the curve of time against bytes
donation.py           donation of an argument, one of these changes
explanation.py        peaks and trials for one program; explanation_text.py prints them
foreign.py            what another compiler's plan uses its bytes for
segments.py           the bytes of a trace's blocks with other allocators
wording.py            formatting of sizes and tables
"""
