"""Calls a program with arrays, whether it was compiled from IR or loaded. Knows no IR.

The caller's arrays become the memory of the arguments. If a call binds an argument to
another address than the last call did, the program's calls are relocated
(program/relocation.py).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ..support.arrays import Array
from ..support.slots import Input, Result
from .arguments import Arguments
from .devices import Runner
from .pool import Pool, exclusive
from .program.program import Program
from .program.stages import Stage


class CallableProgram:
    """A program with its own memory, ready to run.

    Several threads may call a program; it runs one call at a time.

    `program(*arrays)` takes an array for each input and returns the results in the
    order of the signature (see `tensorplan.dialects.tgraph.signature`):

     * An input is used in place if it is a C-contiguous array of the right type: a
       NumPy array, or an object that supports `__array_interface__` or DLPack. The
       program keeps it alive until the next array replaces it. Any other input is
       copied (`copies`).
     * A variable in such an array, if the array is writable, is updated in place and
       returned as a NumPy array. Otherwise, a copy is updated and returned.
     * A donated input (`tgraph.donated`) in such an array, if the array is writable, is
       overwritten; its final contents are undefined.
     * Other results are new arrays, which later calls do not change, or are written to
       the arrays in `out`.

    Raises `TypeError` or `ValueError` when called with arrays that do not match.
    """

    def __init__(self, program: Program, arguments: Arguments, runner: Runner):
        self._program = program
        self._arguments = arguments
        self._runner = runner
        self._alone = exclusive(program.memory.pools)
        self._is_called = False

    def __repr__(self) -> str:
        pools = ", ".join(f"{pool.device} {pool.bytes:,} bytes" for pool in self.pools)
        inputs, results = len(self.inputs), len(self.results)
        counts = f"{inputs} inputs, {results} results"
        return f"<{type(self).__name__}: {counts}; {pools or 'no pool'}>"

    @property
    def inputs(self) -> Sequence[Input]:
        return self._arguments.inputs

    @property
    def results(self) -> Sequence[Result]:
        return self._arguments.outputs

    @property
    def pools(self) -> Sequence[Pool]:
        """The memory of the devices: `pool.device`, `pool.bytes`."""
        return self._program.memory.pools

    @property
    def parameters(self) -> Mapping[int, Array]:
        """The inputs that `bind` has bound, by index."""
        return self._arguments.parameters

    @property
    def copies(self) -> Mapping[str, int]:
        """How many inputs and results calls have copied, with the reason for each:
        `"argument 1: not C-contiguous and aligned"`.
        """
        return self._arguments.copies

    @property
    def scratch_bytes(self) -> int:
        """Bytes of kernel scratch memory on all devices, without planned workspaces."""
        return self._program.scratch_bytes

    @property
    def packed_bytes(self) -> int:
        """Bytes of constants' copies in kernels' layouts. Clones share the copies."""
        return self._program.memory.packed_bytes

    def repack(self) -> None:
        """Refills the packed copies after the contents of parameters have changed in
        place. The copies keep their addresses, so this costs no more than the copying.
        Clones share the copies, and must not run meanwhile."""
        with self._alone:
            self._arguments.repack()

    def bind(self, parameters: Mapping[int, object]) -> None:
        """Binds inputs, by index, for all later calls, which then take only the other
        inputs. To share parameters, bind those of another program:
        `other.bind(program.parameters)`. Each program then sees the updates of the
        other, unless the inputs are marked `tgraph.parameter`; bind these again after
        an update, or call `repack`.

        Raises `TypeError` or `ValueError` for arrays that do not match.
        """
        with self._alone:
            self._arguments.bind(parameters)

    def __call__(
        self, *arrays: object, out: Sequence[Array | None] | None = None
    ) -> list[Array]:
        with self._alone:
            self._expect_no_call()
            self._is_called = True  # directly before `try`, for interrupts
            try:
                self._bind(arrays, out)
                self._runner.run()
                results = self._arguments.results(out)
                self._arguments.is_settled = True
                return results
            finally:
                self._is_called = False

    def divide(self, released: Collection[int]) -> None:
        """Divides calls by address (`run_at`) into the `stages` that need the least
        memory. Assumes that the caller frees the inputs in `released`, given by index,
        after their last use, and provides results only before their first use. The
        caller then provides the arenas, too, while they are used, if the program allows
        (`arenas`)."""
        with self._alone:
            self._program.memory.arenas_move = True
            self._prepare_places()
            cuts = self._arguments.best_cuts(released)
            self._arguments.divide(self._runner.divide(cuts))

    @property
    def stages(self) -> Sequence[Stage]:
        """The inputs and results that each stage of `run_at` takes: a single stage
        unless `divide` was called. `bind` changes them."""
        return self._arguments.stages

    @property
    def arenas(self) -> Sequence[int]:
        """The bytes of each arena that `run_at` takes. Empty if the program is not
        divided, or if moving an arena would make it rebuild NumPy calls in each run:
        then it uses its own arenas."""
        with self._alone:
            return [arena.size for arena in self._program.moving_arenas]

    def run_at(self, stages: Iterable[Sequence[int]]) -> None:
        """Runs in caller-provided memory, for callers that cannot afford to create a
        NumPy array for each buffer. `stages` has the addresses for each stage: those of
        its inputs, then of its results, then of its arenas. The program takes the next
        item of `stages` only after it has run the current stage. After the call, the
        program uses none of that memory.

        Each address must point to a C-contiguous, aligned array of the type and shape
        of the input or result, in this process. The memory of a result, a variable or a
        donated input must overlap with nothing else. An arena must be aligned to 64
        bytes. The contents of donated inputs are lost. Nothing checks this. Alternating
        between this method and calls with arrays is slow, as each switch makes the
        program's calls anew.

        Raises `ValueError` for too few or too many addresses or stages, and
        `OverflowError` for an address of more than 64 bits.
        """
        with self._alone:
            self._expect_no_call()
            self._is_called = True  # directly before `try`, for interrupts
            try:
                starts: Sequence[int] = ()
                numbers = range(self._arguments.stage_count)
                for number, starts in zip(numbers, stages, strict=True):
                    self._place(number, starts)
                    self._runner.run(number)
                self._arguments.copy_out(starts)
            finally:
                self._is_called = False

    def _expect_no_call(self) -> None:
        if self._is_called:
            raise RuntimeError("the program is called from within one of its own calls")

    def _place(self, number: int, starts: Sequence[int]) -> None:
        """Binds the addresses `starts` to the inputs and results of stage `number`."""
        arguments, memory = self._arguments, self._program.memory
        if not number and not (arguments.is_placed and memory.is_in_pools):
            self._prepare_places()
        changes = arguments.place(number, starts)
        if changes.moved or changes.renewed:
            self._runner.follow(changes)

    def _prepare_places(self) -> None:
        arguments, memory = self._arguments, self._program.memory
        self._runner.wait()
        arguments.prepare_places()
        memory.follow_pools()
        self._runner.remake()
        if memory.arenas_move and not self._program.moving_arenas:
            memory.arenas_move = False
            self._prepare_places()
        arguments.is_placed = True

    def _bind(
        self, arrays: tuple[object, ...], out: Sequence[Array | None] | None
    ) -> None:
        """Binds `arrays` and `out` to the arguments, and updates the calls. The
        arguments stay unsettled until the call ends. If a call is interrupted, the next
        one therefore binds everything and makes all calls anew."""
        arguments, memory = self._arguments, self._program.memory
        if arguments.is_settled and memory.is_in_pools:
            if out is None and arguments.rebind(arrays):
                return
            self._runner.follow(arguments.accept(arrays, out))
            return
        self._runner.wait()
        arguments.unbind()
        memory.follow_pools()
        arguments.accept(arrays, out)
        self._runner.remake()

    def close(self) -> None:
        """Ends threads and processes; the next call restarts them. Deleting the program
        ends them, too."""
        with self._alone:
            self._runner.close()
