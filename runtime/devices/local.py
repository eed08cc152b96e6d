"""Runs steps in this process: in program order, or queues at the same time.

What a queue runs between two waits for others is one part, with one tape
(jit/records.py). Threads take parts that wait for nothing any more: as many threads as
there are queues, at most those that the program may use. All programs have them in
common. They run at the same time where they are in native code or in NumPy's loops.

When a step raises, no part computes any further, but all are gone through: so nothing
hangs, and the caller gets the error.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock, Thread

import numpy as np

from ..backends.numpy import blas
from ..calls import Call
from ..program.program import Changes, Program
from ..program.steps import Step
from . import Runner
from .order import Queue, queue_of, waits
from .serial import Serial, tape


def local(program: Program, threads: int, concurrent: bool) -> Runner:
    """Makes the program's calls; `concurrent` runs queues at the same time."""
    if not concurrent:
        return Serial(program, threads)
    queues = {queue_of(step) for step in program.steps}
    before = waits(program.steps)
    return Concurrent(program, before, max(1, min(threads, len(queues))))


class Concurrent:
    """Runs queues at the same time, in some of the process's threads."""

    def __init__(self, program: Program, before: Sequence[Sequence[int]], threads: int):
        """`before` is what `order.waits` says of the program's steps."""
        self._program = program
        self._parts = _parts(program.steps, before)
        self._threads = threads
        self._latest = _Run([])
        self.remake()

    def wait(self) -> None:
        self._latest.wait()

    def remake(self) -> None:
        self._program.make()
        self._join()

    def follow(self, changes: Changes) -> None:
        if self._program.follow(changes):
            self._join()

    def _join(self) -> None:
        for part in self._parts:
            part.tape = tape(part.steps)

    def divide(self, cuts: Sequence[int]) -> Sequence[int]:
        return ()

    def run(self, stage: int | None = None) -> None:
        _helpers.start(self._threads)
        run = self._latest = _Run(self._parts)
        try:
            with blas.Threads(1):  # each of them
                _helpers.work_at(run, self._threads)
                run.wait()
        except BaseException:
            run.has_failed = True
            _helpers.work_at(run, 1)  # if nobody does yet
            run.wait()
            raise
        if run.errors:
            raise min(run.errors, key=lambda error: error[0])[1]

    def close(self) -> None:
        self.wait()


@dataclass(eq=False)
class _Part:
    """Steps of a queue: others wait for the last of them only, and only the first waits
    for others."""

    last: int = -1  # the number of the last step
    steps: list[Step] = field(default_factory=list[Step])
    before: int = 0  # how many parts it waits for
    after: "list[_Part]" = field(default_factory=list["_Part"])
    tape: list[Call] = field(default_factory=list[Call])


class _Run:
    """One run of all parts, in any number of threads."""

    def __init__(self, parts: Sequence[_Part]):
        self.errors: list[tuple[int, BaseException]] = []
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
        """Runs parts until there are none."""
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
    """The process's threads, which run parts; they start when they are needed."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[_Run] = SimpleQueue()
        self._count = 0
        self._starting = Lock()

    def start(self, threads: int) -> None:
        """Makes sure that there are so many."""
        with self._starting:
            while self._count < threads:
                name = f"tensorplan {self._count}"
                Thread(target=_work, args=[self._inbox], name=name, daemon=True).start()
                self._count += 1

    def work_at(self, run: _Run, threads: int) -> None:
        """Has so many threads work at a run."""
        for _ in range(threads):
            self._inbox.put(run)


def _work(inbox: SimpleQueue[_Run]) -> None:
    with np.errstate(all="ignore"):
        while True:
            inbox.get().work()  # and keeps nothing of it


_helpers = _Helpers()


def _forget_helpers() -> None:
    """In a child that was forked, which has none of the threads."""
    global _helpers
    _helpers = _Helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


def _parts(steps: Sequence[Step], before: Sequence[Sequence[int]]) -> Sequence[_Part]:
    """The queues, cut before steps that wait and after those that others wait for."""
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
