"""The passes that place memory. Folders hold the parts of one pass or of a few.

placement/    plan-memory: streams, results' memory, symbolic offsets
candidates/   plans that are made on copies of a program, and measured
"""
