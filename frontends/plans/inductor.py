"""Reads plans of PyTorch Inductor from the code that it generates for CPUs and GPUs.

    _, [code] = torch._inductor.utils.run_and_get_code(compiled, x)
    Path("net.output_code.py").write_text(code)

A training step has two files. `net.forward.output_code.py` and, beside it,
`net.backward.output_code.py` are one plan: the last results of the forward pass are the
first arguments of the backward pass, and live until it deletes them.

The code states when each buffer is allocated, reused and deleted, the operands of each
kernel, and, with `torch._inductor.config.memory_planning`, the offsets in pools. It is
parsed, but never run. It does not contain the addresses of allocations and pools.
tensorplan's planner assigns addresses with all allocations known, so the bytes of a
device are those that are allocated at the same time. Code that is not understood is
counted, and may change every tensor that it names.
"""

import ast
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from warnings import catch_warnings

from ...planning import Buffer, Problem, round_up, solve
from ...support.foreign_plan import (
    Access,
    ForeignPlan,
    ForeignPlanError,
    Memory,
    Region,
    Step,
    Unknown,
    Value,
)
from .inductor_code import (
    Code,
    Shape,
    SizeOfData,
    dtype_of,
    number_in,
    size_of,
    text_of,
)
from .inductor_kernels import READ, UPDATED, WRITTEN, Use

ENDINGS = ("output_code.py",)
_FORWARD, _BACKWARD = ".forward.output_code.py", ".backward.output_code.py"

ASSUMPTIONS = (
    "a kernel reads `in_ptr`, writes `out_ptr`, and updates `in_out_ptr` and what it "
    "says that it mutates",
    "a kernel that updates a buffer which nothing has written takes over its bytes",
    "a kernel that gets the same buffer twice orders its own reads and writes",
    "other functions read their operands and write `out`, or what they return",
    "what they return has elements of the type of their first operand",
    "allocations lie as close together as a planner that knows all of them puts them",
)
_CALLER = "the caller keeps the results of the forward pass, and no saved tensor"
_DONATED = "arguments whose bytes are reused are donated"
_EXAMPLE = "sizes are those of the example arguments in the code"

_CPU = "heap"

_CHECKS = ("assert_size_stride", "assert_alignment")
_VIEWS = ("reinterpret_tensor", "copy_misaligned")
_GUARD = re.compile(r"torch\.(\w+)\.(?:_DeviceGuard|device)\((\d+)\)")
_OPERATORS = re.compile(
    r"(extern_kernels|aten|inductor_ops|_quantized|torch\.ops\."
    r"(aten|prims|inductor|mkldnn|mkl|onednn|_?quantized|quantized_decomposed|rngprims))\."
)
_IN_PLACE = re.compile(r"[a-z\d]_(\.\w+)?$")


class _Granule(NamedTuple):
    """The alignment and the granularity of allocations in PyTorch, in bytes."""

    alignment: int
    size: int


_ON_CPU, _ON_GPU = _Granule(64, 1), _Granule(512, 512)


class _Tensor(NamedTuple):
    """The tensor that a name refers to."""

    block: str  # the argument or the allocation that holds its bytes
    group: str  # the first name of the same contents; empty if unknown
    region: Region
    dtype: str
    elements: int


_NOTHING = _Tensor("", "", Region("", 0, 0), "float32", 0)


def _other_half(path: Path) -> Path | None:
    """The other file of a training step; None if there is none."""
    for own, other in ((_FORWARD, _BACKWARD), (_BACKWARD, _FORWARD)):
        beside = path.with_name(path.name.removesuffix(own) + other)
        if path.name.endswith(own) and beside.is_file():
            return beside
    return None


def first_file(path: Path) -> Path:
    """The first file of the plan in `path`."""
    return max(path, _other_half(path) or path)  # `forward` comes after `backward`


def read_file(path: Path) -> ForeignPlan:
    """The plan in a file, or in both files of a training step.

    Raises `ForeignPlanError` for a file of another kind, and `OSError`.
    """
    path = first_file(path)
    parts = [_parts(each) for each in (path, _other_half(path)) if each]
    try:
        first = _Reader(parts[0][0], None)
        first.run(parts)
        reader = _Reader(parts[0][0], first.placed())
        reader.run(parts)
        return reader.plan()
    except (LookupError, ValueError, TypeError, RecursionError, MemoryError):
        raise ForeignPlanError(
            "this is not Inductor's output code", str(path)
        ) from None


