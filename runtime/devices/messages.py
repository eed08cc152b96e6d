"""Messages between the controller and its processes: text and arrays, without pickles.

Both sides know the program, so arrays are sent as raw bytes in the order of the
signature.
"""

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np

from ...dialects.dtypes import Array
from ...dialects.tgraph.signature import Signature
from ..program.compiled import CompiledProgram
from ..program.steps import View

TOKEN = "TENSORPLAN_TOKEN"
"""The environment variable with the secret by which processes identify themselves."""

KEEP_ALIVE = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3}
"""The idle time and the interval in seconds, and the number of probes; set where the
platform has these options.
"""


@dataclass(frozen=True)
class Job:
    """A program in the form in which all processes receive it."""

    text: str
    entry: str
    allocator: str
    native: bool
    process_of: Mapping[str, int]
    """The process of each device."""

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(data: bytes) -> "Job":
        return Job(**json.loads(data))


class Link:
    """A connection. Its methods raise `EOFError` or `OSError` if the connection is
    lost."""

    def __init__(self, connected: socket.socket):
        connected.settimeout(None)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEP_ALIVE.items():
            if hasattr(socket, name):
                option = cast(int, getattr(socket, name))
                connected.setsockopt(socket.IPPROTO_TCP, option, value)
        self._socket = connected

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: bytes) -> None:
        self._socket.sendall(len(message).to_bytes(8, "little") + message)

    def receive(self) -> bytes:
        size = bytearray(8)
        self._fill(memoryview(size))
        message = bytearray(int.from_bytes(size, "little"))
        self._fill(memoryview(message))
        return bytes(message)

    def send_array(self, array: Array) -> None:
        self._socket.sendall(flat(np.ascontiguousarray(array)).data)

    def receive_array(self, array: Array) -> None:
        if array.flags.c_contiguous:
            self._fill(flat(array).data)
        else:
            received = np.empty_like(array, order="C")
            self._fill(flat(received).data)
            array[...] = received

    def close(self) -> None:
        self._socket.close()

    def _fill(self, rest: memoryview) -> None:
        while rest:
            count = self._socket.recv_into(rest)
            if not count:
                raise EOFError
            rest = rest[count:]


def flat(array: Array) -> Array:
    """The bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def processes_of(program: CompiledProgram, count: int) -> dict[str, int]:
    """The process of each device: round-robin, in order of first use."""
    devices = dict.fromkeys(
        [
            *(step.device for step in program.steps),
            *(memory.device for memory in program.memory.arguments),
            *(pool.device for pool in program.memory.pools),
        ]
    )
    return {device: number % count for number, device in enumerate(devices)}


def inputs_of(program: CompiledProgram, signature: Signature) -> Sequence[View]:
    return [program.memory.views[value] for value in signature.arguments]


def results_of(program: CompiledProgram, signature: Signature) -> Sequence[View]:
    """The views that a run may have changed."""
    views = dict.fromkeys(program.memory.views[value] for value in signature.holders)
    return [view for view in views if not view.buffer.memory.is_constant]
