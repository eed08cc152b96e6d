"""Modules for tests that change nothing: parsed once, also for all mutants."""

from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import tensorplan
from tensorplan.frontends.mlir_text import parse_module


@cache
def parsed(text: str) -> ModuleOp:
    """The module, as if it were in `test.mlir`."""
    return parse_module(text, "test.mlir", tensorplan.context())


def function(text: str) -> FuncOp:
    """The module's only function."""
    (func,) = (op for op in parsed(text).ops if isinstance(op, FuncOp))
    return func