def _parts(path: Path) -> tuple[Code, Sequence[ast.stmt]]:
    """The code in a file, and the body of its function `call`."""
    try:
        text = path.read_text()
        with catch_warnings(action="ignore"):  # Python warns of escapes in strings
            module = ast.parse(text)
        [call] = [
            item
            for item in ast.walk(module)
            if isinstance(item, ast.FunctionDef) and item.name == "call"
        ]
        return Code(module, text.splitlines(), path), call.body
    except (
        SyntaxError,
        LookupError,
        ValueError,
        TypeError,
        RecursionError,
        MemoryError,
    ):
        raise ForeignPlanError(
            "this is not Inductor's output code", str(path)
        ) from None


class _Reader:
    """Interprets the statements, with the offsets of allocations once known."""

    def __init__(self, code: Code, offsets: Mapping[str, int] | None):
        self.codes = [code]
        self.code = code
        self.offsets = offsets
        self.device = "cpu"
        self.defined = {"self", "args"}
        self.names: dict[str, _Tensor] = {}
        """The tensors by name in the current function, with items such as `buf5[0]`."""
        self.callers: list[dict[str, _Tensor]] = []
        """The names of the functions that called it."""
        self.groups: dict[str, _Tensor] = {}
        self.before: dict[str, str] = {}
        """The group whose bytes a group has taken over."""
        self.values: dict[str, Value] = {}
        """The value that each group holds since its last write."""
        self.versions: Counter[str] = Counter()
        self.memories: dict[str, Memory] = {}
        self.heaps: dict[str, _Heap] = {}
        self.steps: list[Step] = []
        self.given: dict[str, Value] = {}
        self.returned: list[_Tensor] = []
        self.results: list[_Tensor] = []
        """The results of the forward pass if a backward pass follows."""
        self.not_understood: Counter[str] = Counter()

    def plan(self) -> ForeignPlan:
        if not self.steps:
            raise ValueError
        results = [*self.results, *self.returned]
        kept = [
            value
            for tensor in results
            for value in self._values_or_unwritten(tensor.group)
        ]
        donated = self._donated()
        kept += [self.values[name] for name in self.given if name not in donated]
        heaps = {n: Memory(heap.size, "temporary") for n, heap in self.heaps.items()}
        assumptions = [*ASSUMPTIONS]
        if donated:
            assumptions.append(_DONATED)
        if any(code.numbers for code in self.codes):
            assumptions.append(_EXAMPLE)
        if len(self.codes) > 1:
            assumptions.append(_CALLER)
        return ForeignPlan(
            self.codes[0].path.name,
            {**self.memories, **heaps},
            self.steps,
            list(self.given.values()),
            list(dict.fromkeys(kept)),
            assumptions,
            self.not_understood,
        )

    def placed(self) -> Mapping[str, int]:
        """The offsets of the allocations, computed with all of them known."""
        lent = self.given.keys() - self._donated()
        return {
            name: offset
            for heap in self.heaps.values()
            for name, offset in heap.placed(lent)
        }

    def _donated(self) -> Set[str]:
        """The arguments whose bytes another tensor takes over.

        They count as allocations, which are freed when no name refers to them.
        """
        return self.given.keys() & set(self.before.values())

    def run(self, parts: Sequence[tuple[Code, Sequence[ast.stmt]]]) -> None:
        """Interprets the functions of several files in order."""
        for number, (code, body) in enumerate(parts):
            if number:
                self._follow(code)
            self.take(body)

    def _follow(self, code: Code) -> None:
        """Continues with the backward pass; the caller holds the results."""
        self.codes.append(code)
        self.code, self.device, self.defined = code, "cpu", {"self", "args"}
        results = [tensor for tensor in self.returned if tensor.group]
        self.names = {f"result {n}": tensor for n, tensor in enumerate(results)}
        self._free()

    def _saved(self, names: Sequence[str]) -> dict[str, _Tensor]:
        """The last results of the forward pass, which the backward pass gets.

        The gradients of the other results follow them.
        """
        results, code = [*self.names.values()], self.code
        names = [n for n in names if n in code.shapes and not n.startswith("tangents")]
        count = len(results) - len(names)
        if count < 0 or any(
            tensor.region.size < size_of(code.shapes[name]._replace(dtype=tensor.dtype))
            for name, tensor in zip(names, results[count:], strict=True)
        ):
            raise ForeignPlanError(
                "this code belongs to a different forward pass than "
                f"{self.codes[0].path.name}",
                str(code.path),
            )
        self.results = results[:count]
        return dict(zip(names, results[count:], strict=True))

    def take(self, body: Sequence[ast.stmt]) -> None:
        """Interprets statements in order."""
        for item in body:
            self._define(item)
            try:
                self._take(item)
            except (LookupError, ValueError, TypeError):
                text = self.code.lines[item.lineno - 1].strip()
                raise self.code.refusal(text, item) from None

    def _define(self, item: ast.stmt) -> None:
        """Tracks which names are defined, and rejects names without a value."""
        if isinstance(item, ast.With):
            return  # its statements are checked separately
        names = [node for node in ast.walk(item) if isinstance(node, ast.Name)]
        stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        if isinstance(item, (ast.Assign, ast.Expr, ast.Return, ast.Delete)):
            for name in names:
                is_known = name.id in self.defined or name.id in self.code.globals
                if not is_known and name.id not in stored:
                    raise self.code.refusal(f"{name.id} has no value here", name)
        self.defined |= stored
        if isinstance(item, ast.Delete):
            self.defined -= {name.id for name in names}

    def _take(self, item: ast.stmt) -> None:
        match item:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name("args")):
                self._arguments([text_of(name) for name in names])
            case ast.Assign(
                targets=[ast.Tuple(elts=names)],
                value=ast.Call(func=function, args=[ast.Name(given)]),
            ) if (body := self.code.functions.get(text_of(function))) is not None:
                self._enter(body, given, [text_of(name) for name in names])
            case ast.Assign(targets=[ast.Name(name)], value=value):
                try:
                    self._assign(name, value, item)
                except SizeOfData:
                    self.not_understood["sizes that data decides"] += 1
            case ast.Delete(targets=targets):
                self._delete([text_of(target) for target in targets])
            case ast.Expr(value=ast.Call() as call):
                self._call(call, item)
            case ast.With(items=contexts, body=inner):
                self._within(contexts, inner)
            case ast.Return(value=value) if value is not None:
                items = value.elts if isinstance(value, ast.Tuple) else [value]
                self.returned = [self._tensor(each) for each in items]
            case ast.Pass():
                pass
            case _:
                self._unknown("statements of other kinds", item, item)

    def _within(self, contexts: Sequence[ast.withitem], inner: list[ast.stmt]) -> None:
        outer = self.device
        for context in contexts:
            text = text_of(context.context_expr)
            if found := _GUARD.match(text):
                self.device = f"{found[1]}:{found[2]}"
            if ".stream(" in text:
                self.not_understood["streams besides the first one"] += 1
        self.take(inner)
        self.device = outer

    def _arguments(self, names: Sequence[str]) -> None:
        """Defines arguments, each in its own memory, which the caller holds."""
        saved: dict[str, _Tensor] = {}
        if len(self.codes) > 1 and not self.callers:
            saved = self._saved(names)
            self.names = {f"result {n}": x for n, x in enumerate(self.results)} | saved
        for number, name in enumerate(names):
            if name in saved:
                continue
            if self.callers:
                if (tensor := self.names.pop(f"args[{number}]", None)) is not None:
                    self.names[name] = tensor
            elif name in self.code.shapes:
                shape = self.code.shapes[name]
                if self.offsets is None or name in self.offsets:
                    self._allocate(name, shape, self.code.devices.get(name, ""))
                else:
                    size = size_of(shape)
                    self.memories[name] = Memory(size, "argument")
                    self._name(name, name, Region(name, 0, size), shape)
                region = self.groups[name].region
                self.given[name] = Value(name, region, shape.dtype, name)
                self.values[name] = self.given[name]
            elif name not in self.code.numbers:
                self.not_understood["arguments without a shape"] += 1

    def _enter(
        self, body: Sequence[ast.stmt], given: str, results: Sequence[str]
    ) -> None:
        """Interprets a function that is a part of the program and gets a list."""
        passed = {
            f"args{key.removeprefix(given)}": self.names.pop(key)
            for key in [*self.names]
            if key.startswith(f"{given}[")
        }
        self.callers.append(self.names)
        defined = self.defined
        self.names, self.defined = passed, {"args"}
        self.take(body)
        self.names, self.defined = self.callers.pop(), defined
        for name, tensor in zip(results, self.returned, strict=True):
            self.names[name] = tensor
        self._free()

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            for key in [*self.names]:
                if key == name or key.startswith(f"{name}["):
                    del self.names[key]
        self._free()

    def _free(self) -> None:
        """Frees the blocks to which no name refers."""
        scopes = [self.names, *self.callers]
        held = {tensor.block for scope in scopes for tensor in scope.values()}
        for heap in self.heaps.values():
            heap.keep(held)

    def _name(self, name: str, block: str, region: Region, shape: Shape) -> None:
        """Defines a new group; if the name is taken, the group gets another name."""
        group = self._unused(name)
        tensor = _Tensor(block, group, region, shape.dtype, shape.elements)
        self.names[name] = self.groups[group] = tensor

    def _unused(self, name: str) -> str:
        while name in self.groups:
            name += "'"
        return name

    def _assign(self, name: str, value: ast.expr, item: ast.stmt) -> None:
        match value:
            case ast.Name(old):
                self._alias(name, self.names.get(old, _NOTHING), item)
            case ast.Call(func=ast.Name(function)) if function in _VIEWS:
                self._alias(name, self._tensor(value), item)
            case ast.Call(func=ast.Name("alloc_from_pool"), args=arguments):
                pool, at, dtype, sizes, strides = arguments
                block = self.names[text_of(pool)]
                shape = self.code.shape(sizes, strides, dtype_of(dtype))
                memory, start, _ = block.region
                start += number_in(at, self.code.numbers)
                self._name(
                    name, block.block, Region(memory, start, size_of(shape)), shape
                )
            case ast.Call(func=ast.Name(function)) if function.startswith(
                "empty_strided"
            ):
                self._empty(name, function.removeprefix("empty_strided"), value)
            case ast.Call():
                self._call(value, item, name)
            case ast.Subscript(value=ast.Name()):
                if (tensor := self.names.get(text_of(value))) is not None:
                    self.names[name] = tensor
            case ast.List(elts=elements):
                for number, element in enumerate(elements):
                    if (tensor := self._tensor(element)).group:
                        self.names[f"{name}[{number}]"] = tensor
            case _:
                if name not in self.code.numbers:
                    self._unknown("expressions of other kinds", value, item)

    def _alias(self, name: str, old: _Tensor, item: ast.stmt) -> None:
        """Defines another name for a tensor, or a new tensor in the same bytes."""
        line = self.code.lines[(item.end_lineno or item.lineno) - 1]
        if not old.group:
            return
        if line.endswith(("# reuse", "# alloc")):
            whole = self.groups[old.group]
            shape = Shape(0, whole.elements, whole.dtype)
            self._name(name, old.block, whole.region, shape)
            self.before[self.names[name].group] = old.group
        else:
            self.names[name] = old

    def _empty(self, name: str, device: str, call: ast.Call) -> None:
        """Interprets `empty_strided_cuda(sizes, strides, dtype)`; older versions pass
        the device as a keyword.
        """
        keywords = {k.arg: k.value for k in call.keywords}
        sizes, strides, *rest = call.args
        dtype = rest[0] if rest else keywords["dtype"]
        if "device" in keywords:
            device = str(ast.literal_eval(keywords["device"]))
        shape = self.code.shape(sizes, strides, dtype_of(dtype))
        self._allocate(name, shape, device.removeprefix("_"))

    def _allocate(self, name: str, shape: Shape, device: str = "") -> None:
        """Allocates on a device; the number is the guard's or 0 if it is missing."""
        if not device or (":" not in device and self.device.startswith(device)):
            device = self.device
        is_cpu = device.startswith("cpu")
        memory = _CPU if is_cpu else device if ":" in device else f"{device}:0"
        if memory not in self.heaps:
            granule = _ON_CPU if is_cpu else _ON_GPU
            self.heaps[memory] = _Heap(granule, self.offsets or {})
        size = size_of(shape)
        block = self._unused(name)
        at = self.heaps[memory].allocate(block, size)
        self._name(name, block, Region(memory, at, size), shape)

    def _call(self, call: ast.Call, item: ast.stmt, result: str = "") -> None:
        function = text_of(call.func)
        if function in _CHECKS:
            return
        kernel = self.code.kernels.get(function.removesuffix(".run"))
        if kernel is not None:
            operands = self._pointers(call, kernel)
            self._step(operands, function.removesuffix(".run"), item, result)
        elif self._is_operator(call):
            self._step(self._operands(call), function, item, result)
        else:
            what = "kernels of other kinds" if function.endswith(".run") else "calls"
            self._unknown(what, call, item, result)

    def _is_operator(self, call: ast.Call) -> bool:
        """Whether the function is PyTorch's, whose name says what it updates."""
        match call.func:
            case ast.Attribute(value=ast.Name(name)) if name in self.names:
                return True
            case _:
                return _OPERATORS.match(text_of(call.func)) is not None

    def _pointers(
        self, call: ast.Call, uses: Sequence[Use]
    ) -> Sequence[tuple[_Tensor, Use]]:
        """The operands of a kernel, which may read its writes by another pointer."""
        operands = [
            (self._tensor(argument), use)
            for argument, use in zip(call.args, uses, strict=False)
        ]
        written = {tensor.group for tensor, use in operands if use.writes}
        return [
            (tensor, UPDATED if use == READ and tensor.group in written else use)
            for tensor, use in operands
        ]

    def _operands(self, call: ast.Call) -> Sequence[tuple[_Tensor, Use]]:
        """The operands of an operator; a name that ends with `_` updates the first."""
        outs = [k.value for k in call.keywords if k.arg == "out"]
        rest = [k.value for k in call.keywords if k.arg != "out"]
        expressions = [*call.args, *rest]
        if isinstance(call.func, ast.Attribute):
            expressions.insert(0, call.func.value)
        read = list(self._named(*expressions))
        found = [(tensor, READ) for tensor in read]
        if read and not outs and _IN_PLACE.search(text_of(call.func)):
            found[0] = read[0], UPDATED
        return [*found, *((self._tensor(out), WRITTEN) for out in outs)]

    def _unknown(
        self, what: str, node: ast.AST, item: ast.stmt, result: str = ""
    ) -> None:
        """Counts an expression that may return or change tensors."""
        tensors = list(self._named(node))
        if tensors or result in self.code.shapes or self.code.parts(result):
            self.not_understood[what] += 1
            self._step([(tensor, UPDATED) for tensor in tensors], "", item, result)

    def _named(self, *nodes: ast.AST) -> Iterator[_Tensor]:
        """The tensors that occur in expressions, in order."""
        for node in nodes:
            match node:
                case ast.Name() | ast.Subscript(value=ast.Name()):
                    if (tensor := self.names.get(text_of(node))) is not None:
                        yield tensor
                case ast.Call(func=ast.Name("reinterpret_tensor")):
                    yield self._tensor(node)
                case _:
                    yield from self._named(*ast.iter_child_nodes(node))

    def _step(
        self,
        operands: Sequence[tuple[_Tensor, Use]],
        function: str,
        item: ast.stmt,
        result: str,
    ) -> None:
        """Adds the step of a call. Writing a part of a tensor keeps its other parts."""
        operands = [(tensor, use) for tensor, use in operands if tensor.group]
        written = dict.fromkeys(t.group for t, use in operands if use.writes)
        reads: list[Value] = []
        updated: set[Region] = set()
        for tensor, use in operands:
            group, whole = tensor.group, self.groups[tensor.group]
            if use.must_hold:
                reads += self._values_or_unwritten(group, takes_over=use.writes)
            elif use.reads or tensor.elements < whole.elements:
                reads += self._held(group)
            else:
                continue
            if use.writes:
                updated.add(whole.region)
        reads = list(dict.fromkeys(reads))
        if result:
            dtype = next((tensor.dtype for tensor, _ in operands), "float32")
            written |= dict.fromkeys(self._results(result, dtype, function))
        if not reads and not written:
            return
        place = f"{self.code.path.name}:{item.lineno}"
        origin = self.code.origin(item.lineno)
        writes = [self._write(group, origin, place) for group in written]

        def access(read: int, write: int) -> Access:
            region = reads[read].region
            if region == writes[write].region and region in updated:
                return None
            return Unknown("the kernel may write it before it has read it")

        name = f"line {item.lineno}"
        self.steps.append(Step(name, origin or function, reads, writes, place, access))

    def _results(self, name: str, dtype: str, function: str) -> Iterator[str]:
        """The groups that a function returns: a tensor, or the items of a tuple.

        They are allocated before operands can be freed.
        """
        parts = self.code.parts(name)
        for key, part in (parts or {"": name}).items():
            shape = self.code.shapes.get(part)
            if shape is None:
                if parts or _OPERATORS.match(function):
                    self.not_understood["results of unknown size"] += 1
                continue
            self._allocate(part, shape._replace(dtype=shape.dtype or dtype))
            tensor = self.names[part]
            if parts:
                self.names[f"{name}[{key}]"] = self.names.pop(part)
            yield tensor.group

    def _held(self, group: str) -> Sequence[Value]:
        """The values in a group; before its first write, those that it replaces."""
        while group not in self.values and group in self.before:
            group = self.before[group]
        return [self.values[group]] if group in self.values else ()

    def _values_or_unwritten(
        self, group: str, *, takes_over: bool = False
    ) -> Sequence[Value]:
        """Like `_held`, but if there are none, a value that nothing has written."""
        if not group:
            return ()
        held = self._held(group) if takes_over or group in self.values else ()
        return held or [Value(group, self.groups[group].region)]

    def _write(self, group: str, origin: str, place: str) -> Value:
        """A new value, with a new name, in all bytes of a group."""
        self.versions[group] += 1
        number = self.versions[group]
        name = f"{group}#{number}" if number > 1 or group in self.given else group
        _, _, region, dtype, _ = self.groups[group]
        self.values[group] = Value(name, region, dtype, origin, place)
        return self.values[group]

    def _tensor(self, expression: ast.expr) -> _Tensor:
        """The tensor of an operand, which is a name or a view of one."""
        match expression:
            case ast.Call(
                func=ast.Name("reinterpret_tensor"), args=[base, sizes, strides, *_]
            ):
                tensor = self._tensor(base)
                with suppress(SizeOfData):
                    shape = self.code.shape(sizes, strides)
                    tensor = tensor._replace(elements=shape.elements)
                return tensor
            case ast.Name(name):
                return self.names.get(name, _NOTHING)
            case _:
                return next(self._named(expression), _NOTHING)


