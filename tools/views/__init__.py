"""Pictures of plans, for `plan-view`.

model.py     what there is to see
reading.py   plans from programs, reports and CSV; by other strategies
programs.py  the plan of a program
foreign.py   the plan of another compiler
groups.py    what buffers may be colored and grouped by
formats.py   the format that a file's name asks for
notebook.py  a plan as a cell of a notebook shows it
page.py      an HTML page with everything in it (from the parts in web/)
svg.py       a drawing
terminal.py  a picture of characters
trace.py     for Chrome's trace viewer and Perfetto
snapshot.py  for PyTorch's memory_viz
"""
