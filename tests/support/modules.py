"""Modules from text, and what passes make of them."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.passes import driver


def parse(text: str) -> ModuleOp:
    module = Parser(tensorplan.context(), text, "test.mlir").parse_module()
    module.verify()
    return module


def run(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    """The module after the passes; the original stays as it is."""
    copy = module.clone()
    driver.run(tensorplan.context(), copy, passes)
    return copy
