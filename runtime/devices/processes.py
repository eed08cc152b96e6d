"""Runs devices in other processes, here or on other hosts, which MPI starts.

    with 2 processes:  controller ──input bytes──> process 0: cpu:0, cpu:2
                            │                          ↕ MPI: what device copies read
                            └──────input bytes──> process 1: cpu:1

The controller, any Python process, runs no step. It starts `mpiexec` and gives each
process the same planned IR. For each run, it sends each process one message with the
inputs on its devices, and receives one message with the results. Every process owns the
pools of its devices and runs their steps in program order. Where a step reads another
process's memory, the owner sends the bytes at that point of the order, and the reader
receives them. Both sides follow program order, so there is no deadlock.

MPI rather than Ray: a message between two processes takes 3 us, and 45 us with 1 MiB,
against 1 ms and 3 ms of a Ray actor. Copies can therefore be steps of a program rather
than programs of their own. MPI comes as a wheel (`mpich`) without a service to keep
running, and clusters have it. Ray's restarts of lost actors would not help, as the
devices' memory is lost with them.

MPI ends all processes when one dies. The controller then sees its connections end, and
raises `LostDevices` within a second or so. TCP's keep-alive detects hosts that vanish;
`timeout` detects processes that hang.

Needs the extra `distributed` (mpi4py and an MPI).
"""

import os
import secrets
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from multiprocessing.connection import wait
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from ...dialects.tgraph.signature import Signature
from ...support.extras import missing_extra_message
from ..program.compiled import CompiledProgram
from ..program.program import Changes
from ..program.steps import View
from .messages import TOKEN, Job, Link, inputs_of, processes_of, results_of

WORKER = "tensorplan.runtime.devices.worker"


class LostDevices(ConnectionError):
    """A process that runs devices, or the connection to it, is lost."""


