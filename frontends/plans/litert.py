"""Reads plans of LiteRT (TensorFlow Lite): a `.tflite` file with tensor addresses.

    interpreter.allocate_tensors()
    write_addresses(interpreter, "net.tflite")      # net.tflite.json

The file has the operations. LiteRT's interpreter places the tensors at load time, and
`write_addresses` saves their addresses. Files for TensorFlow Lite Micro may contain the
offsets (see tflite.py, which uses the same field numbers).
"""

import json
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from ...support.foreign_plan import (
    Access,
    ForeignPlan,
    ForeignPlanError,
    Forwarded,
    Memory,
    Region,
    Step,
    Unknown,
    Value,
)
from .flatbuffer import Table
from .tflite import TYPES, builtin, model_of, offsets

ENDINGS = (".tflite",)
ADDRESSES = ".json"
"""The suffix that the file with the addresses adds to the name of the model."""

ASSUMPTIONS = (
    "LiteRT's kernels read and write the tensors that they are given",
    "an elementwise kernel reads an element before it writes that one",
)

_ARENA, _STATE, _KERNELS = "arena", "state", "memory of kernels"
_DAMAGED = (
    struct.error,
    LookupError,
    ValueError,
    OverflowError,
    TypeError,
    RecursionError,
)
ALIGNMENT = 64  # bytes, of tensors in the arena

_OPERATORS = """
    add average_pool_2d concatenation conv_2d depthwise_conv_2d depth_to_space
    dequantize embedding_lookup floor fully_connected hashtable_lookup l2_normalization
    l2_pool_2d local_response_normalization logistic lsh_projection lstm max_pool_2d mul
    relu relu_n1_to_1 relu6 reshape resize_bilinear rnn softmax space_to_depth svdf tanh
    concat_embeddings skip_gram call custom embedding_lookup_sparse pad
    unidirectional_sequence_rnn gather batch_to_space_nd space_to_batch_nd transpose
    mean sub div squeeze unidirectional_sequence_lstm strided_slice
    bidirectional_sequence_rnn exp topk_v2 split log_softmax delegate
    bidirectional_sequence_lstm cast prelu maximum arg_max minimum less neg padv2
    greater greater_equal less_equal select slice sin transpose_conv sparse_to_dense
    tile expand_dims equal not_equal log sum sqrt rsqrt shape pow arg_min fake_quant
    reduce_prod reduce_max pack logical_or one_hot logical_and logical_not unpack
    reduce_min floor_div reduce_any square zeros_like fill floor_mod range
    resize_nearest_neighbor leaky_relu squared_difference mirror_pad abs split_v unique
    ceil reverse_v2 add_n gather_nd cos where rank elu reverse_sequence matrix_diag
    quantize matrix_set_diag round hard_swish if while non_max_suppression_v4
    non_max_suppression_v5 scatter_nd select_v2 densify segment_sum batch_matmul
    placeholder cumsum call_once broadcast_to rfft2d conv_3d imag real complex_abs
    hashtable hashtable_find hashtable_import hashtable_size reduce_all
    conv_3d_transpose var_handle read_variable assign_variable broadcast_args
    random_standard_normal bucketize random_uniform multinomial gelu
    dynamic_update_slice
""".split()
"""Names by the numbers of `BuiltinOperator`; later operators have only numbers."""

_VIEWS = frozenset("bitcast expand_dims reshape squeeze".split())
_ELEMENTWISE = frozenset(
    """abs add ceil cos dequantize div elu exp floor floor_div floor_mod gelu hard_swish
    leaky_relu log logical_and logical_not logical_or logistic maximum minimum mul neg
    pow prelu quantize relu relu6 relu_n1_to_1 round rsqrt select select_v2 sin sqrt
    square squared_difference sub tanh""".split()
)
_ROWWISE = frozenset("log_softmax softmax".split())
"""Operations that read a row before they write it."""


def write_addresses(interpreter: Any, path: str) -> None:
    """Saves the addresses of an interpreter's tensors beside the model in `path`.

    The tensors must be allocated. The interpreter must have no delegates, which use
    other memory: `OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES`.
    """
    rows: list[tuple[int, int, int]] = []
    for details in interpreter.get_tensor_details():
        if not len(details["shape"]):
            continue  # NumPy copies scalars
        try:
            array = interpreter.tensor(details["index"])()
        except ValueError:
            continue  # not allocated
        address = array.__array_interface__["data"][0]
        rows.append((details["index"], address, array.nbytes))
    Path(path + ADDRESSES).write_text(json.dumps(rows))


