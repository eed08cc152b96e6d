"""Runs steps in this process: in program order, or in a thread for each queue.

Threads run at the same time where they are in native code or in NumPy's loops. Between
queues a step waits for an event, which the step that it depends on signals; each event
has one of either. What queues run between two events is one tape (jit/records.py).

When a step raises, no queue computes any further, but all events are still signalled:
so nothing hangs, the events are ready for the next run, and the caller gets the error.
"""

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TypeAlias

import numpy as np

from ..calls import Call
from ..program.program import Changes, Program
from ..program.steps import Step
from . import Runner
from .order import Queue, pays, queue_of, waits
from .serial import Serial, tape


def local(program: Program, threads: bool | None = None) -> Runner:
    """Makes the program's calls. Without being told, uses threads if there are several
    queues and processors, and it is estimated to be faster."""
    processors = os.cpu_count() or 1
    queues = {queue_of(step) for step in program.steps}
    if threads is None and (processors == 1 or len(queues) == 1):
        threads = False
    if threads is False:
        return Serial(program)
    before = waits(program.steps)
    if threads or pays(program.steps, before, processors):
        return Threads(program, before)
    return Serial(program)


class Threads:
    """A thread for each queue. They start with the first run, sleep between runs, and
    end with `close` or when this object is dropped."""

    def __init__(self, program: Program, before: Sequence[Sequence[int]]):
        """`before` is what `order.waits` says of the program's steps."""
        self._program = program
        self._queues = _queues(program.steps, before)
        self._threads: dict[Queue, _Thread] = {}
        self._latest = _Run(0)
        weakref.finalize(self, _stop, self._threads)
        self.remake()

    def remake(self) -> None:
        self._latest.wait()  # if the caller was interrupted
        self._program.make()
        self._join()

    def follow(self, changes: Changes) -> None:
        self._latest.wait()
        if self._program.follow(changes):
            self._join()

    def _join(self) -> None:
        for parts in self._queues.values():
            for part in parts:
                part.tape = tape(part.steps)

    def run(self) -> None:
        self._latest.wait()
        for queue in self._queues:
            thread = self._threads.get(queue)
            if thread is None or not thread.is_alive():  # as after a fork
                self._threads[queue] = _Thread(queue)
        run = self._latest = _Run(len(self._queues))
        for queue, parts in self._queues.items():
            self._threads[queue].inbox.put((run, parts))
        try:
            run.wait()
        except BaseException:
            run.has_failed = True
            run.wait()
            raise
        if run.errors:
            raise min(run.errors, key=lambda error: error[0])[1]

    def close(self) -> None:
        self._latest.wait()
        _stop(self._threads)


@dataclass(eq=False)
class _Part:
    """Steps of a queue between two events."""

    last: int = -1  # the number of the last step
    steps: list[Step] = field(default_factory=list[Step])
    waits: list[Lock] = field(default_factory=list[Lock])
    signals: list[Lock] = field(default_factory=list[Lock])
    tape: list[Call] = field(default_factory=list[Call])

    def run(self, run: "_Run") -> None:
        for event in self.waits:
            event.acquire()
        if not run.has_failed:
            try:
                for function, arguments in self.tape:
                    function(*arguments)
            except BaseException as error:
                run.fail(self.last, error)
        for event in self.signals:
            event.release()


class _Run:
    """One run of all queues."""

    def __init__(self, queues: int):
        self.errors: list[tuple[int, BaseException]] = []
        self.has_failed = False
        self._running = queues
        self._counting = Lock()
        self._is_over = Lock()
        if queues:
            self._is_over.acquire()

    def fail(self, step: int, error: BaseException) -> None:
        self.errors.append((step, error))
        self.has_failed = True

    def end(self) -> None:
        """A queue is done."""
        with self._counting:
            self._running -= 1
            if not self._running:
                self._is_over.release()

    def wait(self) -> None:
        with self._is_over:
            pass


_Work: TypeAlias = tuple[_Run, Sequence[_Part]]


class _Thread(Thread):
    """Does what comes into its inbox, until that is None."""

    def __init__(self, queue: Queue):
        device, stream = queue
        super().__init__(name=f"{device} stream {stream}", daemon=True)
        self.inbox: SimpleQueue[_Work | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while _work(self.inbox.get()):  # and keeps nothing of it
            pass


def _work(work: _Work | None) -> bool:
    if work is None:
        return False
    run, parts = work
    with np.errstate(all="ignore"):
        for part in parts:
            part.run(run)
    run.end()
    return True


def _stop(threads: dict[Queue, _Thread]) -> None:
    for thread in threads.values():
        thread.inbox.put(None)
    threads.clear()


def _queues(
    steps: Sequence[Step], before: Sequence[Sequence[int]]
) -> dict[Queue, list[_Part]]:
    """The queues, cut before steps that wait and after those that others wait for."""
    awaited = {other for needed in before for other in needed}
    queues: dict[Queue, list[_Part]] = {}
    part_of: dict[int, _Part] = {}
    for number, (step, needed) in enumerate(zip(steps, before, strict=True)):
        parts = queues.setdefault(queue_of(step), [])
        if not parts or needed or parts[-1].last in awaited:
            parts.append(_Part())
        part = part_of[number] = parts[-1]
        part.last = number
        part.steps.append(step)
        for other in needed:
            event = Lock()
            event.acquire()
            part.waits.append(event)
            part_of[other].signals.append(event)
    return queues
