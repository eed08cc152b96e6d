"""The function `@main` that a frontend makes of a model's file."""

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FileLineColLoc,
    StringAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..dialects.dtypes import Array
from ..dialects.tgraph.base import NAME, PARAMETER


def entry(
    block: Block,
    attributes: Sequence[dict[str, Attribute]],
    parameters: dict[str, Array],
    ops: Sequence[Operation],
    results: Sequence[SSAValue],
    names: Iterable[str],
    place: FileLineColLoc,
) -> FuncOp:
    """`@main`, with `ops` appended to `block`, whose arguments are the function's.

    attributes: of the arguments. Parameters that nothing uses are erased, here and in
        `parameters`.
    names: of the results.
    place: the location of the function.
    """
    kept = list(attributes)
    for argument, own in reversed(list(zip(block.args, attributes, strict=True))):
        if PARAMETER in own and not argument.uses and argument not in results:
            name = own[NAME]
            assert isinstance(name, StringAttr)
            del parameters[name.data]
            del kept[argument.index]
            block.erase_arg(argument)
    block.add_ops([*ops, ReturnOp(*results)])
    function = FuncOp(
        "main",
        (list(block.arg_types), [result.type for result in results]),
        Region(block),
        arg_attrs=ArrayAttr([DictionaryAttr(own) for own in kept]),
        res_attrs=ArrayAttr([DictionaryAttr({NAME: StringAttr(n)}) for n in names]),
    )
    function.location = place
    return function
