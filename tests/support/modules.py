"""Parses modules and runs passes on them."""

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
    """Runs `passes` on a copy of `module` and returns it."""
    copy = module.clone()
    driver.run(tensorplan.context(), copy, passes)
    return copy
