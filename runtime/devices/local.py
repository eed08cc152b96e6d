"""Runs steps in this process: in program order, or queues concurrently.

The steps of a queue between two waits for other queues are one part, with one tape
(jit/records.py). Threads take parts whose predecessors have finished. There are as many
threads as queues, but at most as many as the program may use; all programs share them.
Parts run in parallel while they are in native code or in NumPy's loops, which release
Python's lock.

After a step raises, the remaining parts are taken but not executed. So no thread waits
forever, and the caller gets the error.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock, Thread

import numpy as np

from ..backends.jit import subnormals
from ..backends.numpy import blas
from ..calls import Call
from ..program.program import Program
from ..program.steps import Step
from . import Runner
from .order import Queue, queue_of, waits
from .serial import JoinedRunner, Serial, tape


def local(
    program: Program, threads: int, concurrent: bool, flush_subnormals: bool = False
) -> Runner:
    """Makes the program's calls. With `concurrent`, queues run concurrently. With
    `flush_subnormals`, subnormal numbers count as zero."""
    if not concurrent:
        return Serial(program, threads, flush_subnormals)
    queues = {queue_of(step) for step in program.steps}
    before = waits(program.steps)
    threads = max(1, min(threads, len(queues)))
    return Concurrent(program, before, threads, flush_subnormals)


class Concurrent(JoinedRunner):
    """Runs queues concurrently in threads of this process."""

    def __init__(
        self,
        program: Program,
        before: Sequence[Sequence[int]],
        threads: int,
        flush_subnormals: bool,
    ):
        """`before` is the result of `order.waits` for the program's steps."""
        self._program = program
        self._parts = _parts(program.steps, before)
        self._threads = threads
        self._mode = subnormals.FLUSHED if flush_subnormals else None
        self._latest = _Run([], self._mode)
        self.remake()

    def wait(self) -> None:
        self._latest.wait()

    def _join(self) -> None:
        for part in self._parts:
            part.tape = tape(part.steps)

    def divide(self, cuts: Sequence[int]) -> Sequence[int]:
        return ()

    def run(self, stage: int | None = None) -> None:
        _helpers.start(self._threads)
        run = self._latest = _Run(self._parts, self._mode)
        try:
            with blas.Threads(1):  # for each of the threads
                _helpers.work_at(run, self._threads)
                run.wait()
        except BaseException:
            run.has_failed = True
            _helpers.work_at(run, 1)  # in case no thread has begun
            run.wait()
            raise
        if run.errors:
            raise min(run.errors, key=lambda error: error[0])[1]

    def close(self) -> None:
        self.wait()


@dataclass(eq=False)
class _Part:
    """Consecutive steps of a queue. Only the first waits for other queues, and other
    queues wait only for the last."""

    last: int = -1  # the number of the last step
    steps: list[Step] = field(default_factory=list[Step])
    before: int = 0  # how many parts it waits for
    after: "list[_Part]" = field(default_factory=list["_Part"])
    tape: list[Call] = field(default_factory=list[Call])


class _Run:
    """One run of all parts, in any number of threads."""

    def __init__(self, parts: Sequence[_Part], mode: int | None):
        """`mode` says how threads compute with subnormal numbers; None: like the
        caller's thread."""
        self.errors: list[tuple[int, BaseException]] = []
        self._mode = subnormals.current() if mode is None else mode
        self.has_failed = False
        self._before = {part: part.before for part in parts}
        self._ready: SimpleQueue[_Part | None] = SimpleQueue()
        self._left = len(parts)
        self._counting = Lock()
        self._is_over = Lock()
        self._is_over.acquire()
        for part in parts:
            if not part.before:
                self._ready.put(part)
        if not parts:
            self._finish()

    def work(self) -> None:
        """Runs parts until there are none left."""
        subnormals.switch(self._mode)
        while (part := self._ready.get()) is not None:
            if not self.has_failed:
                try:
                    for function, arguments in part.tape:
                        function(*arguments)
                except BaseException as error:
                    self.errors.append((part.last, error))
                    self.has_failed = True
            self._end(part)
        self._ready.put(None)  # for the other threads

    def _end(self, part: _Part) -> None:
        with self._counting:
            for other in part.after:
                self._before[other] -= 1
                if not self._before[other]:
                    self._ready.put(other)
            self._left -= 1
            if not self._left:
                self._finish()

    def _finish(self) -> None:
        self._ready.put(None)
        self._is_over.release()

    def wait(self) -> None:
        with self._is_over:
            pass


class _Helpers:
    """The process's threads that run parts, started on demand."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[_Run] = SimpleQueue()
        self._count = 0
        self._starting = Lock()

    def start(self, threads: int) -> None:
        """Starts threads until there are at least `threads`."""
        with self._starting:
            while self._count < threads:
                name = f"tensorplan {self._count}"
                Thread(target=_work, args=[self._inbox], name=name, daemon=True).start()
                self._count += 1

    def work_at(self, run: _Run, threads: int) -> None:
        """Makes `threads` threads work on `run`."""
        for _ in range(threads):
            self._inbox.put(run)


def _work(inbox: SimpleQueue[_Run]) -> None:
    with np.errstate(all="ignore"):
        while True:
            inbox.get().work()  # keeps no reference to the run


_helpers = _Helpers()


def _forget_helpers() -> None:
    """Resets the threads in a forked child, which has none of them."""
    global _helpers
    _helpers = _Helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


def _parts(steps: Sequence[Step], before: Sequence[Sequence[int]]) -> Sequence[_Part]:
    """The queues, divided before steps that wait and after steps that others wait
    for."""
    awaited = {other for needed in before for other in needed}
    latest: dict[Queue, _Part] = {}
    part_of: list[_Part] = []
    for number, (step, needed) in enumerate(zip(steps, before, strict=True)):
        own = latest.get(queue_of(step))
        if own is None or needed or own.last in awaited:
            part = latest[queue_of(step)] = _Part()
            awaits = [part_of[other] for other in needed] + ([own] if own else [])
            for other in dict.fromkeys(awaits):
                other.after.append(part)
                part.before += 1
        else:
            part = own
        part.last = number
        part.steps.append(step)
        part_of.append(part)
    return list(dict.fromkeys(part_of))
