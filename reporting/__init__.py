"""Reports and explanations of a plan, for people and programs.

report.py             statistics of a planned module
arguments.py          what the caller of a planned function gives
serving.py            how the programs of a server share a memory
placements.py         the buffers of a planned module
kept_values.py        values of the forward pass that a plan keeps
checkpoints.py        the plan's recomputation as a policy for jax.checkpoint
torch_checkpoints.py  the same as selective checkpointing in PyTorch
roles.py              what memory is for: parameters, activations, gradients, ...
printed.py            its text, with operation lines and value names
peaks.py              what makes up the peak of an arena
trials.py             changes that would lower the peak, tried on copies
frontier.py           the curve of time against bytes
donation.py           donation of an argument, as one of these changes
explanation.py        all of these for one program; explanation_text.py writes text
foreign.py            what the bytes of another compiler's plan are for
segments.py           what the blocks of a trace would take by other allocators
wording.py            formatting of sizes and tables
"""
