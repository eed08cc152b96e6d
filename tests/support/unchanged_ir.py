"""Cached modules for tests that do not modify them. Mutants share the cache, too."""

from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import tensorplan
from tensorplan.frontends.mlir_text import parse_module


@cache
def parsed(text: str) -> ModuleOp:
    """The module, with source locations in `test.mlir`."""
    return parse_module(text, "test.mlir", tensorplan.context())


def function(text: str) -> FuncOp:
    """The only function of the module."""
    (func,) = (op for op in parsed(text).ops if isinstance(op, FuncOp))
    return func
