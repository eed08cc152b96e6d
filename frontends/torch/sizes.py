"""The sizes of an exported program: integers, or expressions over named sizes."""

from typing import Any

from xdsl.dialects.func import FuncOp

from ...dialects.sizes.dims import REQUIRES, Dims, DimsAttr
from ...dialects.sizes.symbolic import Size, floordiv, maximum, minimum, mod, symbol
from ...dialects.tgraph.base import Shape
from ..unsupported import Unsupported


class Sizes:
    """Converts PyTorch's sizes. A symbolic size has the name of its `Dim` in `dynamic`,
    or else PyTorch's name."""

    def __init__(self, program: Any, dynamic: Any = None):
        self._names: dict[str, str] = {}
        self._limits: dict[str, Any] = program.range_constraints
        self._name(program, dynamic)

    def _name(self, program: Any, dynamic: Any) -> None:
        """Maps PyTorch's symbols to the names of their `Dim`s, by their positions in
        the inputs. Does nothing if inputs are nested."""
        specs: list[Any] = []
        if dynamic:
            specs = list(dynamic.values() if hasattr(dynamic, "values") else dynamic)
        names = {
            spec.arg.name
            for spec in program.graph_signature.input_specs
            if spec.kind.name == "USER_INPUT"
        }
        nodes = [node for node in program.graph.nodes if node.name in names]
        if len(specs) != len(nodes):
            return  # nested inputs
        for node, spec in zip(nodes, specs, strict=True):
            dims: Any = spec or {}
            items: Any = dims.items() if hasattr(dims, "items") else enumerate(dims)
            for dimension, dim in items:
                size = node.meta["val"].shape[dimension]
                expression = getattr(getattr(size, "node", None), "expr", None)
                if getattr(expression, "is_Symbol", False) and hasattr(dim, "__name__"):
                    self._names[str(expression)] = dim.__name__

    def shape(self, example: Any) -> Shape:
        return tuple(self.of(size) for size in example.shape)

    def of(self, size: Any) -> Any:
        """Converts a size: an integer, or a `SymInt` to a symbolic size."""
        return size if isinstance(size, int) else self._expression(size.node.expr)

    def _expression(self, expression: Any) -> Any:
        """Converts an expression of sympy."""
        kind = type(expression).__name__
        if expression.is_Integer:
            return int(expression)
        if expression.is_Symbol:
            name = str(expression)
            return symbol(self._names.get(name, name))
        parts: list[Any] = [self._expression(part) for part in expression.args]
        match kind:
            case "Add":
                return sum(parts[1:], parts[0])
            case "Mul":
                product: Any = 1
                for part in parts:
                    product = product * part
                return product
            case "Pow" if isinstance(parts[1], int) and parts[1] > 0:
                power: Any = 1
                for _ in range(parts[1]):
                    power = power * parts[0]
                return power
            case "FloorDiv":
                return floordiv(*parts)
            case "Mod" | "PythonMod":
                return mod(*parts)
            case "Max":
                return maximum(*parts)
            case "Min":
                return minimum(*parts)
            case _:
                raise Unsupported(f"with a size {expression}")

    def call(self, node: Any) -> Size | None:
        """The size that the call `node` computes; None for calls that compute none."""
        example = node.meta.get("val")
        if isinstance(example, int) and not isinstance(example, bool):
            return example
        if type(example).__name__ == "SymInt":
            return self.of(example)
        return None

    def require(self, function: FuncOp) -> None:
        """Sets the attribute `REQUIRES` of `function` to the bounds of sizes with which
        the program was exported."""
        demands: list[Any] = []
        for name, limits in self._limits.items():
            size: Any = self._expression(name)
            if isinstance(size, int):
                continue
            if (least := _bound(limits.lower)) is not None and least > 1:
                demands.append(size - least)
            if (most := _bound(limits.upper)) is not None:
                demands.append(most - size)
        if demands:
            function.attributes[REQUIRES] = DimsAttr(Dims(tuple(demands)))


def _bound(limit: Any) -> int | None:
    """A bound of a size; None if it is infinite."""
    return int(limit) if limit.is_Integer and limit < 1 << 40 else None
