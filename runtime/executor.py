"""Runs memref programs: compiles IR once into a flat list of calls."""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from ..dialects.tgraph.callbacks import Callbacks, has_side_effect
from ..dialects.tgraph.signature import signature
from ..support.threads import checked
from .arguments import Arguments, Results
from .callable import CallableProgram
from .calls import Call
from .devices import Runner
from .devices.local import local
from .donation import donations
from .pool import Pool, exclusive
from .program.compiled import CompiledProgram
from .program.steps import Step
from .sanitizer import PlanViolation
from .sanitizer import sanitize as install_sanitizer

if TYPE_CHECKING:
    from .devices.processes import Processes
    from .profile import Profile

__all__ = ["Executable", "PlanViolation"]


class Executable(CallableProgram):
    """A memref program, ready to run, and called like a `CallableProgram`. Clones
    (`clone`) can be called in parallel.

    With `results="view"`, results are views of the program's own memory. The next call
    of the program, or of another program with the same pools, overwrites them. An input
    in `donate` is given up to the program: if its last use precedes the first write of
    a result of the same size, and the array is writable, the result is returned in its
    memory (`donations`). Otherwise, donation has no effect.

    Raises `LocatedError` for IR that it cannot run. If the machine is out of memory,
    the error is also a `MemoryError`.

    `sanitize` detects invalid memory accesses (see `tensorplan.runtime.sanitizer`). A
    `PlanViolation`, on construction or in a run, names the operation, the buffer, and
    the source location.

    Allocations without a plan come from an `allocator`, a name in
    `tensorplan.runtime.allocators.ALLOCATORS`. With the `pools` of other programs, the
    program uses their memory and their allocators, and the programs run one at a time.

    If llvmlite is installed, elementwise operations, reductions, and fusions are
    compiled to native code, unless `native` is false or the environment variable
    `TENSORPLAN_NATIVE` is 0.

    Parameters, the inputs marked `tgraph.parameter`, are the same in every run. Kernels
    may read copies of them in other layouts, made once per array (`packed_bytes`). If
    you change the contents of a parameter, pass another array, call `repack`, or call
    `bind` again. `parameters` binds inputs as `bind` does, but before the kernels are
    made; a later `bind` makes the kernels that read these inputs anew.

    The program uses at most `threads` threads, including the caller's; by default
    `TENSORPLAN_THREADS`, or else one per processor that the process may run on. The
    threads divide large operations; all programs share them. With `concurrent`, streams
    and devices run concurrently in these threads; otherwise, they run sequentially.
    With `processes`, devices run in other processes with one thread each, on this host
    or others (see `tensorplan.runtime.devices.processes`). Results are the same, except
    that products and convolutions of oneDNN differ by rounding when they are divided.

    With `flush_subnormals`, numbers smaller than the normal ones count as zero, as XLA
    and JAX compute on processors: IEEE 754 arithmetic with them is many times slower.
    By default, the mode of the calling thread applies.

    `callbacks` are the functions that `tgraph.host_callback` calls (`Model.callbacks`).
    If a function raises an exception, the call raises a `LocatedError` with that
    exception as its cause; variables then have old or new contents.
    """

    def __init__(
        self,
        module: ModuleOp,
        entry: str = "main",
        *,
        sanitize: bool = False,
        allocator: str = "bfc",
        pools: Sequence[Pool] = (),
        native: bool = True,
        results: Results = "copy",
        donate: Collection[int] = (),
        threads: int | None = None,
        concurrent: bool = False,
        processes: "Processes | None" = None,
        parameters: Mapping[int, object] | None = None,
        callbacks: Callbacks = (),
        flush_subnormals: bool = False,
    ):
        if sanitize and (concurrent or processes):
            raise ValueError("sanitize cannot be combined with concurrent or processes")
        if processes and (threads or concurrent or pools):
            raise ValueError(
                "processes cannot be combined with threads, concurrent or pools"
            )
        if processes and flush_subnormals:
            raise ValueError("processes cannot be combined with flush_subnormals")
        if processes and callbacks:
            raise ValueError("callbacks cannot run in other processes")
        self._module = module
        self._entry = entry
        self._callbacks = callbacks
        self._sanitize = sanitize
        self._allocator = allocator
        self._native = native
        self._results: Results = results
        self._donate = donate
        self._threads = 1 if processes else checked(threads)
        self._concurrent = concurrent
        self._processes = processes
        self._flush_subnormals = flush_subnormals
        self._signature = signature(module, entry)
        self._prepare(pools, parameters or {})

    def _prepare(
        self,
        pools: Sequence[Pool],
        parameters: Mapping[int, object],
        like: "Executable | None" = None,
    ) -> None:
        """Creates everything that runs modify: memory, steps and bound arguments."""
        with exclusive(pools):
            io, native = self._signature, self._native
            program = self._compiled = CompiledProgram(
                *(self._module, io, pools, self._allocator, native),
                threads=self._threads,
                callbacks=self._callbacks,
                like=None if like is None else like._compiled,
            )
            arguments = Arguments(
                *(program, io.inputs, io.results, self._results),
                donations=donations(program, io, self._donate),
                like=None if like is None else like._arguments,
            )
            arguments.bind(parameters)
            arguments.place_constants()
            if self._sanitize:
                install_sanitizer(program, io)
            super().__init__(program, arguments, self._made_runner())

    def _made_runner(self) -> Runner:
        if self._processes is None:
            return local(
                self._compiled,
                self._threads,
                self._concurrent,
                self._flush_subnormals,
            )
        from .devices.processes import Remote

        return Remote(
            *(self._processes, self._module, self._entry, self._compiled),
            *(self._signature, self._allocator, self._native),
        )

    def clone(self, pools: Sequence[Pool] | None = None) -> "Executable":
        """The same program with its own memory, or with the memory in `pools` of a
        program with the same options, for calls in parallel. Bound parameters are bound
        in the clone as well, and both share the packed copies of parameters and
        constants. Later calls of `bind` affect only one of the two.
        """
        with self._alone:
            other = copy(self)
            if pools is None:
                pools = [pool.new_like() for pool in self.pools]
            other._prepare(pools, {}, self)
        return other

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """How many operations run in NumPy or Python because no installed faster
        backend supports them, by operation: `"tgraph.sort"`.
        """
        return self._compiled.fallbacks

    @property
    def donations(self) -> Mapping[int, int]:
        """The index of each donated input whose memory is reused, with the index of the
        result that reuses it."""
        return self._arguments.donations

    @property
    def has_side_effect(self) -> bool:
        """Whether calls do more than compute results and update variables: whether the
        program calls Python functions that have effects."""
        return any(map(has_side_effect, self._signature.function.body.block.ops))

    def save(self, path: Path) -> None:
        """Writes the program to the file `path`, from which `tensorplan.load` recreates
        it with the same version on the same kind of machine.

        Bound parameters become constants, and other bound inputs are saved with their
        current contents. A loaded program uses as many threads as this one, and returns
        copies.

        Raises `LocatedError` for an operation that cannot be saved; `ValueError` for a
        program that is sanitized, has donated inputs, or runs in other processes; and
        `OSError`.
        """
        from .saved.writing import save

        if self._sanitize or self._donate or self._processes:
            raise ValueError(
                "a program with sanitize, donate or processes cannot be saved"
            )
        with self._alone:
            program = CompiledProgram(
                *(self._module, self._signature, (), self._allocator, self._native),
                threads=self._threads,
                callbacks=self._callbacks,
                like=self._compiled,
            )
            bound, packed = dict(self.parameters), self._arguments.prepacked
            constants = {n: packed[n] for n in self.parameters if n in packed}
            for number, (array, copies) in constants.items():
                memory = program.inputs[number]
                memory.array, memory.prepacked, memory.home = array, copies, None
                del bound[number]
            for step in program.steps:
                step.make()  # grows the workspace to its final size
            flush = self._flush_subnormals
            save(path, program, self.inputs, self.results, bound, flush)

    def surround(self, wrap: Callable[[Step, list[Call]], list[Call]]) -> None:
        """Wraps the calls of each step in all later runs, to observe or delay them.
        Calls in the same queue (`step.device`, `step.stream`) run sequentially.

        Raises `ValueError` if devices run in other processes.
        """
        if self._processes:
            raise ValueError("surround cannot be combined with processes")
        with self._alone:
            self._arguments.flush_rebinding()
            for step in self._program.steps:
                step.surround(partial(wrap, step))

    def profile(self) -> "Profile":
        """Records all later runs: `Path("trace.json").write_text(p.to_json())`.
        Profiling adds about a microsecond per operation, because each one becomes a
        call of its own.

        Raises `ValueError` if devices run in other processes.
        """
        if self._processes:
            raise ValueError("profile cannot be combined with processes")
        from .profile import Profile

        profile = Profile(self._compiled)
        self.surround(profile.timed)
        return profile
