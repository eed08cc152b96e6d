"""Questions about a program that passes, checkers and reports ask. Changes nothing.

storage/    what is stored, where, and until when
cost.py     FLOPs, bytes moved, and the time that operations take, estimated
loops.py    how often a loop runs, and what its counter is
"""
