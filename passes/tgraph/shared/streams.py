"""Operations with streams: their order is the program's own, and parts may overlap."""

from xdsl.dialects.func import FuncOp

from ....dialects.diagnostics import remark
from ....dialects.tgraph.base import STREAM


def has_streams(func: FuncOp, undone: str) -> bool:
    """Whether operations of a function have streams. If so, a remark says what a pass
    leaves undone: `nothing is tiled`."""
    found = any(STREAM in op.attributes for op in func.body.block.ops)
    if found:
        remark(f"{undone}: its operations have streams", func)
    return found
