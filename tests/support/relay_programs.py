"""Parses the language in which vectors of TVM Relay describe their programs.

    y2=exp(y[1]); z0=add(x[10],y2); z1..z5=exp chain; output z5; float32
    t=split(x[4,6],3,axis=1); g=t.1; e=exp(g)
    let v1=exp(x); add(v1,v1)
    a=exp(x); k=copy(a,1->2); b=exp(k)

Statements have Python's syntax, except for fields of tuples, copies between devices and
chains. A name without an assignment is a parameter, by default with ten elements. The
result is the value of the last statement, or of an `output` or `result` statement.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tensorplan.planning.baselines.nnvm import Entry, Graph, Node, Tensor

_DTYPES = r"float16|float32|float64|int8|int32|int64|uint8|bool"

UPSTREAM = {
    "CollectDeviceInfo": """
        add=add(x,y); copy1=copy(add,1->2); sqrt=sqrt(copy1); copy3=copy(sqrt,2->8);
        copy2=copy(add,1->4); log=log(copy2); copy4=copy(log,4->8);
        subtract=subtract(copy3,copy4); exp=exp(subtract)""",
}
"""Programs in TVM's sources that descriptions of vectors refer to by name."""


@dataclass(eq=False)
class Value:
    """A parameter, or the result of an operation, with one or more fields."""

    shape: tuple[int | None, ...]
    dtype: str = "float32"
    fields: int = 1
    op: str = ""  # empty for parameters
    inputs: "Sequence[tuple[Value, int]]" = ()
    device: int = 0


Entries = list[tuple[Value, int]]


