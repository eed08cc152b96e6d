"""The passes on tensors. Folders hold the parts of one pass or of a few.

gradients/       tgraph-gradient: the rules, and the requests for gradients
fusion/          tgraph-fuse: which operations are computed together
tiling/          tgraph-tile: which chains are computed in tiles
bufferization/   tgraph-bufferize: tensors to memrefs
devices/         tgraph-place-devices and tgraph-infer-devices
shared/          code that several passes share
"""
