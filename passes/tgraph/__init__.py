"""The passes on tensors. Folders hold the parts of one pass or of a few.

gradients/       tgraph-gradient: the rules, and what asks for them
fusion/          tgraph-fuse: which operations are computed together
slicing/         tgraph-slice: which chains are computed in pieces
bufferization/   tgraph-bufferize: tensors to memrefs
shared/          what a few passes are made of
"""
