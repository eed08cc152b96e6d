"""Runs some of a program's devices in a process that processes.py starts.

The process compiles the whole program, but keeps only the steps of its own devices. It
does not touch the memory of other devices, so that memory takes no pages, except where
it receives data that its steps read: this lies at the planned positions.
"""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...support.extras import missing_extra_message

try:
    from mpi4py import MPI
except ImportError as error:
    sys.exit(missing_extra_message("mpi4py is required", "distributed", error))
from xdsl.dialects.memref import CopyOp
from xdsl.parser import Parser

from ... import dialects
from ...dialects.diagnostics import LocatedError
from ...dialects.tgraph.shaping import DeviceCopyOp
from ...dialects.tgraph.signature import signature
from ..calls import Call
from ..program.compiled import CompiledProgram, OperationStep
from ..program.steps import Step, View
from .messages import TOKEN, Job, Link, flat, inputs_of, results_of
from .serial import Serial


def serve(link: Link, comm: Any) -> None:
    """Runs the controller's program whenever the controller requests it. Raises
    `EOFError` or `OSError` when the controller is gone."""
    link.send(f"{os.environ[TOKEN]} {comm.rank}".encode())
    job = Job.from_bytes(link.receive())
    try:
        run = _prepare(job, link, comm)
        link.send(b"done")
        while link.receive():
            run()
    except (EOFError, OSError):
        raise
    except Exception as error:
        link.send(f"{type(error).__name__}: {error}".encode())
        link.receive()  # raises when the controller closes the connection


def _prepare(job: Job, link: Link, comm: Any) -> Callable[[], None]:
    """Returns a function that runs the program once, from inputs to results."""
    module = Parser(dialects.context(), job.text, "program").parse_module()
    io = signature(module, job.entry)
    program = CompiledProgram(module, io, (), job.allocator, job.native)
    program.steps = [s for step in program.steps for s in _own_steps(step, job, comm)]
    runner = Serial(program)
    inputs, results = (
        [v for v in views if job.process_of[v.buffer.memory.device] == comm.rank]
        for views in (inputs_of(program, io), results_of(program, io))
    )

    def run() -> None:
        for view in inputs:
            link.receive_array(view.array())
        runner.run()
        link.send(b"done")
        for view in results:
            link.send_array(view.array())

    return run


def _own_steps(step: Step, job: Job, comm: Any) -> Iterator[Step]:
    """The part of `step` in this process: the step itself after receiving what it
    reads, or sending what another process reads, or nothing."""
    home = job.process_of[step.device]
    for view in step.writes:
        if job.process_of[view.buffer.memory.device] != home:
            raise LocatedError(
                "a step writes to the memory of another process",
                step.op if isinstance(step, OperationStep) else None,
            )
    for view in dict.fromkeys(step.reads):
        memory = view.buffer.memory
        owner = home if memory.is_constant else job.process_of[memory.device]
        if owner == home:
            continue
        if comm.rank == owner:
            yield _sending(view, home, comm)
        if comm.rank == home and _is_plain_copy(step):
            yield _receiving(step.writes[0], owner, comm)
            return
        if comm.rank == home:
            yield _receiving(view, owner, comm)
    if comm.rank == home:
        yield step


def _is_plain_copy(step: Step) -> bool:
    op = step.op if isinstance(step, OperationStep) else None
    if not isinstance(op, CopyOp | DeviceCopyOp):
        return False
    (source,), (target,) = step.reads, step.writes
    return source.dtype == target.dtype and target.array().flags.c_contiguous


def _sending(view: View, process: int, comm: Any) -> Step:
    def make() -> list[Call]:
        array = view.array()
        if array.flags.c_contiguous:
            return [(comm.Send, ([flat(array), MPI.BYTE], process))]
        copy = np.empty_like(array, order="C")
        send: Call = comm.Send, ([flat(copy), MPI.BYTE], process)
        return [(copy.__setitem__, (..., array)), send]

    return Step(make)


def _receiving(view: View, process: int, comm: Any) -> Step:
    def make() -> list[Call]:
        array = view.array()
        if array.flags.c_contiguous:
            return [(comm.Recv, ([flat(array), MPI.BYTE], process))]
        copy = np.empty_like(array, order="C")
        receive: Call = comm.Recv, ([flat(copy), MPI.BYTE], process)
        return [receive, (array.__setitem__, (..., copy))]

    return Step(make)


def main() -> None:
    address, port = sys.argv[1:]
    comm = MPI.COMM_WORLD
    try:
        serve(Link(socket.create_connection((address, int(port)))), comm)
    finally:
        comm.Abort()  # ends processes that wait for this one, too


if __name__ == "__main__":
    main()