class _Heap:
    """The allocations of a device, with their live ranges."""

    def __init__(self, granule: _Granule, offsets: Mapping[str, int]) -> None:
        self.granule = granule
        self.offsets = offsets
        """The offsets of the allocations; empty before they are placed."""
        self.size = 0
        self._now = 0
        self._live: dict[str, tuple[int, int]] = {}
        """The size and the first step of each live allocation."""
        self._buffers: list[Buffer] = []

    def allocate(self, name: str, size: int) -> int:
        """Allocates a block; returns its offset."""
        size = round_up(size, self.granule.size)
        at = self.offsets.get(name, 0)
        self.size = max(self.size, at + size)
        self._live[name] = size, self._now
        self._now += 1
        return at

    def keep(self, names: Container[str]) -> None:
        """Frees all blocks but `names`."""
        for name in [name for name in self._live if name not in names]:
            size, begin = self._live.pop(name)
            alignment = self.granule.alignment
            self._buffers.append(Buffer(name, size, begin, self._now, alignment))
        self._now += 1

    def placed(self, others: Container[str]) -> Iterator[tuple[str, int]]:
        """The offsets of all allocations but `others`."""
        self.keep(())
        buffers = [buffer for buffer in self._buffers if buffer.id not in others]
        names = [buffer.id for buffer in buffers]
        yield from zip(names, solve(Problem(buffers)).offsets, strict=True)
