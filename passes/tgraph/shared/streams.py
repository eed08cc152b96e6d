"""Finds functions with streams, whose operations keep their order and may overlap."""

from xdsl.dialects.func import FuncOp

from ....dialects.diagnostics import remark
from ....dialects.tgraph.base import STREAM


def has_streams(func: FuncOp, undone: str) -> bool:
    """Whether operations of a function have streams. If so, emits a remark with the
    text `undone`, such as `nothing is tiled`."""
    found = any(STREAM in op.attributes for op in func.body.block.ops)
    if found:
        remark(f"{undone}: its operations have streams", func)
    return found
