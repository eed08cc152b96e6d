"""Finds and writes loops over tiles, with every operation as their seed."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tensorplan.analysis.functions import tensor_functions
from tensorplan.dialects.tgraph.base import TensorOp, shape_of, tensor_type_of
from tensorplan.passes.tgraph.tiling.loop_rewriting import write_loop
from tensorplan.passes.tgraph.tiling.loops import Surroundings, TiledLoop, tiled_loop


def loops_of(block: Block) -> list[tuple[int, int, int]]:
    """All loops over tiles in `block`: the index of the seed, a dimension, and a number
    of tiles."""
    return [
        (number, dim, tiles)
        for number, op in enumerate(block.ops)
        if isinstance(op, TensorOp) and op.res
        for dim, size in enumerate(shape_of(tensor_type_of(op.res[0].type)))
        for tiles in range(2, size + 1)
        if size % tiles == 0 and loop_at(block, op, dim, tiles)
    ]


def loop_at(block: Block, op: Operation, dim: int, tiles: int) -> TiledLoop | None:
    return tiled_loop(Surroundings(block), op, dim, tiles)


def with_loop(module: ModuleOp, number: int, dim: int, tiles: int) -> ModuleOp:
    module = module.clone()
    ((_, block),) = tensor_functions(module)
    loop = loop_at(block, list(block.ops)[number], dim, tiles)
    assert loop is not None
    write_loop(loop)
    module.verify()
    return module
