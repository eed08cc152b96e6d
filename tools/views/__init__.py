"""Pictures of plans, for `plan-view`.

model.py     what the views show: plans, pools, buffers, frontiers
reading.py   reads plans from programs, reports and CSV; plans by other strategies
programs.py  the plan of a program
foreign.py   the plan of another compiler
groups.py    the groupings by which buffers are colored
formats.py   chooses the format by a file's name
notebook.py  a plan in a cell of a notebook
page.py      an interactive HTML page (from the parts in web/)
svg.py       a drawing
terminal.py  a picture of characters
trace.py     for Chrome's trace viewer and Perfetto
snapshot.py  for PyTorch's memory_viz
"""