@dataclass
class Program:
    """The values of a program by name, and its results."""

    visited: Sequence[str] = ()
    """Names in the order in which Relay visits them, if the vector has it."""
    reshapes_in_place: bool = False
    dtype: str = "float32"
    names: dict[str, Entries] = field(default_factory=dict[str, Entries])
    results: Entries = field(default_factory=list[tuple[Value, int]])
    result_names: Sequence[str] = ()
    tuples: int = 0

    @property
    def folded(self) -> dict[str, bool]:
        """Maps each name of a value, and each result that is only a reshape in place of
        another value, to whether it is the latter."""
        seen: set[Value] = set()
        folded: dict[str, bool] = {}
        for name in sorted(self.names, key=lambda n: n not in self.parameters):
            value, _ = self.names[name][0]
            if value not in seen or name in self.result_names:
                folded[name] = value in seen
            seen.add(value)
        return folded

    @property
    def parameters(self) -> list[str]:
        found = [n for n, entries in self.names.items() if not entries[0][0].op]
        known = [n for n in self.visited if n in found]
        return [*known, *(n for n in found if n not in known)]

    def order(self) -> list[Value]:
        """Parameters, then operations in Relay's order of visits (post-order)."""
        seen: dict[Value, None] = {self.names[n][0][0]: None for n in self.parameters}

        def visit(value: Value) -> None:
            if value not in seen:
                for source, _ in value.inputs:
                    visit(source)
                seen[value] = None

        for value, _ in self.results:
            visit(value)
        return list(seen)

    def graph(self) -> tuple[Graph, dict[Value, int]]:
        """The graph that planners read, and the index of the node of each value."""
        place = {value: n for n, value in enumerate(self.order())}
        nodes = [
            Node(
                str(n),
                [Tensor(known(value.shape), value.dtype)] * value.fields,
                [Entry(place[source], output) for source, output in value.inputs],
                is_variable=not value.op,
                device=value.device,
            )
            for value, n in place.items()
        ]
        return Graph(nodes, [Entry(place[v], k) for v, k in self.results]), place

    # Reading

    def read(self, text: str) -> "Program":
        text = re.sub(r"\s+", " ", text).strip()
        if dtype := re.search(rf"(?:^|; )({_DTYPES})$", text):
            self.dtype = dtype[1]
            text = text[: dtype.start()]
        for statement in text.split(";"):
            if statement.strip():
                self._statement(statement.strip())
        while self.tuples + max(len(self.names), len(self.order())) < len(self.visited):
            # The description omits a chain of operations.
            name = next(n for n in self.visited if n not in self.names)
            self.names[name] = self.results = self._call("exp", self.results, [])
        self._spread_devices()
        return self

    def _statement(self, text: str) -> None:
        if text.startswith("if "):
            raise ValueError("a branch is no part of our graph")
        if found := re.fullmatch(r"(\w+?)(\d+)\.\.\w+?(\d+) ?= ?(\w+) chain(.*)", text):
            stem, first, last, op, over = found.groups()
            if source := over.strip().removeprefix("over ").strip():
                self.results = self._read(source)
            for number in range(int(first), int(last) + 1):
                self.results = self._call(op, self.results, [])
                self.names[f"{stem}{number}"] = self.results
        elif found := re.fullmatch(r"(?:output|result) (.*)", text):
            self.results = self._read(found[1])
            self.result_names = re.findall(r"[a-zA-Z_]\w*", found[1])
        elif found := re.fullmatch(r"(\w+) (?:is )?unused", text):
            self._parameter(found[1])
        elif found := re.fullmatch(rf"(\w+) ({_DTYPES})(\[.*\])?", text):
            self.dtype = found[2]
            self.results = self._read(found[1] + (found[3] or ""))
        elif found := re.fullmatch(r"(?:let )?(\w+) ?= ?(.*)", text):
            self.results = self.names[found[1]] = self._read(found[2])
        else:
            self.results = self._read(text)

    def _read(self, text: str) -> Entries:
        text = re.sub(r"(\d+) ?-> ?(\d+)", r"(\1,\2)", text.replace("?", "None"))
        text = re.sub(r"\b([a-zA-Z]\w*)\.(\d+)", r"_field(\1,\2)", text)
        return self._value(ast.parse(text, mode="eval").body)

    def _value(self, expression: ast.expr) -> Entries:
        match expression:
            case ast.Name(name):
                return self._parameter(name)
            case ast.Subscript(ast.Name(name), shape) if name not in self.names:
                return self._parameter(name, _numbers(shape))
            case ast.Subscript(inner, shape):
                entries = self._value(inner)
                entries[0][0].shape = _numbers(shape)
                return entries
            case ast.Tuple(fields):
                self.tuples += 1
                return [e for field in fields for e in self._value(field)]
            case ast.Call(ast.Name("_field"), [value, ast.Constant(index)]):
                return [self._value(value)[int(str(index))]]
            case ast.Call(ast.Name("copy"), [value, devices]):
                (source, output), *_ = self._value(value)
                source.device, target = _devices(devices)
                copied = self._call("copy", [(source, output)], [])
                copied[0][0].device = target
                return copied
            case ast.Call(ast.Name(op), arguments, keywords):
                return self._operation(op, arguments, keywords)
            case _:
                raise ValueError(f"{ast.unparse(expression)} is no value of a program")

    def _parameter(self, name: str, shape: tuple[int | None, ...] = (10,)) -> Entries:
        if name not in self.names:
            self.names[name] = [(Value(shape, self.dtype), 0)]
        return self.names[name]

    def _operation(
        self, op: str, arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> Entries:
        inputs: Entries = []
        numbers: list[Any] = []
        for argument in arguments:
            match argument:
                case ast.Constant(number):
                    numbers.append(number)
                case ast.List() | ast.Tuple() if _is_literal(argument):
                    numbers.append(_numbers(argument))
                case ast.Name("keepdims" | "None"):
                    numbers.append(argument.id)
                case _:
                    inputs += self._value(argument)
        numbers += [
            k.value.value for k in keywords if isinstance(k.value, ast.Constant)
        ]
        return self._call(op, inputs, numbers)

    def _call(self, op: str, inputs: Entries, numbers: Sequence[Any]) -> Entries:
        if op == "reshape" and self.reshapes_in_place:
            return inputs
        shapes = [value.shape for value, _ in inputs] or [(10,)]
        shape = max(shapes, key=lambda s: _elements(s))
        dtype = inputs[0][0].dtype if inputs else self.dtype
        fields = 1
        match op, [n for n in numbers if n != "keepdims"]:
            case "split", [int(fields), *rest]:
                axis = rest[0] if rest else 0
                shape = tuple(
                    (n or 0) // fields if k == axis else n for k, n in enumerate(shape)
                )
            case "tile", [int(times)]:
                shape = (*shape[:-1], (shape[-1] or 0) * times)
            case (("broadcast_to" | "reshape"), [tuple(new)]):
                shape = new
            case (("sum" | "max" | "mean"), _):
                shape = (1,) * len(shape) if "keepdims" in numbers else (1,)
            case _:
                pass
        value = Value(shape, dtype, fields, op, inputs)
        return [(value, k) for k in range(fields)]

    def _spread_devices(self) -> None:
        """Propagates the devices of copies to users, then back to operands."""
        order = self.order()
        for value in order:
            known = [source.device for source, _ in value.inputs if source.device]
            value.device = value.device or (known[0] if known else 0)
        for value in reversed(order):
            for source, _ in value.inputs:
                source.device = source.device or value.device


def program_of(vector: Mapping[str, Any], others: Mapping[str, Any]) -> Program:
    """The program of `vector`, which may refer to a vector of `others` by name.

    Raises `ValueError` if a graph cannot represent the program.
    """
    text, expected = vector["program"], vector["expected"]
    visited: Sequence[str] = expected.get("visit_order", ())
    if referred := re.fullmatch(r"as (\w+)", text):
        other = others[referred[1]]
        text = other["program"]
        visited = other["expected"].get("visit_order", ())
    for name, known_text in UPSTREAM.items():
        if name in vector["description"] and text.startswith("see description"):
            text = known_text
    is_told_there = "nop_nodes" in expected
    if is_told_there:
        text = f"{'; '.join(_told(vector['description']))}; {text}"
    return Program(visited, is_told_there).read(text)


def _told(description: str) -> Iterator[str]:
    """Yields the statements in a description, which also names fused operations."""
    if found := re.search(r"(\w+) (\[[\d,]+\])", description):
        yield found[1] + found[2].replace(" ", "")
    fused = r"(\w+) ?= ?(\w+\((?:[^()]|\([^()]*\))*\))(?: and \w+ fused as (\w+))?"
    for name, value, other in re.findall(fused, description):
        yield f"{other or name}={value}"


class Annotated(NamedTuple):
    """An operation of a program in which some operations are annotated with devices."""

    op: str
    inputs: Sequence[str]  # names of parameters, or of operations (`%0`)
    device: int | None


def annotated(vector: Mapping[str, Any]) -> dict[str, Annotated]:
    """The operations of a vector by name, in order.

    If the vector has the text that Relay printed, with copies, operands are read from
    it, otherwise from the program. The program has the devices:

        conv(data1,w)/2, add/1; sub1,sub2 unannotated
    """
    text = vector["expected"].get("text")
    devices = re.findall(r"(\w+)(\([^()]*\))?/(\d+)", vector["program"])
    if text is None:
        return _told_operations(devices)
    operations = _written_operations(text)
    left = list(operations)
    for op, _, device in devices:
        name = next(n for n in left if operations[n].op.startswith(op))
        left = left[left.index(name) + 1 :]
        operations[name] = operations[name]._replace(device=int(device))
    return operations


def _told_operations(devices: Sequence[Sequence[str]]) -> dict[str, Annotated]:
    """The operations of a program; one without arguments reads all unread results."""
    operations: dict[str, Annotated] = {}
    last: dict[str, str] = {}  # name by operation
    unread: list[str] = []
    for op, arguments, device in devices:
        names = [n.strip() for n in arguments.strip("()").split(",")]
        inputs = [last.get(n, n) for n in names] if arguments else list(unread)
        name = f"%{len(operations)}"
        operations[name] = Annotated(op, inputs, int(device))
        last[op] = name
        unread = [n for n in unread if n not in inputs] + [name]
    return operations


def _written_operations(text: Sequence[str]) -> dict[str, Annotated]:
    operations: dict[str, Annotated] = {}
    source: dict[str, str] = {}  # the operand of each copy
    for line in text:
        found = re.match(r"(?:(%\d+) = )?([\w.]+)\((.*?)\)(?: /\*|;|$)", line)
        if not found:
            continue  # a tuple of results
        name, op, arguments = found.groups()
        inputs = [source.get(n, n) for n in map(str, re.findall(r"%\w+", arguments))]
        if op == "device_copy" and name:
            source[name] = inputs[0]
        else:
            operations[name or "%result"] = Annotated(op, inputs, None)
    return operations


def known(shape: Sequence[int | None]) -> tuple[int, ...] | None:
    sizes = [size for size in shape if size is not None]
    return tuple(sizes) if len(sizes) == len(shape) else None


def _elements(shape: Sequence[int | None]) -> int:
    count = 1
    for size in shape:
        count *= size or 0
    return count


def _is_literal(expression: ast.expr) -> bool:
    return all(isinstance(n, ast.Constant) for n in getattr(expression, "elts", [None]))


def _numbers(expression: ast.expr) -> tuple[int | None, ...]:
    value = ast.literal_eval(expression)
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _devices(expression: ast.expr) -> tuple[int, int]:
    source, target = ast.literal_eval(expression)
    return source, target
