"""The patterns of `canonicalize` by operation; other classes use those of their base.

The patterns import the operations' classes, not the reverse: importing any module of
this package runs this one.
"""

from . import canonicalization as c
from . import unused
from .base import REWRITES
from .bodies import ElementsOp, SortOp
from .elementwise import ElementwiseOp
from .folding import FoldElementwise
from .index_batching import BatchOfIndices, GatherOfCounted
from .indexing import DynamicSliceOp, DynamicUpdateSliceOp, GatherOp, ScatterOp
from .matrices import FactorizationOp
from .narrowing import NarrowOperands
from .reducing import ConvolutionOp, DotGeneralOp, ReduceOp, ReduceWindowOp
from .shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    DeviceCopyOp,
    FullLikeOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from .structure import IfOp, WhileOp

REWRITES.update(
    {
        ElementwiseOp: (FoldElementwise(), c.ElementwiseOfBroadcasts()),
        DynamicSliceOp: (c.ShapeOfSplat(), c.DynamicSliceAtConstant()),
        DynamicUpdateSliceOp: (c.UpdateOfAll(),),
        GatherOp: (c.ShapeOfSplat(), GatherOfCounted(), BatchOfIndices()),
        ScatterOp: (BatchOfIndices(),),
        ElementsOp: (c.CountPositions(),),
        SortOp: (c.SortOfUnitDimension(), c.CountPositions()),
        ReduceOp: (c.ReduceOfUnitDimensions(),),
        DotGeneralOp: (NarrowOperands(), c.DotGeneralOfUnitDimensions()),
        ConvolutionOp: (NarrowOperands(), c.ConvolutionOfPad()),
        ReduceWindowOp: (c.ReduceWindowOfPad(),),
        FullLikeOp: (c.FullLikeOfStaticShape(),),
        ReshapeOp: (c.DropIdentity(), c.MergeReshapes(), c.ShapeOfSplat()),
        BroadcastInDimOp: (
            c.DropIdentity(),
            c.MergeBroadcasts(),
            c.BroadcastOfReshape(),
            c.ShapeOfSplat(),
        ),
        TransposeOp: (
            c.DropIdentity(),
            c.MergeTransposes(),
            c.TransposeOfBroadcast(),
            c.TransposeOfDotGeneral(),
            c.ShapeOfSplat(),
        ),
        SliceOp: (
            c.DropIdentity(),
            c.MergeSlices(),
            c.SliceOfBroadcast(),
            c.ShapeOfSplat(),
            c.NumberOfConstant(),
            c.SlicesOfDynamicSlice(),
            c.SlicesOfConcatenation(),
            c.CropOfConvolution(),
        ),
        ReverseOp: (c.DropIdentity(), c.MergeReverses(), c.ShapeOfSplat()),
        ConcatenateOp: (c.DropIdentity(),),
        PadOp: (c.DropIdentity(), c.CropOfConvolution()),
        DeviceCopyOp: (c.DropCopyHome(), c.CopyOfConstant()),
        FactorizationOp: (unused.DropUnusedFactors(),),
        WhileOp: (unused.DropUnusedOfLoop(),),
        IfOp: (unused.DropUnusedOfBranches(),),
    }
)