def has_plan(path: Path, data: bytes) -> bool:
    """Whether a model has offsets, in the file or in another file beside it."""
    if path.with_name(path.name + ADDRESSES).exists():
        return True
    try:
        return offsets(model_of(data, str(path))) is not None
    except (ForeignPlanError, *_DAMAGED):
        return False


def read_file(path: Path) -> ForeignPlan:
    """The plan of the first subgraph.

    Raises `ForeignPlanError` for a file of another kind or without offsets, and
    `OSError`.
    """
    data = path.read_bytes()
    beside = path.with_name(path.name + ADDRESSES)
    try:
        model = _Model(model_of(data, str(path)))
        if beside.exists():
            model.take_addresses(_rows(beside))
        elif not model.take_metadata():
            raise ForeignPlanError(
                f"no tensor has an offset: {beside.name} is missing", str(path)
            )
        return model.plan(path.name)
    except _DAMAGED:
        raise ForeignPlanError(
            "the model or its addresses are damaged", str(path)
        ) from None


def _rows(path: Path) -> Sequence[Sequence[int]]:
    """Numbers, addresses and bytes of tensors, as `write_addresses` saves them."""
    rows = json.loads(path.read_bytes())
    if rows == []:
        raise ForeignPlanError("no tensor has an address", str(path))
    if any(type(n) is not int or n < 0 for row in rows for n in row):
        raise ValueError
    return rows


