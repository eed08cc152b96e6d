"""The patterns of `canonicalize` by operation; other classes use those of their base.

The patterns import the operations' classes, not the reverse: importing any module of
this package runs this one.
"""

from . import unused
from .base import REWRITES
from .bodies import ElementsOp, SortOp
from .canonicalization import (
    constants,
    contractions,
    gathers,
    pads,
    positions,
    slices,
    views,
)
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
        ElementwiseOp: (FoldElementwise(), views.ElementwiseOfBroadcasts()),
        DynamicSliceOp: (constants.ShapeOfSplat(), slices.DynamicSliceAtConstant()),
        DynamicUpdateSliceOp: (slices.UpdateOfAll(),),
        GatherOp: (
            constants.ShapeOfSplat(),
            gathers.GatherOfOnePlace(),
            GatherOfCounted(),
            BatchOfIndices(),
            gathers.GatherOfBroadcast(),
            gathers.GatherOfElementwise(),
        ),
        ScatterOp: (BatchOfIndices(),),
        ElementsOp: (positions.CountPositions(),),
        SortOp: (positions.SortOfUnitDimension(), positions.CountPositions()),
        ReduceOp: (contractions.ReduceOfUnitDimensions(),),
        DotGeneralOp: (NarrowOperands(), contractions.DotGeneralOfUnitDimensions()),
        ConvolutionOp: (
            NarrowOperands(),
            contractions.ConvolutionOfPad(),
            contractions.ConvolutionWithVector(),
        ),
        ReduceWindowOp: (contractions.ReduceWindowOfPad(),),
        FullLikeOp: (constants.FullLikeOfStaticShape(),),
        ReshapeOp: (
            views.DropIdentity(),
            views.MergeReshapes(),
            constants.ShapeOfSplat(),
        ),
        BroadcastInDimOp: (
            views.DropIdentity(),
            views.MergeBroadcasts(),
            views.BroadcastOfReshape(),
            constants.ShapeOfSplat(),
        ),
        TransposeOp: (
            views.DropIdentity(),
            views.MergeTransposes(),
            views.TransposeOfBroadcast(),
            contractions.TransposeOfDotGeneral(),
            constants.ShapeOfSplat(),
        ),
        SliceOp: (
            views.DropIdentity(),
            slices.MergeSlices(),
            slices.SliceOfBroadcast(),
            slices.SliceOfReshape(),
            constants.ShapeOfSplat(),
            constants.NumberOfConstant(),
            slices.SlicesOfDynamicSlice(),
            slices.SlicesOfConcatenation(),
            slices.SlicesOfElementwise(),
            pads.SlicesOfPad(),
            contractions.CropOfConvolution(),
        ),
        ReverseOp: (
            views.DropIdentity(),
            views.MergeReverses(),
            constants.ShapeOfSplat(),
        ),
        ConcatenateOp: (views.DropEmptyOperands(), views.DropIdentity()),
        PadOp: (
            views.DropIdentity(),
            pads.PadOfEmpty(),
            pads.SliceInsteadOfNegativePad(),
        ),
        DeviceCopyOp: (constants.DropCopyHome(), constants.CopyOfConstant()),
        FactorizationOp: (unused.DropUnusedFactors(),),
        WhileOp: (unused.DropUnusedOfLoop(),),
        IfOp: (unused.DropUnusedOfBranches(),),
    }
)