@dataclass(frozen=True)
class Processes:
    """How to start processes.

    Devices are assigned to processes round-robin, in order of first use; there are at
    most as many processes as devices. For other hosts, `launcher` names the hosts, and
    `address` is the address at which they reach this one:
    `Processes(2, ("mpiexec", "-hosts", "a,b"), address="10.0.0.1")`.
    """

    count: int
    launcher: Sequence[str] = ("mpiexec",)
    """A command that takes `-n COUNT PROGRAM`."""
    address: str = "127.0.0.1"
    start_timeout: float = 60.0
    """The seconds within which all processes must connect."""
    timeout: float | None = None
    """The maximum seconds of a run."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"processes is {self.count}, expected 1 or more")


class Remote:
    """Runs a program in processes, which start with the first run and end with `close`
    or when this object is deleted. After `LostDevices`, the next run starts new
    processes. All state is in the caller's arrays, which a failed run leaves unchanged
    unless it had begun to receive results."""

    def __init__(
        self,
        how: Processes,
        module: ModuleOp,
        entry: str,
        program: CompiledProgram,
        signature: Signature,
        allocator: str,
        native: bool,
    ):
        text = StringIO()
        Printer(text, print_generic_format=True).print_op(module)
        self._how = how
        self._process_of = processes_of(program, how.count)
        self._count = max(self._process_of.values(), default=0) + 1
        self._job = Job(text.getvalue(), entry, allocator, native, self._process_of)
        self._inputs = inputs_of(program, signature)
        self._results = results_of(program, signature)
        self._group: _Group | None = None

    def wait(self) -> None:
        pass

    def remake(self) -> None:
        """Does nothing, as the processes have their own memory."""

    def follow(self, changes: Changes) -> None:
        """Does nothing, as the processes have their own memory."""

    def divide(self, cuts: Sequence[int]) -> Sequence[int]:
        return ()

    def run(self, stage: int | None = None) -> None:
        group = self._group
        if group is None:
            group = self._group = _Group(self._how, self._count, self._job)
        try:
            for process, link in enumerate(group.links):
                link.send(b"run")
                for view in self._of(self._inputs, process):
                    link.send_array(view.array())
            # The caller's arrays change only if all processes have succeeded.
            for process in sorted(group.answers(self._how.timeout)):
                for view in self._of(self._results, process):
                    group.links[process].receive_array(view.array())
        except LostDevices:
            self.close()
            raise
        except (EOFError, OSError):
            words = group.last_words()
            self.close()
            raise LostDevices(f"a worker process has died{words}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._group:
            self._group.close()
        self._group = None

    def _of(self, views: Sequence[View], process: int) -> Iterator[View]:
        for view in views:
            if self._process_of[view.buffer.memory.device] == process:
                yield view


class _Group:
    """Processes that have started, connected, and compiled the program."""

    def __init__(self, how: Processes, count: int, job: Job):
        self.links: list[Link] = []
        self._output = TemporaryFile()
        token = secrets.token_hex(16)
        with socket.create_server((how.address, 0), backlog=count) as server:
            port = server.getsockname()[1]
            self._launcher = self._launch(how, count, port, token)
            self._end = weakref.finalize(
                self, _end, self._launcher, self.links, self._output
            )
            try:
                self._connect(server, count, token, how.start_timeout)
                for link in self.links:
                    link.send(job.to_bytes())
                for _ in self.answers(how.start_timeout):
                    pass
            except LostDevices:
                self.close()
                raise
            except (EOFError, OSError):
                words = self.last_words()
                self.close()
                raise LostDevices(f"a worker process did not start{words}") from None
            except BaseException:
                self.close()
                raise

    def answers(self, timeout: float | None) -> Iterator[int]:
        """Yields the index of each process when it has answered."""
        end = None if timeout is None else time.monotonic() + timeout
        waiting = {link.fileno(): n for n, link in enumerate(self.links)}
        while waiting:
            left = None if end is None else max(0.0, end - time.monotonic())
            ready = cast(list[int], wait(list(waiting), left))
            if not ready:
                raise LostDevices(f"no answer from a worker process within {timeout} s")
            for number in sorted(waiting.pop(link) for link in ready):
                message = self.links[number].receive()
                if message != b"done":
                    raise RuntimeError(message.decode())
                yield number

    def last_words(self) -> str:
        """The last lines that processes have printed, for an error message."""
        with suppress(subprocess.TimeoutExpired):
            self._launcher.wait(2)
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        return "".join(f"\n  {line}" for line in lines[-12:])

    def close(self) -> None:
        self._end()

    def _launch(
        self, how: Processes, count: int, port: int, token: str
    ) -> "subprocess.Popen[bytes]":
        program, *options = how.launcher
        # Prefer the launcher that is installed beside Python.
        beside = Path(sys.executable).parent / program
        program = str(beside) if beside.exists() else program
        command = [program, *options, "-n", str(count), sys.executable, "-m", WORKER]
        try:
            return subprocess.Popen(
                [*command, how.address, str(port)],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env={**os.environ, TOKEN: token},
                start_new_session=True,  # only the controller gets interrupts
            )
        except OSError as error:
            self._output.close()
            raise LostDevices(
                missing_extra_message(f"cannot start {program}", "distributed", error)
            ) from None

    def _connect(
        self, server: socket.socket, count: int, token: str, timeout: float
    ) -> None:
        """Accepts the connections of all processes."""
        end = time.monotonic() + timeout
        callers: dict[int, Link] = {}
        server.settimeout(0.1)
        while len(callers) < count:
            with suppress(TimeoutError):
                link = Link(server.accept()[0])
                said, _, number = link.receive().decode().partition(" ")
                if secrets.compare_digest(said, token):
                    callers[int(number)] = link
                else:
                    link.close()
            if self._launcher.poll() is not None or time.monotonic() > end:
                raise LostDevices(
                    f"{len(callers)} of {count} processes have started"
                    f"{self.last_words()}"
                )
        self.links += [callers[number] for number in range(count)]


def _end(
    launcher: "subprocess.Popen[bytes]", links: Sequence[Link], output: IO[bytes]
) -> None:
    for link in links:
        link.close()
    output.close()
    launcher.terminate()
    try:
        launcher.wait(5)
    except subprocess.TimeoutExpired:
        launcher.kill()
        launcher.wait()