class _Model:
    def __init__(self, model: Table):
        self.model = model
        self.graph = model.tables(2)[0]
        self.tensors = self.graph.tables(0)
        self.offsets: dict[int, int] = {}
        self.scratch: Sequence[Region] = ()
        self.persistent = 0  # bytes of kernels outside of the arena
        self.missing: set[int] = set()
        self.not_understood: Counter[str] = Counter()

    @cached_property
    def constants(self) -> frozenset[int]:
        """The numbers of the tensors whose contents are in the file."""
        buffers = [b.field(0) or b.number(1, "Q") for b in self.model.tables(4)]
        return frozenset(
            number
            for number, tensor in enumerate(self.tensors)
            if buffers[tensor.number(2, "I")]
        )

    @cached_property
    def unwritten(self) -> frozenset[int]:
        """The numbers of tensors that nothing writes: Vela passes scratch memory to its
        operators as operands, which overlaps all other tensors.
        """
        operators = self.graph.tables(3)
        read = {n for o in operators for n in o.vector(1) if n >= 0}
        written = {n for o in operators for n in o.vector(2)}
        arena = {n for n in read if self._memory(n) == _ARENA}
        return frozenset(arena - written - {*self.graph.vector(1)})

    def take_addresses(self, rows: Sequence[Sequence[int]]) -> None:
        """Sets offsets from addresses; scratch tensors follow those of the graph."""
        own: dict[str, dict[int, Region]] = {"": {}, _ARENA: {}, _STATE: {}}
        scratch: list[Region] = []
        for number, address, size in rows:
            if number < len(self.tensors):
                memory = self._memory(number)
                own[memory][number] = Region(memory, address, size)
            else:
                scratch.append(Region(_ARENA, address, size))
        arena, apart = _joined(list(own[_ARENA].values()), scratch)
        if scratch:
            self.not_understood["scratch tensors of kernels"] = len(scratch)
        base = {
            _ARENA: min((region.offset for region in arena), default=0),
            _STATE: min((region.offset for region in own[_STATE].values()), default=0),
        }
        for memory, start in base.items():
            self.offsets |= {n: r.offset - start for n, r in own[memory].items()}
        self.scratch = [
            r._replace(offset=r.offset - base[_ARENA]) for r in scratch if r in arena
        ]
        self.persistent = sum(region.size for region in apart)

    def take_metadata(self) -> bool:
        """Sets the offsets for TensorFlow Lite Micro; returns whether there are any."""
        if (found := offsets(self.model)) is None:
            return False
        self.offsets = {
            number: at
            for number, at in enumerate(found.content)
            if at >= 0 and self._memory(number) and number not in self.unwritten
        }
        if self.unwritten:
            kind = "tensors that nothing writes: scratch memory of operators"
            self.not_understood[kind] = len(self.unwritten)
        return True

    def _memory(self, number: int) -> str:
        """The memory of a tensor; empty for a constant."""
        if number in self.constants:
            return ""
        is_state = number < len(self.tensors) and self.tensors[number].number(5, "B")
        return _STATE if is_state else _ARENA

    @cached_property
    def values(self) -> Mapping[int, Value]:
        made = {n: s for s in self.graph.tables(3) for n in s.vector(2)}
        found: dict[int, Value] = {}
        for number, tensor in enumerate(self.tensors):
            if number not in self.offsets:
                continue
            dtype, width = TYPES.get(tensor.number(1, "b"), ("?", 1))
            shape = tensor.vector(0)
            size = prod(shape) * width
            region = Region(self._memory(number), self.offsets[number], size)
            origin = self._operator(made[number]) if number in made else ""
            type = "x".join((*map(str, shape), dtype))
            name = f"tensor {number}"
            place = tensor.text(3).split(";")[0]
            found[number] = Value(name, region, type, origin, place)
        return found

    def plan(self, name: str) -> ForeignPlan:
        steps: list[Step | Forwarded] = []
        for number, operator in enumerate(self.graph.tables(3)):
            steps += self._steps(f"operator {number}", operator)
        if self.missing:
            self.not_understood["tensors without an address"] = len(self.missing)
        if others := len(self.model.tables(2)) - 1:
            self.not_understood["subgraphs that others call"] = others
        state = [v for v in self.values.values() if v.region.memory == _STATE]
        return ForeignPlan(
            name,
            self._memories(),
            steps,
            [*self._known(self.graph.vector(1)), *state],
            [*self._known(self.graph.vector(2)), *state],
            ASSUMPTIONS,
            self.not_understood,
            self.scratch,
        )

    def _memories(self) -> Mapping[str, Memory]:
        ends = Counter[str]()
        for region in (*(v.region for v in self.values.values()), *self.scratch):
            ends[region.memory] = max(ends[region.memory], region.end)
        kinds = {_ARENA: "temporary", _STATE: "argument", _KERNELS: "scratch"}
        if self.persistent:
            ends[_KERNELS] = self.persistent
        return {name: Memory(end, kinds[name]) for name, end in ends.items()}

    def _known(self, numbers: Sequence[int]) -> Sequence[Value]:
        """The tensors that have bytes in the plan; -1 is a missing operand."""
        known = [self.values[n] for n in numbers if n in self.values]
        named = {n for n in numbers if n >= 0} - self.constants - self.unwritten
        self.missing |= named - self.values.keys()
        return known

    def _operator(self, operator: Table) -> str:
        code = self.model.tables(1)[operator.number(0, "I")]
        number = builtin(code)
        if custom := code.text(1):
            return custom
        known = number < len(_OPERATORS)
        return _OPERATORS[number] if known else f"operator {number}"

    def _steps(self, name: str, operator: Table) -> Sequence[Step | Forwarded]:
        operation = self._operator(operator)
        reads, writes = (self._known(operator.vector(n)) for n in (1, 2))
        if operation in _VIEWS and reads and writes and _same(reads[0], writes[0]):
            return [Forwarded(reads[0], writes[0])]

        def access(read: int, write: int) -> Access:
            is_own = _same(reads[read], writes[write])
            is_ordered = operation in _ELEMENTWISE | _ROWWISE
            is_window = operation == "dynamic_update_slice" and read == 0
            if is_own and (is_ordered or is_window):
                return None
            return Unknown("nothing is known about the operation")

        location = writes[0].location if writes else ""
        is_copy = operation in _VIEWS
        return [Step(name, operation, reads, writes, location, access, is_copy)]


def _joined(
    values: Sequence[Region], scratch: Sequence[Region]
) -> tuple[Sequence[Region], Sequence[Region]]:
    """Splits scratch regions: those adjacent to the values join them, the others are
    separate allocations.
    """
    joined, apart = [*values], [*scratch]
    while True:
        begin = min((region.offset for region in joined), default=0) - ALIGNMENT
        end = max((region.end for region in joined), default=0) + ALIGNMENT
        adjoining = [r for r in apart if r.offset < end and r.end > begin]
        if not adjoining:
            return joined, apart
        joined += adjoining
        apart = [region for region in apart if region not in adjoining]


def _same(one: Value, other: Value) -> bool:
    return one.region == other.region
