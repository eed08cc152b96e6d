"""`plan-attach-target`: describes the memories of the target, as given in a file.

    [sram]
    capacity = "256KiB"
    base = 0x2000_0000
    alignment = 8

    module attributes {dlti.target_system_spec = #dlti.target_system_spec<
      "sram" = #dlti.target_device_spec<
        "capacity" = 262144 : i64, "base" = 536870912 : i64, "alignment" = 8 : i64>>} {

The file is TOML, or JSON if its name ends in `.json`. It has a table for each memory
space; docs/how-to/target-memory.md explains the properties. `plan-memory` plans for
these memories, and `plan-check` proves that a plan fits them. plan-opt's option
`--target-memory FILE` runs this pass first.

Needs: any level.
Leaves: the same, with the attribute. Other devices of the target stay.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.diagnostics import LocatedError
from ...dialects.target_memory import describe_target, read_target


@dataclass(frozen=True)
class PlanAttachTarget(ModulePass):
    """Describes the memories of the target.

    file: the TOML or JSON file that describes them.
    """

    name = "plan-attach-target"

    file: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            target = read_target(self.file)
        except ValueError as error:  # in the file, reported like one in other input
            raise LocatedError(str(error)) from None
        describe_target(op, target)
