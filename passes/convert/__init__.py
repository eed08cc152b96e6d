"""The passes from one dialect to another.

linalg/   convert-tgraph-to-linalg: each family of operations

What convert-stablehlo-to-tgraph is made of is in frontends/stablehlo/.
"""
